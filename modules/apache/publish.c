/*
 * What is said about a decision: headers for the client; environment and notes for the access log,
 * for scripts and for other modules. To write them costs more than the decision, so they are left
 * out for a request that passed if nobody can see them.
 */
#include "mod_dthrottle.h"

#define DIGITS 21
/* How types begin that are the names of handlers. */
#define SCRIPT "application/x-httpd-"

static const char *const names[][2] = {
    { "DTHROTTLE_DECISION", "dthrottle-decision" },
    { "DTHROTTLE_REMAINING", "dthrottle-remaining" },
    { "DTHROTTLE_WAIT", "dthrottle-wait" },
};

/* What became of a request, kept with it. */
static const char told[] = "told", passed[] = "passed";

/* Much faster than printing. */
static char *number(apr_pool_t *pool, apr_uint64_t value)
{
    char *to = (char *)apr_palloc(pool, DIGITS) + DIGITS - 1;
    *to = '\0';
    do {
        *--to = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return to;
}

/* As a string of structured fields: what is not ASCII is left out. */
const char *dthrottle_quoted(apr_pool_t *pool, const char *text)
{
    char *made = apr_palloc(pool, 2 * strlen(text) + 3), *to = made;
    *to++ = '"';
    for (; *text; text++) {
        if (*text < ' ' || *text > '~')
            continue;
        if (*text == '"' || *text == '\\')
            *to++ = '\\';
        *to++ = *text;
    }
    *to++ = '"';
    *to = '\0';
    return made;
}

static apr_uint64_t seconds(apr_uint64_t ns)
{
    return ns == 0 ? 0 : (ns - 1) / DTHROTTLE_NS_PER_S + 1;
}

/*
 * Until more is left than now: what is missing comes back unit by unit, of the slowest rule, and
 * the first no later than a unit of this rule takes.
 */
static apr_uint64_t more_after(const dthrottle_used_t *domain, int32_t rule,
                               const dthrottle_decision_t *decision)
{
    apr_int64_t missing = (apr_int64_t)decision->limit - decision->balance;
    apr_uint64_t each, unit;
    if (decision->rule >= 0)
        return seconds(decision->retry_after_ns);
    if (missing <= 0)
        return 0;
    each = decision->reset_after_ns / (apr_uint64_t)missing;
    unit = dthrottle_rule_window(domain->handle, rule) / decision->limit;
    return seconds(each < unit ? each : unit);
}

static const char *kept(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &dthrottle_module);
}

static void keep(request_rec *r, const char *what)
{
    ap_set_module_config(r->request_config, &dthrottle_module, (void *)what);
}

/* Once for a request, and nobody else has these names: they need not be looked for. */
static void say(request_rec *r, const char *const name[2], const char *value)
{
    apr_table_addn(r->subprocess_env, name[0], value);
    apr_table_addn(r->notes, name[1], value);
}

void dthrottle_tell(request_rec *r, const dthrottle_place_t *place, const dthrottle_used_t *domain,
                    const char *outcome, const dthrottle_decision_t *decision)
{
    apr_uint64_t wait = decision->wait_ns ? decision->wait_ns : decision->retry_after_ns;
    const char *remaining = number(r->pool, decision->remaining), *name;
    int32_t rule = (int32_t)decision->deciding;
    keep(r, told);
    say(r, names[0], outcome);
    say(r, names[1], remaining);
    say(r, names[2], number(r->pool, wait / DTHROTTLE_NS_PER_MS));
    if (place->headers == 1 && domain->policy && (name = dthrottle_rule_name(domain->handle, rule))) {
        apr_uint64_t more = more_after(domain, rule, decision);
        apr_table_setn(r->err_headers_out, "RateLimit-Policy", domain->policy);
        apr_table_setn(r->err_headers_out, "RateLimit",
                       apr_pstrcat(r->pool, dthrottle_quoted(r->pool, name), ";r=", remaining,
                                   more ? ";t=" : NULL, number(r->pool, more), NULL));
    }
    if (!decision->allowed && place->dry_run != 1) {
        apr_uint64_t after = seconds(decision->retry_after_ns);
        apr_table_setn(r->err_headers_out, "Retry-After", number(r->pool, after ? after : 1));
    }
}

/* Of a request that passed, where no more is known: it is looked for if somebody may see it. */
void dthrottle_tell_later(request_rec *r)
{
    keep(r, passed);
}

/* After a redirect inside the server: what was said before. Whether there was something. */
int dthrottle_tell_again(request_rec *r)
{
    const char *value;
    for (request_rec *prev = r->prev; prev; prev = prev->prev) {
        if (!kept(prev))
            continue;
        keep(r, kept(prev));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if ((value = apr_table_get(prev->notes, names[i][1])))
                say(r, names[i], value);
        return 1;
    }
    return 0;
}

/*
 * Whether something other than a plain file may answer, and so see the environment: a script, a
 * proxy, a page with includes, or rules in a file that the configuration does not know.
 */
static int may_be_seen(const request_rec *r)
{
    /* Those that were looked for, and those of them that were there. */
    for (const struct htaccess_result *file = r->htaccess; file; file = file->next)
        if (file->htaccess)
            return 1;
    return r->handler || r->output_filters->frec->ftype < AP_FTYPE_CONTENT_SET ||
           (r->content_type && strncmp(r->content_type, SCRIPT, sizeof SCRIPT - 1) == 0);
}

/* Just before the request is handled. */
void dthrottle_insert_filter(request_rec *r)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    if (kept(r) == passed && may_be_seen(r)) {
        const dthrottle_place_t *place = ap_get_module_config(r->per_dir_config,
                                                              &dthrottle_module);
        const dthrottle_used_t *domain = dthrottle_look(r, &decision);
        if (domain)
            dthrottle_tell(r, place, domain, "passed", &decision);
    }
}

static int names_one(const char *text)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ap_strcasestr(text, names[i][0]) || ap_strcasestr(text, names[i][1]))
            return 1;
    return 0;
}

/* Whether the configuration names one of them anywhere, such as in a LogFormat. */
int dthrottle_is_named(const ap_directive_t *directive)
{
    for (; directive; directive = directive->next)
        if ((directive->args && names_one(directive->args)) ||
            dthrottle_is_named(directive->first_child))
            return 1;
    return 0;
}
