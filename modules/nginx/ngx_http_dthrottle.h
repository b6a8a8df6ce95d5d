/*
 * Types and functions shared by the files of the module. A zone is a domain of the throttle; a limit
 * is the use of a zone in a location. The first process only reads and checks the configuration.
 * Each worker opens the throttle by the name of its table, with the worker's rights.
 */
#ifndef NGX_HTTP_DTHROTTLE_H
#define NGX_HTTP_DTHROTTLE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <dthrottle.h>

#define NGX_HTTP_DTHROTTLE_NS_PER_MS 1000000
#define NGX_HTTP_DTHROTTLE_NS_PER_S 1000000000
#define NGX_HTTP_DTHROTTLE_ERROR 512
/* Below that of the library, so that one more always fits. */
#define NGX_HTTP_DTHROTTLE_MAX_BURST 1000000000000

typedef enum {
    NGX_HTTP_DTHROTTLE_PASSED = 0,
    NGX_HTTP_DTHROTTLE_DELAYED,
    NGX_HTTP_DTHROTTLE_REJECTED,
    NGX_HTTP_DTHROTTLE_DELAYED_DRY_RUN,
    NGX_HTTP_DTHROTTLE_REJECTED_DRY_RUN
} ngx_http_dthrottle_status_e;

typedef struct {
    ngx_str_t                 name;
    ngx_http_complex_value_t  key;
    /* If the key is nothing but a variable, which one; else NGX_ERROR. */
    ngx_int_t                 index;
    /* Whether the variable has one value for the whole request. */
    ngx_flag_t                is_cacheable;
    /* count requests in unit_ns; count 0: the rules are those of the configuration file. */
    uint64_t                  count;
    uint64_t                  unit_ns;
    /* The largest of all uses: one bucket serves them all. */
    uint64_t                  burst;
    /* How many keys limit_req would keep in this size; 0: no size was given. */
    uint64_t                  tags;
    ngx_flag_t                is_defined;
    ngx_flag_t                has_failed;
    /* Where it was named first, for messages. */
    ngx_str_t                 file;
    ngx_uint_t                line;
    /* Of this process. */
    dthrottle_domain_t       *domain;
    /* Whether its domain only counts, as a configuration file may say. */
    ngx_flag_t                dry_run;
} ngx_http_dthrottle_zone_t;

typedef struct {
    ngx_http_dthrottle_zone_t        *zone;
    uint64_t                          burst;
    /* So many beyond the rate are not delayed; all of them: UINT64_MAX. */
    uint64_t                          delay;
    /* If the bucket refills later than this after a request, the request waits the difference. */
    uint64_t                          free_ns;
    /* If it refills later than this, the request is refused, although the bucket has room. */
    uint64_t                          most_ns;
    /* By how much one request delays the refill, rounded down. */
    uint64_t                          step_ns;
    /* With the rules of a file: the longest delay. */
    uint64_t                          max_delay_ns;
    /* The context of all requests that just pass where this limit is used. */
    struct ngx_http_dthrottle_ctx_s  *passed;
} ngx_http_dthrottle_limit_t;

typedef struct {
    ngx_array_t           zones;      /* ngx_http_dthrottle_zone_t * */
    ngx_array_t           uses;       /* ngx_http_dthrottle_limit_t *, all of them */
    ngx_str_t             path;       /* the configuration file */
    ngx_str_t             text;       /* what is in it */
    ngx_str_t             cluster;    /* as TOML */
    dthrottle_table_t     table;
    ngx_flag_t            has_table;
    dthrottle_config_t   *config;
    ngx_int_t             slot;       /* the variable that keeps a request's context */
    /* Of this process. */
    dthrottle_t          *throttle;
    ngx_event_t           timer;
    ngx_connection_t      timer_connection;    /* that of the timer */
} ngx_http_dthrottle_main_conf_t;

/* The state of a request. */
typedef struct ngx_http_dthrottle_ctx_s {
    ngx_http_dthrottle_status_e  status;
    ngx_array_t                 *limits;
    /* The only limit, if nothing has to be known of it before a request is charged for. */
    ngx_http_dthrottle_limit_t  *simple;
    /* The limit that refused, also in dry run, and its decision. */
    ngx_http_dthrottle_limit_t  *refusing;
    dthrottle_decision_t         decision;
    /* While this is set the request has been charged for, and not gone on. */
    ngx_flag_t                   is_waiting;
    /* One for each limit; empty: not limited. NULL: nobody has to know them any more. */
    ngx_str_t                   *keys;
} ngx_http_dthrottle_ctx_t;

typedef struct {
    ngx_array_t               *limits;    /* ngx_http_dthrottle_limit_t *; NULL: as above */
    ngx_http_dthrottle_ctx_t  *passed;    /* of all requests that just pass here */
    ngx_uint_t                 status;
    ngx_uint_t                 log_level;
    ngx_flag_t                 dry_run;
    ngx_int_t                  headers;   /* a DTHROTTLE_HEADERS_ number */
} ngx_http_dthrottle_loc_conf_t;

extern ngx_module_t  ngx_http_dthrottle_module;

/* ngx_http_dthrottle_zone.c: what is written at the places that use it. */
char *ngx_http_dthrottle_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dthrottle_use(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_dthrottle_server.c: what is written once for the whole server. */
char *ngx_http_dthrottle_table(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dthrottle_cluster(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dthrottle_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_dthrottle_config.c: all of it together. */
ngx_int_t ngx_http_dthrottle_build(ngx_conf_t *cf, ngx_http_dthrottle_main_conf_t *mcf);

/* ngx_http_dthrottle_process.c: the throttle in a process. */
ngx_int_t ngx_http_dthrottle_init_process(ngx_cycle_t *cycle);
void ngx_http_dthrottle_exit_process(ngx_cycle_t *cycle);
void ngx_http_dthrottle_free(void *data);

/* ngx_http_dthrottle_request.c */
ngx_int_t ngx_http_dthrottle_handler(ngx_http_request_t *r);

/*
 * The context of a request, or NULL. It is kept in a variable, because an internal redirect forgets
 * the contexts of all modules, and because nothing has to be looked for.
 */
#define ngx_http_dthrottle_get_ctx(r, mcf) \
    ((ngx_http_dthrottle_ctx_t *) (r)->variables[(mcf)->slot].data)
#define ngx_http_dthrottle_set_ctx(r, mcf, ctx) \
    ((r)->variables[(mcf)->slot].data = (u_char *) (ctx))

/* The key of a request; empty: it is not limited. */
static ngx_inline ngx_int_t
ngx_http_dthrottle_key(ngx_http_request_t *r, ngx_http_dthrottle_zone_t *zone, ngx_str_t *key)
{
    ngx_http_variable_value_t  *value;

    if (zone->domain == NULL) {
        key->len = 0;
        return NGX_OK;
    }
    if (zone->index == NGX_ERROR) {
        return ngx_http_complex_value(r, &zone->key, key);
    }
    value = zone->is_cacheable ? ngx_http_get_indexed_variable(r, zone->index)
                          : ngx_http_get_flushed_variable(r, zone->index);
    if (value == NULL) {
        return NGX_ERROR;
    }
    key->data = value->data;
    key->len = value->not_found ? 0 : value->len;
    return NGX_OK;
}

/* ngx_http_dthrottle_headers.c: what a response says of the limits. */
char *ngx_http_dthrottle_headers(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_dthrottle_peek(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    ngx_uint_t number, dthrottle_decision_t *decision);
void ngx_http_dthrottle_add_fields(ngx_http_request_t *r, ngx_int_t kind,
    ngx_http_dthrottle_ctx_t *ctx);
ngx_int_t ngx_http_dthrottle_retry_after(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    ngx_str_t *value);

/* ngx_http_dthrottle_variable.c */
ngx_int_t ngx_http_dthrottle_add_variables(ngx_conf_t *cf);

#endif
