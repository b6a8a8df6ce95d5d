/*
 * The module's directives, their inheritance, and its handler in the phases of a request.
 */
#include "ngx_http_dthrottle.h"

static ngx_int_t ngx_http_dthrottle_init(ngx_conf_t *cf);
static void *ngx_http_dthrottle_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_dthrottle_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_dthrottle_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child);

static ngx_conf_enum_t  ngx_http_dthrottle_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};

static ngx_conf_num_bounds_t  ngx_http_dthrottle_status_bounds = {
    ngx_conf_check_num_bounds, 400, 599
};

#define NGX_HTTP_DTHROTTLE_ANYWHERE (NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF)

static ngx_command_t  ngx_http_dthrottle_commands[] = {

    { ngx_string("dthrottle_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE23,
      ngx_http_dthrottle_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dthrottle"),
      NGX_HTTP_DTHROTTLE_ANYWHERE|NGX_CONF_TAKE1234,
      ngx_http_dthrottle_use,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dthrottle_status"),
      NGX_HTTP_DTHROTTLE_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dthrottle_loc_conf_t, status),
      &ngx_http_dthrottle_status_bounds },

    { ngx_string("dthrottle_log_level"),
      NGX_HTTP_DTHROTTLE_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dthrottle_loc_conf_t, log_level),
      &ngx_http_dthrottle_log_levels },

    { ngx_string("dthrottle_dry_run"),
      NGX_HTTP_DTHROTTLE_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_dthrottle_loc_conf_t, dry_run),
      NULL },

    { ngx_string("dthrottle_headers"),
      NGX_HTTP_DTHROTTLE_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_dthrottle_headers,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dthrottle_table"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1234,
      ngx_http_dthrottle_table,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dthrottle_cluster"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_dthrottle_cluster,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("dthrottle_config"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_dthrottle_file,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};

static ngx_http_module_t  ngx_http_dthrottle_module_ctx = {
    ngx_http_dthrottle_add_variables,      /* preconfiguration */
    ngx_http_dthrottle_init,               /* postconfiguration */
    ngx_http_dthrottle_create_main_conf,   /* create main configuration */
    NULL,                                  /* init main configuration */
    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */
    ngx_http_dthrottle_create_loc_conf,    /* create location configuration */
    ngx_http_dthrottle_merge_loc_conf      /* merge location configuration */
};

ngx_module_t  ngx_http_dthrottle_module = {
    NGX_MODULE_V1,
    &ngx_http_dthrottle_module_ctx,        /* module context */
    ngx_http_dthrottle_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_dthrottle_init_process,       /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_dthrottle_exit_process,       /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};

static ngx_int_t
ngx_http_dthrottle_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt             *handler;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_dthrottle_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dthrottle_module);
    if (ngx_http_dthrottle_build(cf, mcf) != NGX_OK) {
        return NGX_ERROR;
    }
    /* The phase of limit_req. */
    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    handler = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (handler == NULL) {
        return NGX_ERROR;
    }
    *handler = ngx_http_dthrottle_handler;
    return NGX_OK;
}

static void *
ngx_http_dthrottle_create_main_conf(ngx_conf_t *cf)
{
    ngx_pool_cleanup_t              *cleanup;
    ngx_http_dthrottle_main_conf_t  *mcf;
    dthrottle_table_t                table = DTHROTTLE_TABLE_INIT;

    mcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_dthrottle_main_conf_t));
    if (mcf == NULL
        || ngx_array_init(&mcf->zones, cf->pool, 4, sizeof(void *)) != NGX_OK
        || ngx_array_init(&mcf->uses, cf->pool, 4, sizeof(void *)) != NGX_OK)
    {
        return NULL;
    }
    mcf->table = table;
    /* Runs when the configuration is replaced or invalid. */
    cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    if (cleanup == NULL) {
        return NULL;
    }
    cleanup->handler = ngx_http_dthrottle_free;
    cleanup->data = mcf;
    return mcf;
}

static void *
ngx_http_dthrottle_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_dthrottle_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_dthrottle_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }
    conf->status = NGX_CONF_UNSET_UINT;
    conf->log_level = NGX_CONF_UNSET_UINT;
    conf->dry_run = NGX_CONF_UNSET;
    conf->headers = NGX_CONF_UNSET;
    return conf;
}

static char *
ngx_http_dthrottle_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_dthrottle_loc_conf_t  *prev = parent;
    ngx_http_dthrottle_loc_conf_t  *conf = child;

    (void) cf;
    if (conf->limits == NULL) {
        conf->limits = prev->limits;
        conf->passed = prev->passed;
    }
    ngx_conf_merge_uint_value(conf->status, prev->status, NGX_HTTP_SERVICE_UNAVAILABLE);
    ngx_conf_merge_uint_value(conf->log_level, prev->log_level, NGX_LOG_ERR);
    ngx_conf_merge_value(conf->dry_run, prev->dry_run, 0);
    ngx_conf_merge_value(conf->headers, prev->headers, DTHROTTLE_HEADERS_NONE);
    return NGX_CONF_OK;
}
