/*
 * Builds the configuration from all directives, checks it in the process that reads it, and opens
 * the throttle in each child. A child that cannot open it logs an error and limits nothing.
 */
#include "mod_dthrottle.h"

#include "http_main.h"
#include "mpm_common.h"

#define FNV_START 2166136261u
#define FNV_PRIME 16777619u

/* Resets everything, because Apache reads the configuration twice at the start, and at restarts. */
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

/* Sets a default name for the table, which no other server of this machine has. */
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
    const char *text = dthrottle_server.text, *message;
    (void)log;
    if (dthrottle_config_new(&config) != DTHROTTLE_OK)
        return startup_error(s, "no memory");
    dthrottle_server.config = config;
    apr_pool_cleanup_register(pool, config, free_config, apr_pool_cleanup_null);
    /* Each directive alone has been checked before. */
    if (text && dthrottle_config_toml(config, text, strlen(text), error, sizeof error))
        return startup_error(s, error);
    if (dthrottle_server.cluster && dthrottle_set_cluster(config, error, sizeof error))
        return startup_error(s, apr_pstrcat(temp, "DThrottleConfigFile and DThrottleCluster "
                                            "contradict each other: ", error, NULL));
    if ((message = dthrottle_add_domains(pool, config, s)))
        return startup_error(s, message);
    if (dthrottle_server.has_table &&
        dthrottle_config_set_table(config, &dthrottle_server.table) != DTHROTTLE_OK)
        return startup_error(s, "invalid DThrottleTable");
    name_table(temp, config);
    /* The module may be loaded but not used. Directives that need rules are already checked. */
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
 * A child that only finishes its requests leaves the exchange to another one. The throttle stays
 * open, because other threads may use it until the child exits.
 */
void dthrottle_child_stopping(apr_pool_t *child, int graceful)
{
    (void)child;
    (void)graceful;
    if (dthrottle_server.throttle)
        dthrottle_stop(dthrottle_server.throttle);
}
