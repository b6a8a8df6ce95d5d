/*
 * Variables about a request, for logs and headers: $dthrottle_status, $dthrottle_remaining and
 * $dthrottle_retry_after. They are not found if no limit applied. $dthrottle_context has no value;
 * the module stores the context of a request in its place.
 */
#include "ngx_http_dthrottle.h"

static const ngx_str_t  ngx_http_dthrottle_statuses[] = {
    ngx_string("PASSED"),
    ngx_string("DELAYED"),
    ngx_string("REJECTED"),
    ngx_string("DELAYED_DRY_RUN"),
    ngx_string("REJECTED_DRY_RUN")
};

#define ngx_http_dthrottle_main_conf(r) \
    ((ngx_http_dthrottle_main_conf_t *) \
     ngx_http_get_module_main_conf(r, ngx_http_dthrottle_module))

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
    ctx = ngx_http_dthrottle_get_ctx(r, ngx_http_dthrottle_main_conf(r));
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

/* The least remaining units of all limits. */
static uint64_t
ngx_http_dthrottle_remaining(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx)
{
    uint64_t              least = UINT64_MAX;
    ngx_uint_t            i;
    dthrottle_decision_t  decision = DTHROTTLE_DECISION_INIT;

    if (ctx->refusing != NULL) {
        return 0;
    }
    for (i = 0; i < ctx->limits->nelts; i++) {
        if (ngx_http_dthrottle_peek(r, ctx, i, &decision) == NGX_OK) {
            least = decision.remaining < least ? decision.remaining : least;
        }
    }
    return least;
}

static ngx_int_t
ngx_http_dthrottle_remaining_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    uint64_t                   remaining;
    ngx_http_dthrottle_ctx_t  *ctx;

    (void) data;
    ctx = ngx_http_dthrottle_get_ctx(r, ngx_http_dthrottle_main_conf(r));
    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }
    remaining = ngx_http_dthrottle_remaining(r, ctx);
    /* A domain without rules has no limit. */
    if (remaining == UINT64_MAX) {
        v->not_found = 1;
        return NGX_OK;
    }
    return ngx_http_dthrottle_number(r, v, remaining);
}

/* Whole seconds, as in Retry-After. */
static ngx_int_t
ngx_http_dthrottle_retry_after_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t                  value;
    ngx_http_dthrottle_ctx_t  *ctx;

    (void) data;
    ctx = ngx_http_dthrottle_get_ctx(r, ngx_http_dthrottle_main_conf(r));
    if (ctx == NULL || ctx->status != NGX_HTTP_DTHROTTLE_REJECTED) {
        v->not_found = 1;
        return NGX_OK;
    }
    if (ngx_http_dthrottle_retry_after(r, ctx, &value) != NGX_OK) {
        return NGX_ERROR;
    }
    ngx_http_dthrottle_found(v, value.data, value.len);
    return NGX_OK;
}

static ngx_int_t
ngx_http_dthrottle_context_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    (void) r;
    (void) data;
    /* Does not touch v->data, which is the context. */
    v->not_found = 1;
    return NGX_OK;
}

static ngx_http_variable_t  ngx_http_dthrottle_variables[] = {
    { ngx_string("dthrottle_context"), NULL, ngx_http_dthrottle_context_variable, 0, 0, 0 },
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
