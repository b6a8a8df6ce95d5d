/*
 * Types and functions shared by the files of the module. A zone is a domain of the throttle. A
 * limit is the use of a zone in a location. The master process only reads and checks the
 * configuration. Each worker opens the throttle by the name of its table, with the rights of the
 * worker.
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
/* Below the maximum of the library, so that burst + 1 is always valid. */
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
    /* The index of the variable if the key is a single variable, otherwise NGX_ERROR. */
    ngx_int_t                 index;
    /* Whether the variable may be cached for the request. */
    ngx_flag_t                is_cacheable;
    /* The rate: `count` requests in `unit_ns`. 0 if the configuration file has the rules. */
    uint64_t                  count;
    uint64_t                  unit_ns;
    /* The largest burst of all uses, which share one bucket. */
    uint64_t                  burst;
    /* How many keys limit_req would store in the size of the zone. 0 if no size is given. */
    uint64_t                  tags;
    ngx_flag_t                is_defined;
    ngx_flag_t                has_failed;
    /* The file and line that name the zone first, for messages. */
    ngx_str_t                 file;
    ngx_uint_t                line;
    /* The domain of this process. */
    dthrottle_domain_t       *domain;
    /* Whether the configuration file sets dry run for the domain. */
    ngx_flag_t                dry_run;
} ngx_http_dthrottle_zone_t;

typedef struct {
    ngx_http_dthrottle_zone_t        *zone;
    uint64_t                          burst;
    /* How many requests beyond the rate are not delayed. UINT64_MAX if none is delayed. */
    uint64_t                          delay;
    /* If the bucket needs longer than this to refill, the request is delayed by the excess. */
    uint64_t                          free_ns;
    /* A request is refused if the bucket needs longer than this to refill. */
    uint64_t                          most_ns;
    /* How much longer the bucket needs to refill after one more request, rounded down. */
    uint64_t                          step_ns;
    /* With the rules of a file: the longest delay. */
    uint64_t                          max_delay_ns;
    /* The shared context of requests that pass without delay where this limit is used. */
    struct ngx_http_dthrottle_ctx_s  *passed;
} ngx_http_dthrottle_limit_t;

typedef struct {
    ngx_array_t           zones;      /* ngx_http_dthrottle_zone_t * */
    ngx_array_t           uses;       /* ngx_http_dthrottle_limit_t *, of all locations */
    ngx_str_t             path;       /* of the configuration file */
    ngx_str_t             text;       /* of the configuration file */
    const char          **settings;   /* of dthrottle_cluster */
    size_t               *setting_lens;
    size_t                nsettings;
    dthrottle_table_t     table;
    ngx_flag_t            has_table;
    dthrottle_config_t   *config;
    ngx_int_t             ctx_index;  /* index of the variable that stores the context */
    /* The throttle of this process. */
    dthrottle_t          *throttle;
    ngx_event_t           timer;
    ngx_connection_t      timer_connection;    /* the data of the timer */
} ngx_http_dthrottle_main_conf_t;

/* The state of a request. */
typedef struct ngx_http_dthrottle_ctx_s {
    ngx_http_dthrottle_status_e  status;
    ngx_array_t                 *limits;
    /* The only limit, if a request can be charged without peeking first. */
    ngx_http_dthrottle_limit_t  *simple;
    /* The limit that refused, or would have without dry run, and its decision. */
    ngx_http_dthrottle_limit_t  *refusing;
    dthrottle_decision_t         decision;
    /* Whether the request is charged and waits for the end of its delay. */
    ngx_flag_t                   is_waiting;
    /* One key for each limit; empty if it does not apply. NULL if they are not needed any more. */
    ngx_str_t                   *keys;
} ngx_http_dthrottle_ctx_t;

typedef struct {
    ngx_array_t               *limits;    /* ngx_http_dthrottle_limit_t *; NULL if inherited */
    ngx_http_dthrottle_ctx_t  *passed;    /* shared by requests that pass without delay */
    ngx_uint_t                 status;
    ngx_uint_t                 log_level;
    ngx_flag_t                 dry_run;
    ngx_int_t                  headers;   /* a DTHROTTLE_HEADERS_ number */
} ngx_http_dthrottle_loc_conf_t;

extern ngx_module_t  ngx_http_dthrottle_module;

/* ngx_http_dthrottle_zone.c: directives of zones and their uses. */
char *ngx_http_dthrottle_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dthrottle_use(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_dthrottle_server.c: directives for the whole server. */
char *ngx_http_dthrottle_table(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dthrottle_cluster(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_dthrottle_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_dthrottle_config.c: the whole configuration. */
ngx_int_t ngx_http_dthrottle_build(ngx_conf_t *cf, ngx_http_dthrottle_main_conf_t *mcf);

/* ngx_http_dthrottle_process.c: the throttle in a process. */
ngx_int_t ngx_http_dthrottle_init_process(ngx_cycle_t *cycle);
void ngx_http_dthrottle_exit_process(ngx_cycle_t *cycle);
void ngx_http_dthrottle_free(void *data);

/* ngx_http_dthrottle_request.c */
ngx_int_t ngx_http_dthrottle_handler(ngx_http_request_t *r);

/*
 * The context of a request, or NULL. It is stored in a variable, because an internal redirect
 * clears the contexts of all modules.
 */
#define ngx_http_dthrottle_get_ctx(r, mcf) \
    ((ngx_http_dthrottle_ctx_t *) (r)->variables[(mcf)->ctx_index].data)
#define ngx_http_dthrottle_set_ctx(r, mcf, ctx) \
    ((r)->variables[(mcf)->ctx_index].data = (u_char *) (ctx))

/* Gets the key of a request. An empty key means that the request is not limited. */
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

/* ngx_http_dthrottle_headers.c: header fields of responses. */
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
