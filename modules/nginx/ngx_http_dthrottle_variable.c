/*
 * What became of a request, for logs and headers: $dthrottle_status, $dthrottle_remaining,
 * $dthrottle_retry_after. Not found where nothing was asked.
 */
#include "ngx_http_dthrottle.h"

static const ngx_str_t  ngx_http_dthrottle_statuses[] = {
    ngx_string("PASSED"),
    ngx_string("DELAYED"),
    ngx_string("REJECTED"),
    ngx_string("DELAYED_DRY_RUN"),
    ngx_string("REJECTED_DRY_RUN")
};

static void
ngx_http_dthrottle_found(ngx_http_variable_value_t *v, u_char *data, size_t len)
{
    v->data = data;
    v->len = len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
}

static ngx_int_t
ngx_http_dthrottle_status_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    const ngx_str_t           *status;
    ngx_http_dthrottle_ctx_t  *ctx;

    (void) data;
    ctx = ngx_http_dthrottle_get_ctx(r);
    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }
    status = &ngx_http_dthrottle_statuses[ctx->status];
    ngx_http_dthrottle_found(v, status->data, status->len);
    return NGX_OK;
}

static ngx_int_t
ngx_http_dthrottle_number(ngx_http_request_t *r, ngx_http_variable_value_t *v, uint64_t number)
{
    u_char  *p;

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }
    ngx_http_dthrottle_found(v, p, ngx_sprintf(p, "%uL", number) - p);
    return NGX_OK;
}

static ngx_int_t
ngx_http_dthrottle_remaining_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_http_dthrottle_ctx_t  *ctx;

    (void) data;
    ctx = ngx_http_dthrottle_get_ctx(r);
    /* A domain without rules has no end. */
    if (ctx == NULL || ctx->remaining == UINT64_MAX) {
        v->not_found = 1;
        return NGX_OK;
    }
    return ngx_http_dthrottle_number(r, v, ctx->remaining);
}

/* In whole seconds, rounded up, as the header Retry-After has it. */
static ngx_int_t
ngx_http_dthrottle_retry_after_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    uint64_t                   seconds;
    ngx_http_dthrottle_ctx_t  *ctx;

    (void) data;
    ctx = ngx_http_dthrottle_get_ctx(r);
    if (ctx == NULL || ctx->status != NGX_HTTP_DTHROTTLE_REJECTED) {
        v->not_found = 1;
        return NGX_OK;
    }
    seconds = ctx->retry_after_ns / NGX_HTTP_DTHROTTLE_NS_PER_S;
    seconds += ctx->retry_after_ns % NGX_HTTP_DTHROTTLE_NS_PER_S != 0 || seconds == 0;
    return ngx_http_dthrottle_number(r, v, seconds);
}

static ngx_http_variable_t  ngx_http_dthrottle_variables[] = {
    { ngx_string("dthrottle_status"), NULL, ngx_http_dthrottle_status_variable, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },
    { ngx_string("dthrottle_remaining"), NULL, ngx_http_dthrottle_remaining_variable, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },
    { ngx_string("dthrottle_retry_after"), NULL, ngx_http_dthrottle_retry_after_variable, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },
    ngx_http_null_variable
};

ngx_int_t
ngx_http_dthrottle_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *variable, *known;

    for (known = ngx_http_dthrottle_variables; known->name.len; known++) {
        variable = ngx_http_add_variable(cf, &known->name, known->flags);
        if (variable == NULL) {
            return NGX_ERROR;
        }
        variable->get_handler = known->get_handler;
        variable->data = known->data;
    }
    return NGX_OK;
}
