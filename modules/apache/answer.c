/*
 * What is said about a decision: headers for the client; environment and notes for the access log,
 * for scripts and for other modules.
 */
#include "mod_dthrottle.h"

#define DIGITS 21

static const char *const names[][2] = {
    { "DTHROTTLE_DECISION", "dthrottle-decision" },
    { "DTHROTTLE_REMAINING", "dthrottle-remaining" },
    { "DTHROTTLE_WAIT", "dthrottle-wait" },
};

/* Much faster than printing, and done for every request. */
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

/* The rule whose figures the decision has, or -1. */
static int32_t deciding_rule(const dthrottle_used_t *domain, const dthrottle_decision_t *decision)
{
    int32_t index = decision->rule;
    if (index < 0)
        for (index = 0; dthrottle_rule_limit(domain->handle, index) != decision->limit; index++)
            if (!dthrottle_rule_name(domain->handle, index))
                return -1;
    return index;
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

static void say(request_rec *r, const char *const name[2], const char *value)
{
    apr_table_setn(r->subprocess_env, name[0], value);
    apr_table_setn(r->notes, name[1], value);
}

void dthrottle_tell(request_rec *r, const dthrottle_place_t *place, const dthrottle_used_t *domain,
                    const char *outcome, const dthrottle_decision_t *decision)
{
    apr_uint64_t wait = decision->wait_ns ? decision->wait_ns : decision->retry_after_ns;
    const char *remaining = number(r->pool, decision->remaining), *name;
    int32_t rule;
    say(r, names[0], outcome);
    say(r, names[1], remaining);
    say(r, names[2], number(r->pool, wait / DTHROTTLE_NS_PER_MS));
    if (place->headers == 1 && domain->policy && (rule = deciding_rule(domain, decision)) >= 0 &&
        (name = dthrottle_rule_name(domain->handle, rule))) {
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

/* Of a request that passed, where no more is known. */
void dthrottle_tell_passed(request_rec *r)
{
    say(r, names[0], "passed");
}

/* After a redirect inside the server: what was said before. Whether there was something. */
int dthrottle_tell_again(request_rec *r)
{
    const char *value;
    for (request_rec *prev = r->prev; prev; prev = prev->prev) {
        if (!apr_table_get(prev->notes, names[0][1]))
            continue;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if ((value = apr_table_get(prev->notes, names[i][1])))
                say(r, names[i], value);
        return 1;
    }
    return 0;
}
