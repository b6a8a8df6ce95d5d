/*
 * The throttle of a process: opened when a worker starts, closed when it exits. Errors are logged
 * and turn limits off, because they must not stop the server.
 */
#include "ngx_http_dthrottle.h"

/* How often a worker checks whether it is exiting. */
#define NGX_HTTP_DTHROTTLE_POLL_MS 500

/*
 * A worker that only finishes its requests leaves the exchange to a new worker, which may have
 * other rules and peers.
 */
static void
ngx_http_dthrottle_poll_exit(ngx_event_t *event)
{
    ngx_connection_t                *timer_connection = event->data;
    ngx_http_dthrottle_main_conf_t  *mcf = timer_connection->data;

    if (mcf->throttle == NULL) {
        return;
    }
    if (ngx_exiting) {
        dthrottle_stop(mcf->throttle);
        return;
    }
    ngx_add_timer(event, NGX_HTTP_DTHROTTLE_POLL_MS);
}

static void
ngx_http_dthrottle_exchange(ngx_http_dthrottle_main_conf_t *mcf, ngx_log_t *log)
{
    dthrottle_cluster_stats_t  stats = DTHROTTLE_CLUSTER_STATS_INIT;

    if (dthrottle_cluster_stats(mcf->throttle, &stats) != DTHROTTLE_OK || !stats.in_cluster) {
        return;
    }
    dthrottle_start(mcf->throttle);
    ngx_memzero(&mcf->timer, sizeof(ngx_event_t));
    mcf->timer.handler = ngx_http_dthrottle_poll_exit;
    /* nginx logs the descriptor of the connection of a timer. */
    mcf->timer_connection.fd = (ngx_socket_t) -1;
    mcf->timer_connection.data = mcf;
    mcf->timer.data = &mcf->timer_connection;
    mcf->timer.log = log;
    /* An exiting worker does not wait for the timer. */
    mcf->timer.cancelable = 1;
    ngx_add_timer(&mcf->timer, NGX_HTTP_DTHROTTLE_POLL_MS);
}

static void
ngx_http_dthrottle_open(ngx_http_dthrottle_main_conf_t *mcf, ngx_log_t *log)
{
    char                         error[NGX_HTTP_DTHROTTLE_ERROR];
    int32_t                      i, status;
    ngx_uint_t                   n;
    const char                  *warning;
    ngx_http_dthrottle_zone_t  **zones;

    status = dthrottle_open_config(mcf->config, &mcf->throttle, error, sizeof(error));
    if (status != DTHROTTLE_OK) {
        ngx_log_error(NGX_LOG_ALERT, log, 0, "dthrottle: %s; nothing is limited", error);
        return;
    }
    for (i = 0; (warning = dthrottle_warning(mcf->throttle, i)) != NULL; i++) {
        ngx_log_error(NGX_LOG_WARN, log, 0, "dthrottle: %s", warning);
    }
    zones = mcf->zones.elts;
    for (n = 0; n < mcf->zones.nelts; n++) {
        status = dthrottle_domain(mcf->throttle, (const char *) zones[n]->name.data,
                                  zones[n]->name.len, &zones[n]->domain);
        if (status != DTHROTTLE_OK) {
            ngx_log_error(NGX_LOG_ALERT, log, 0, "dthrottle: cannot open zone \"%V\": %s; it "
                          "limits nothing", &zones[n]->name, dthrottle_status_text(status));
        }
        zones[n]->dry_run = dthrottle_domain_is_dry_run(zones[n]->domain) == 1;
    }
    ngx_http_dthrottle_exchange(mcf, log);
}

static void
ngx_http_dthrottle_close(ngx_http_dthrottle_main_conf_t *mcf)
{
    ngx_uint_t                   i;
    ngx_http_dthrottle_zone_t  **zones;

    if (mcf->throttle == NULL) {
        return;
    }
    zones = mcf->zones.elts;
    for (i = 0; i < mcf->zones.nelts; i++) {
        dthrottle_domain_free(zones[i]->domain);
        zones[i]->domain = NULL;
    }
    if (mcf->timer.timer_set) {
        ngx_del_timer(&mcf->timer);
    }
    dthrottle_close(mcf->throttle);
    mcf->throttle = NULL;
}

/* Finds the keys that may be cached. This is known when the whole configuration has been read. */
static void
ngx_http_dthrottle_init_keys(ngx_cycle_t *cycle, ngx_http_dthrottle_main_conf_t *mcf)
{
    ngx_uint_t                   i;
    ngx_http_variable_t         *variables;
    ngx_http_core_main_conf_t   *cmcf;
    ngx_http_dthrottle_zone_t  **zones = mcf->zones.elts;

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);
    variables = cmcf->variables.elts;
    for (i = 0; i < mcf->zones.nelts; i++) {
        zones[i]->is_cacheable = zones[i]->index != NGX_ERROR
                            && !(variables[zones[i]->index].flags & NGX_HTTP_VAR_NOCACHEABLE);
    }
}

ngx_int_t
ngx_http_dthrottle_init_process(ngx_cycle_t *cycle)
{
    ngx_http_dthrottle_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_dthrottle_module);
    /* The helper processes for caches serve no requests. */
    if (mcf != NULL && mcf->config != NULL && ngx_process != NGX_PROCESS_HELPER) {
        ngx_http_dthrottle_init_keys(cycle, mcf);
        ngx_http_dthrottle_open(mcf, cycle->log);
    }
    return NGX_OK;
}

void
ngx_http_dthrottle_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_dthrottle_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_dthrottle_module);
    if (mcf != NULL) {
        ngx_http_dthrottle_close(mcf);
    }
}

/* Frees the throttle and its configuration with the memory of nginx's configuration. */
void
ngx_http_dthrottle_free(void *data)
{
    ngx_http_dthrottle_main_conf_t  *mcf = data;

    ngx_http_dthrottle_close(mcf);
    dthrottle_config_free(mcf->config);
    mcf->config = NULL;
}
