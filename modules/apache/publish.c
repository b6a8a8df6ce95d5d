/*
 * Publishes a decision: header fields for the client; environment and notes for the access log,
 * scripts and other modules. Writing them costs more than the decision, so they are left out if the
 * request passed and nothing can read them.
 */
#include "mod_dthrottle.h"

#define DIGITS 21
/* Content types with this prefix are names of handlers. */
#define SCRIPT "application/x-httpd-"

static const char *const names[][2] = {
    { "DTHROTTLE_DECISION", "dthrottle-decision" },
    { "DTHROTTLE_REMAINING", "dthrottle-remaining" },
    { "DTHROTTLE_DELAY", "dthrottle-delay" },
};

/* The states of a request in its request_config. */
static const char published[] = "published", passed[] = "passed";

/* Formats a number, much faster than apr_psprintf. */
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

static const char *state(const request_rec *r)
{
    return ap_get_module_config(r->request_config, &dthrottle_module);
}

static void set_state(request_rec *r, const char *state)
{
    ap_set_module_config(r->request_config, &dthrottle_module, (void *)state);
}

/* Adds without a search: it is called once for a request, and no other module uses these names. */
static void set_variable(request_rec *r, const char *const name[2], const char *value)
{
    apr_table_addn(r->subprocess_env, name[0], value);
    apr_table_addn(r->notes, name[1], value);
}

static void set_fields(request_rec *r, const dthrottle_dir_conf_t *conf,
                       const dthrottle_domain_conf_t *domain, dthrottle_decision_t decision)
{
    dthrottle_response_t response = DTHROTTLE_RESPONSE_INIT;
    int32_t kind = conf->headers > 0 ? conf->headers : DTHROTTLE_HEADERS_NONE;
    /* A request that is not refused gets no Retry-After. */
    decision.allowed |= conf->dry_run == 1;
    dthrottle_header_fields(domain->handle, kind, &decision, &response);
    for (size_t i = 0; i < response.field_count; i++)
        apr_table_set(r->err_headers_out, response.fields[i].name, response.fields[i].value);
    dthrottle_response_free(&response);
}

void dthrottle_publish(request_rec *r, const dthrottle_dir_conf_t *conf,
                       const dthrottle_domain_conf_t *domain, const char *outcome,
                       const dthrottle_decision_t *decision)
{
    apr_uint64_t delay = decision->delay_ns ? decision->delay_ns : decision->retry_after_ns;
    set_state(r, published);
    set_variable(r, names[0], outcome);
    set_variable(r, names[1], number(r->pool, decision->remaining));
    set_variable(r, names[2], number(r->pool, delay / DTHROTTLE_NS_PER_MS));
    set_fields(r, conf, domain, *decision);
}

/* Marks a request that passed. Its figures are computed later, if something may read them. */
void dthrottle_publish_later(request_rec *r)
{
    set_state(r, passed);
}

/* Publishes again after an internal redirect. Returns 0 if there was no decision. */
int dthrottle_publish_again(request_rec *r)
{
    const char *value;
    for (request_rec *prev = r->prev; prev; prev = prev->prev) {
        if (!state(prev))
            continue;
        set_state(r, state(prev));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if ((value = apr_table_get(prev->notes, names[i][1])))
                set_variable(r, names[i], value);
        return 1;
    }
    return 0;
}

/*
 * Whether something may read the environment: a script, a proxy, a page with includes, or
 * directives in a .htaccess file, which are not part of the configuration.
 */
static int may_be_read(const request_rec *r)
{
    /* The list has all candidate files. Those that do not exist have no `htaccess`. */
    for (const struct htaccess_result *file = r->htaccess; file; file = file->next)
        if (file->htaccess)
            return 1;
    return r->handler || r->output_filters->frec->ftype < AP_FTYPE_CONTENT_SET ||
           (r->content_type && strncmp(r->content_type, SCRIPT, sizeof SCRIPT - 1) == 0);
}

/* Runs just before the handler of the request. */
void dthrottle_insert_filter(request_rec *r)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    if (state(r) == passed && may_be_read(r)) {
        const dthrottle_dir_conf_t *conf = ap_get_module_config(r->per_dir_config,
                                                                &dthrottle_module);
        const dthrottle_domain_conf_t *domain = dthrottle_peek_request(r, &decision);
        if (domain)
            dthrottle_publish(r, conf, domain, "passed", &decision);
    }
}

static int names_one(const char *text)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (ap_strcasestr(text, names[i][0]) || ap_strcasestr(text, names[i][1]))
            return 1;
    return 0;
}

/* Whether any directive, such as LogFormat, names one of the variables. */
int dthrottle_names_variable(const ap_directive_t *directive)
{
    for (; directive; directive = directive->next)
        if ((directive->args && names_one(directive->args)) ||
            dthrottle_names_variable(directive->first_child))
            return 1;
    return 0;
}
