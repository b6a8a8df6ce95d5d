/*
 * dthrottle_headers: the header fields of a response. With several limits, fields that are lists
 * have an item for each limit. Other fields show the limit that refused, or else the one with the
 * least units left.
 */
#include "ngx_http_dthrottle.h"

char *
ngx_http_dthrottle_headers(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                      *value = cf->args->elts;
    ngx_http_dthrottle_loc_conf_t  *lcf = conf;

    if (lcf->headers != NGX_CONF_UNSET) {
        return "is duplicate";
    }
    lcf->headers = dthrottle_header_kind((const char *) value[1].data, value[1].len);
    if (lcf->headers < 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\"; %V takes on, off, standard, draft-7, draft-6 "
                           "or x-ratelimit", &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

/*
 * Gets the figures of a limit after the request was charged. Returns NGX_DECLINED if the limit did
 * not apply.
 */
ngx_int_t
ngx_http_dthrottle_peek(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx, ngx_uint_t number,
    dthrottle_decision_t *decision)
{
    uint64_t                      reserved;
    ngx_str_t                     key;
    ngx_http_dthrottle_limit_t   *limit = ((ngx_http_dthrottle_limit_t **) ctx->limits->elts)[number];
    ngx_http_dthrottle_zone_t    *zone = limit->zone;

    if (limit == ctx->refusing) {
        *decision = ctx->decision;
        return NGX_OK;
    }
    if (ctx->keys != NULL) {
        key = ctx->keys[number];
    } else if (ngx_http_dthrottle_key(r, zone, &key) != NGX_OK) {
        return NGX_DECLINED;
    }
    if (key.len == 0 || zone->domain == NULL
        || dthrottle_peek(zone->domain, key.data, key.len, 0, decision) != DTHROTTLE_OK)
    {
        return NGX_DECLINED;
    }
    /* Units reserved for limits with a larger burst are not available to this limit. */
    reserved = zone->count != 0 ? zone->burst - limit->burst : 0;
    decision->remaining = decision->remaining > reserved ? decision->remaining - reserved : 0;
    return NGX_OK;
}

static ngx_table_elt_t *
ngx_http_dthrottle_find_field(ngx_http_request_t *r, ngx_str_t *name)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *field;

    for (part = &r->headers_out.headers.part; part != NULL; part = part->next) {
        field = part->elts;
        for (i = 0; i < part->nelts; i++) {
            if (field[i].hash != 0 && field[i].key.len == name->len
                && ngx_strncasecmp(field[i].key.data, name->data, name->len) == 0)
            {
                return &field[i];
            }
        }
    }
    return NULL;
}

/* Adds a field. If it exists already, appends the value to its list. */
static void
ngx_http_dthrottle_add_field(ngx_http_request_t *r, const dthrottle_field_t *added)
{
    u_char           *p;
    ngx_str_t         name, value;
    ngx_table_elt_t  *field;

    name.data = (u_char *) added->name;
    name.len = ngx_strlen(added->name);
    value.len = ngx_strlen(added->value);
    field = ngx_http_dthrottle_find_field(r, &name);
    if (field != NULL) {
        value.data = ngx_pnalloc(r->pool, field->value.len + 2 + value.len);
        if (value.data != NULL) {
            p = ngx_cpymem(value.data, field->value.data, field->value.len);
            p = ngx_cpymem(p, ", ", 2);
            ngx_memcpy(p, added->value, value.len);
            value.len += field->value.len + 2;
            field->value = value;
        }
        return;
    }
    p = ngx_pnalloc(r->pool, name.len + value.len);
    field = p != NULL ? ngx_list_push(&r->headers_out.headers) : NULL;
    if (field == NULL) {
        return;
    }
    ngx_memzero(field, sizeof(ngx_table_elt_t));
    field->hash = 1;
    field->key.data = p;
    field->key.len = name.len;
    field->value.data = ngx_cpymem(p, name.data, name.len);
    field->value.len = value.len;
    ngx_memcpy(field->value.data, added->value, value.len);
}

static void
ngx_http_dthrottle_add_decision(ngx_http_request_t *r, ngx_int_t kind,
    ngx_http_dthrottle_limit_t *limit, dthrottle_decision_t *decision)
{
    size_t                i;
    dthrottle_response_t  response = DTHROTTLE_RESPONSE_INIT;

    dthrottle_header_fields(limit->zone->domain, (int32_t) kind, decision, &response);
    for (i = 0; i < response.field_count; i++) {
        ngx_http_dthrottle_add_field(r, &response.fields[i]);
    }
    dthrottle_response_free(&response);
}

/* Adds the fields for all limits that a request was checked against. */
void
ngx_http_dthrottle_add_fields(ngx_http_request_t *r, ngx_int_t kind, ngx_http_dthrottle_ctx_t *ctx)
{
    ngx_uint_t                    i;
    ngx_flag_t                    is_list = kind == DTHROTTLE_HEADERS_STANDARD;
    dthrottle_decision_t          decision = DTHROTTLE_DECISION_INIT, least = decision;
    ngx_http_dthrottle_limit_t  **limits = ctx->limits->elts, *shown = NULL;

    for (i = 0; i < ctx->limits->nelts; i++) {
        if (ngx_http_dthrottle_peek(r, ctx, i, &decision) != NGX_OK) {
            continue;
        }
        /* A request that is not refused gets no Retry-After. */
        decision.allowed |= ctx->status != NGX_HTTP_DTHROTTLE_REJECTED;
        if (is_list) {
            ngx_http_dthrottle_add_decision(r, kind, limits[i], &decision);
        } else if (shown == NULL || limits[i] == ctx->refusing
                   || (shown != ctx->refusing && decision.remaining < least.remaining))
        {
            shown = limits[i];
            least = decision;
        }
    }
    if (shown != NULL) {
        ngx_http_dthrottle_add_decision(r, kind, shown, &least);
    }
}

/* The value of Retry-After, in the memory of the request. */
ngx_int_t
ngx_http_dthrottle_retry_after(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    ngx_str_t *value)
{
    ngx_str_t             text = ngx_null_string;
    dthrottle_response_t  response = DTHROTTLE_RESPONSE_INIT;

    dthrottle_header_fields(ctx->refusing->zone->domain, DTHROTTLE_HEADERS_NONE, &ctx->decision,
                            &response);
    if (response.field_count != 0) {
        text.data = (u_char *) response.fields[0].value;
        text.len = ngx_strlen(text.data);
    }
    value->len = text.len;
    value->data = ngx_pstrdup(r->pool, &text);
    dthrottle_response_free(&response);
    return value->data != NULL ? NGX_OK : NGX_ERROR;
}
