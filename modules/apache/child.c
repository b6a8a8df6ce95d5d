/*
 * All directives together, as a configuration of the library, checked by the process that reads it;
 * and the throttle in a child. A child that cannot open it limits nothing, and says so.
 */
#include "mod_dthrottle.h"

#include "http_main.h"
#include "mpm_common.h"

#define FNV_START 2166136261u
#define FNV_PRIME 16777619u

/* Everything is read anew: at a restart, and twice at the start. */
int dthrottle_pre_config(apr_pool_t *config, apr_pool_t *log, apr_pool_t *temp)
{
    const dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    (void)log;
    (void)temp;
    memset(&dthrottle_server, 0, sizeof dthrottle_server);
    dthrottle_reset_domains(config);
    dthrottle_server.max_delayed = -1;
    dthrottle_server.table = table;
    return OK;
}

static apr_status_t free_config(void *config)
{
    dthrottle_config_free(config);
    dthrottle_server.config = NULL;
    return APR_SUCCESS;
}

static int startup_error(server_rec *s, const char *what)
{
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s, "dthrottle: %s", what);
    return HTTP_INTERNAL_SERVER_ERROR;
}

/* A name for the table that no other server of this machine has. */
static void name_table(apr_pool_t *temp, dthrottle_config_t *config)
{
    const char *text = apr_pstrcat(temp, ap_server_root, "\n", ap_pid_fname, NULL);
    apr_uint32_t number = FNV_START;
    for (; *text; text++)
        number = (number ^ (unsigned char)*text) * FNV_PRIME;
    text = apr_psprintf(temp, "apache-%08x", number);
    dthrottle_config_name_table(config, text, strlen(text));
}

int dthrottle_check_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp, server_rec *s)
{
    char error[DTHROTTLE_ERROR_SIZE];
    dthrottle_config_t *config;
    const char *text, *said;
    (void)log;
    if (dthrottle_config_new(&config) != DTHROTTLE_OK)
        return startup_error(s, "no memory");
    dthrottle_server.config = config;
    apr_pool_cleanup_register(pool, config, free_config, apr_pool_cleanup_null);
    text = apr_pstrcat(temp, dthrottle_server.text ? dthrottle_server.text : "",
                       dthrottle_server.cluster ? dthrottle_server.cluster : "", NULL);
    /* The directives were checked one by one before. */
    if (dthrottle_config_toml(config, text, strlen(text), error, sizeof error) != DTHROTTLE_OK)
        return startup_error(s, apr_pstrcat(temp, "DThrottleConfigFile and DThrottleCluster do not go "
                                    "together: ", error, NULL));
    if ((said = dthrottle_add_domains(pool, config, s)))
        return startup_error(s, said);
    if (dthrottle_server.has_table &&
        dthrottle_config_set_table(config, &dthrottle_server.table) != DTHROTTLE_OK)
        return startup_error(s, "invalid DThrottleTable");
    name_table(temp, config);
    /* The module may be loaded and not used; a directive that needs rules has looked for them. */
    if (dthrottle_allow_no_rules(config) != DTHROTTLE_OK)
        return startup_error(s, "no memory");
    if (dthrottle_config_check(config, error, sizeof error) != DTHROTTLE_OK)
        return startup_error(s, error);
    dthrottle_server.names_variable = dthrottle_names_variable(ap_conftree);
    return OK;
}

void dthrottle_child_init(apr_pool_t *child, server_rec *s)
{
    char error[DTHROTTLE_ERROR_SIZE];
    const char *warning;
    (void)child;
    if (!dthrottle_server.is_on || !dthrottle_server.config)
        return;
    if (dthrottle_open_config(dthrottle_server.config, &dthrottle_server.throttle, error,
                              sizeof error) != DTHROTTLE_OK) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "dthrottle: %s; nothing is limited", error);
        return;
    }
    for (int32_t i = 0; (warning = dthrottle_warning(dthrottle_server.throttle, i)); i++)
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s, "dthrottle: %s", warning);
    dthrottle_resolve_domains(s);
    dthrottle_init_delayed();
    dthrottle_start(dthrottle_server.throttle);
}

/*
 * The child only finishes its requests, and leaves the exchange to others. It is not closed: other
 * threads may ask it until the end.
 */
void dthrottle_child_stopping(apr_pool_t *child, int graceful)
{
    (void)child;
    (void)graceful;
    if (dthrottle_server.throttle)
        dthrottle_stop(dthrottle_server.throttle);
}
