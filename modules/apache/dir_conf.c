/*
 * The directives for a server, directory or location, and their inheritance.
 */
#include "mod_dthrottle.h"

#include "util_time.h"

#define UNSET (-1)

void *dthrottle_create_dir_conf(apr_pool_t *pool, char *dir)
{
    dthrottle_dir_conf_t *conf = apr_pcalloc(pool, sizeof *conf);
    (void)dir;
    conf->is_on = UNSET;
    conf->domain = UNSET;
    conf->units = UNSET;
    conf->status = UNSET;
    conf->max_delay_ns = UNSET;
    conf->dry_run = UNSET;
    conf->headers = UNSET;
    conf->environment = UNSET;
    conf->log_level = UNSET;
    conf->ipv6_prefix = UNSET;
    return conf;
}

void *dthrottle_merge_dir_conf(apr_pool_t *pool, void *above, void *below)
{
    const dthrottle_dir_conf_t *a = above, *b = below;
    dthrottle_dir_conf_t *conf = apr_palloc(pool, sizeof *conf);
#define INHERIT(field) conf->field = b->field != UNSET ? b->field : a->field
    INHERIT(is_on);
    INHERIT(domain);
    INHERIT(status);
    INHERIT(max_delay_ns);
    INHERIT(dry_run);
    INHERIT(headers);
    INHERIT(environment);
    INHERIT(log_level);
    INHERIT(ipv6_prefix);
#undef INHERIT
    conf->tag = b->tag ? b->tag : a->tag;
    /* The cost is a number or an expression, so both are inherited together. */
    conf->cost = b->cost || b->units != UNSET ? b->cost : a->cost;
    conf->units = b->cost || b->units != UNSET ? b->units : a->units;
    return conf;
}

const char *dthrottle_cmd_on(cmd_parms *cmd, void *at, int on)
{
    dthrottle_dir_conf_t *conf = at;
    (void)cmd;
    conf->is_on = on;
    dthrottle_server.is_on |= on;
    return NULL;
}

const char *dthrottle_cmd_domain(cmd_parms *cmd, void *at, const char *name)
{
    dthrottle_dir_conf_t *conf = at;
    conf->domain = dthrottle_use_domain(cmd, name);
    return NULL;
}

static const char *expression(cmd_parms *cmd, const char *text, ap_expr_info_t **to)
{
    const char *error = NULL;
    *to = ap_expr_parse_cmd(cmd, text, AP_EXPR_FLAG_STRING_RESULT, &error, NULL);
    return error ? apr_psprintf(cmd->pool, "%s \"%s\": %s; must be an expression, such as "
                                "\"%%{HTTP:X-Api-Key}\"", cmd->cmd->name, text, error)
                 : NULL;
}

const char *dthrottle_cmd_tag(cmd_parms *cmd, void *at, const char *text)
{
    dthrottle_dir_conf_t *conf = at;
    return expression(cmd, text, &conf->tag);
}

/* Reads a whole number within a range. Returns an error message or NULL. */
const char *dthrottle_number(cmd_parms *cmd, const char *text, int least, int most, int *to)
{
    char *end;
    apr_int64_t value = apr_strtoi64(text, &end, 10);
    if (end == text || *end || value < least || value > most)
        return apr_psprintf(cmd->pool, "%s must be a number from %d to %d, got \"%s\"",
                            cmd->cmd->name, least, most, text);
    *to = (int)value;
    return NULL;
}

const char *dthrottle_cmd_prefix(cmd_parms *cmd, void *at, const char *text)
{
    dthrottle_dir_conf_t *conf = at;
    return dthrottle_number(cmd, text, 1, 128, &conf->ipv6_prefix);
}

const char *dthrottle_cmd_cost(cmd_parms *cmd, void *at, const char *text)
{
    dthrottle_dir_conf_t *conf = at;
    if (!strchr(text, '%'))
        return dthrottle_number(cmd, text, 0, 1000000000, &conf->units);
    return expression(cmd, text, &conf->cost);
}

const char *dthrottle_cmd_status(cmd_parms *cmd, void *at, const char *text)
{
    dthrottle_dir_conf_t *conf = at;
    const char *message = dthrottle_number(cmd, text, 400, 599, &conf->status);
    /* Apache answers with 500 instead of a status that it does not know. */
    if (!message && conf->status != HTTP_INTERNAL_SERVER_ERROR &&
        ap_index_of_response(conf->status) == ap_index_of_response(HTTP_INTERNAL_SERVER_ERROR))
        return apr_psprintf(cmd->pool, "%s must be a status that Apache knows, such as 429 or "
                            "503, got \"%s\"", cmd->cmd->name, text);
    return message;
}

/* Reads a time with a unit of Apache. Returns 0 if the text is anything else. */
int dthrottle_time(const char *text, apr_interval_time_t *to)
{
    static const char *const units[] = { "ms", "s", "mi", "min", "h" };
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; digits && i < sizeof units / sizeof units[0]; i++)
        if (ap_cstr_casecmp(text + digits, units[i]) == 0)
            return ap_timeout_parameter_parse(text, to, "s") == APR_SUCCESS;
    return 0;
}

const char *dthrottle_cmd_max_delay(cmd_parms *cmd, void *at, const char *text)
{
    dthrottle_dir_conf_t *conf = at;
    apr_interval_time_t time = 0;
    int is_time = strcmp(text, "0") == 0 || dthrottle_time(text, &time);
    if (!is_time || time < 0 || time > apr_time_from_sec(3600))
        return apr_psprintf(cmd->pool, "%s must be a time with a unit, of at most an hour, such as "
                            "500ms or 2s, got \"%s\"", cmd->cmd->name, text);
    conf->max_delay_ns = time * 1000;
    dthrottle_server.may_delay |= time > 0;
    return NULL;
}

const char *dthrottle_cmd_headers(cmd_parms *cmd, void *at, const char *text)
{
    dthrottle_dir_conf_t *conf = at;
    char *name = apr_pstrdup(cmd->pool, text);
    ap_str_tolower(name);
    conf->headers = dthrottle_header_kind(name, strlen(name));
    return conf->headers >= 0 ? NULL
                              : apr_psprintf(cmd->pool, "%s must be on, off, standard, draft-7, "
                                             "draft-6 or x-ratelimit, got \"%s\"", cmd->cmd->name,
                                             text);
}

const char *dthrottle_cmd_log_level(cmd_parms *cmd, void *at, const char *text)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        { "debug", APLOG_DEBUG }, { "info", APLOG_INFO }, { "notice", APLOG_NOTICE },
        { "warn", APLOG_WARNING }, { "error", APLOG_ERR },
    };
    dthrottle_dir_conf_t *conf = at;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (ap_cstr_casecmp(levels[i].name, text) == 0) {
            conf->log_level = levels[i].level;
            return NULL;
        }
    }
    return apr_psprintf(cmd->pool, "%s must be debug, info, notice, warn or error, got \"%s\"",
                        cmd->cmd->name, text);
}
