/*
 * Checks a request once, in the preaccess phase. A delayed request is charged immediately and waits
 * on a timer. A client that leaves before its turn gets a refund.
 */
#include "ngx_http_dthrottle.h"

/* Keeps rare code apart from the code for requests that pass. */
#define NGX_HTTP_DTHROTTLE_COLD __attribute__((noinline))

/* Delays are logged one level lower than refusals. */
#define ngx_http_dthrottle_delay_level(lcf) \
    ((lcf)->log_level == NGX_LOG_INFO ? NGX_LOG_INFO : (lcf)->log_level + 1)

static void ngx_http_dthrottle_delay(ngx_http_request_t *r);
static void ngx_http_dthrottle_refund(ngx_http_dthrottle_ctx_t *ctx, ngx_uint_t count);

/* Runs when the memory of a request is freed. The request may still be waiting. */
static void
ngx_http_dthrottle_cleanup(void *data)
{
    ngx_http_dthrottle_ctx_t  *ctx = data;

    if (ctx->is_waiting) {
        ctx->is_waiting = 0;
        ngx_http_dthrottle_refund(ctx, ctx->limits->nelts);
    }
}

/* Logs the first failure of a zone. A zone that fails lets requests pass. */
NGX_HTTP_DTHROTTLE_COLD static void
ngx_http_dthrottle_failed(ngx_http_request_t *r, ngx_http_dthrottle_zone_t *zone, int32_t status)
{
    if (!zone->has_failed) {
        zone->has_failed = 1;
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "dthrottle zone \"%V\": %s; requests pass", &zone->name,
                      dthrottle_status_text(status));
    }
}

/* Logs once if a refusal comes from a bucket that an earlier start of the server left. */
NGX_HTTP_DTHROTTLE_COLD static void
ngx_http_dthrottle_log_earlier_process(ngx_http_request_t *r, ngx_http_dthrottle_limit_t *limit,
    ngx_str_t *key)
{
    char                            text[NGX_HTTP_DTHROTTLE_ERROR];
    ngx_http_dthrottle_loc_conf_t  *lcf;

    if (dthrottle_earlier_process_warning(limit->zone->domain, key->data, key->len, text,
                                          sizeof(text))
        == 1)
    {
        lcf = ngx_http_get_module_loc_conf(r, ngx_http_dthrottle_module);
        ngx_log_error(lcf->log_level, r->connection->log, 0, "dthrottle: %s", text);
    }
}

/* Whether the limit refuses. */
static ngx_flag_t
ngx_http_dthrottle_refuses(ngx_http_request_t *r, ngx_http_dthrottle_limit_t *limit,
    ngx_str_t *key, ngx_flag_t take, dthrottle_decision_t *decision)
{
    int32_t                    status;
    uint64_t                   after_ns;
    ngx_flag_t                 is_refused;
    dthrottle_check_options_t  options = DTHROTTLE_CHECK_OPTIONS_INIT;

    if (limit->max_delay_ns != 0) {
        options.max_delay_ns = limit->max_delay_ns;
        status = take ? dthrottle_check_with(limit->zone->domain, key->data, key->len, &options,
                                             decision)
                      : dthrottle_peek_with(limit->zone->domain, key->data, key->len, &options,
                                            decision);
    } else {
        status = take ? dthrottle_check(limit->zone->domain, key->data, key->len, 1, decision)
                      : dthrottle_peek(limit->zone->domain, key->data, key->len, 1, decision);
    }
    if (status != DTHROTTLE_OK) {
        ngx_http_dthrottle_failed(r, limit->zone, status);
    }
    is_refused = !decision->allowed || decision->rule >= 0;
    if (is_refused) {
        ngx_http_dthrottle_log_earlier_process(r, limit, key);
    }
    if (limit->most_ns == UINT64_MAX) {
        return is_refused;
    }
    /* The bucket does not contain this request yet if it was only peeked at, or refused. */
    after_ns = decision->reset_after_ns + (take && !is_refused ? 0 : limit->step_ns);
    if (after_ns <= limit->most_ns) {
        return is_refused;
    }
    /* This limit has a smaller burst than the zone's bucket. */
    decision->retry_after_ns = after_ns - limit->most_ns;
    if (take && !is_refused) {
        dthrottle_refund(limit->zone->domain, key->data, key->len, 1);
    }
    return 1;
}

/* Refunds the first `count` limits. */
static void
ngx_http_dthrottle_refund(ngx_http_dthrottle_ctx_t *ctx, ngx_uint_t count)
{
    ngx_uint_t                    i;
    ngx_http_dthrottle_limit_t  **limit = ctx->limits->elts;

    for (i = 0; i < count; i++) {
        if (ctx->keys[i].len != 0 && limit[i]->zone->domain != NULL) {
            dthrottle_refund(limit[i]->zone->domain, ctx->keys[i].data, ctx->keys[i].len, 1);
        }
    }
}

static ngx_int_t
ngx_http_dthrottle_reject(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    ngx_http_dthrottle_limit_t *limit, dthrottle_decision_t *decision)
{
    ngx_flag_t                      dry_run;
    ngx_http_dthrottle_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_dthrottle_module);
    dry_run = lcf->dry_run || limit->zone->dry_run;
    ctx->refusing = limit;
    ctx->decision = *decision;
    ctx->decision.allowed = 0;
    if (decision->rule < 0) {
        /*
         * A limit with a smaller burst than the bucket refused, or the bucket has refilled since.
         */
        ctx->decision.rule = (int32_t) decision->deciding;
        ctx->decision.remaining = 0;
    }
    ngx_log_error(lcf->log_level, r->connection->log, 0,
                  "limiting requests%s, retry after %uL.%03uLs, by zone \"%V\"",
                  dry_run ? ", dry run" : "",
                  decision->retry_after_ns / NGX_HTTP_DTHROTTLE_NS_PER_S,
                  decision->retry_after_ns / NGX_HTTP_DTHROTTLE_NS_PER_MS % 1000,
                  &limit->zone->name);
    if (dry_run) {
        ctx->status = NGX_HTTP_DTHROTTLE_REJECTED_DRY_RUN;
        return NGX_DECLINED;
    }
    ctx->status = NGX_HTTP_DTHROTTLE_REJECTED;
    return lcf->status;
}

/* Logs a delay that dry run skips. */
static void
ngx_http_dthrottle_log_dry_run_delay(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    uint64_t delay_ns)
{
    ngx_http_dthrottle_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_dthrottle_module);
    ngx_log_error(ngx_http_dthrottle_delay_level(lcf), r->connection->log, 0,
                  "delaying request, dry run, by %uLms", delay_ns / NGX_HTTP_DTHROTTLE_NS_PER_MS);
    if (ctx->status == NGX_HTTP_DTHROTTLE_PASSED) {
        ctx->status = NGX_HTTP_DTHROTTLE_DELAYED_DRY_RUN;
    }
}

/*
 * Checks all limits. Returns the one that refuses, or NULL and the longest delay. Several limits
 * are peeked at first, so that nothing is charged if one of them refuses.
 */
static ngx_http_dthrottle_limit_t *
ngx_http_dthrottle_check_limits(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    ngx_uint_t active, dthrottle_decision_t *decision, uint64_t *delay_ns)
{
    uint64_t                      delay;
    ngx_uint_t                    i;
    ngx_flag_t                    take;
    ngx_http_dthrottle_limit_t  **limit = ctx->limits->elts;

    *delay_ns = 0;
    for (take = 0; take <= 1; take++) {
        for (i = 0; i < ctx->limits->nelts; i++) {
            if (ctx->keys[i].len == 0) {
                continue;
            }
            if (!take && active == 1 && limit[i]->most_ns == UINT64_MAX) {
                break;
            }
            if (ngx_http_dthrottle_refuses(r, limit[i], &ctx->keys[i], take, decision)) {
                if (limit[i]->zone->dry_run) {
                    /*
                     * Dry run of one domain. It charged nothing, and the other limits still apply.
                     */
                    if (take) {
                        ngx_http_dthrottle_reject(r, ctx, limit[i], decision);
                        ctx->keys[i].len = 0;
                    }
                    continue;
                }
                if (take) {
                    ngx_http_dthrottle_refund(ctx, i);
                }
                return limit[i];
            }
            if (!take) {
                continue;
            }
            delay = decision->delay_ns;
            if (decision->reset_after_ns > limit[i]->free_ns) {
                delay = decision->reset_after_ns - limit[i]->free_ns;
            }
            if (limit[i]->zone->dry_run) {
                if (decision->dry_run || delay != 0) {
                    ngx_http_dthrottle_log_dry_run_delay(r, ctx,
                                              delay != 0 ? delay : decision->retry_after_ns);
                }
                continue;
            }
            *delay_ns = delay > *delay_ns ? delay : *delay_ns;
        }
    }
    return NULL;
}

/* Refuses after a check without a decision: peeks for the time to retry. */
NGX_HTTP_DTHROTTLE_COLD static ngx_int_t
ngx_http_dthrottle_refuse(ngx_http_request_t *r, ngx_http_dthrottle_main_conf_t *mcf,
    ngx_http_dthrottle_limit_t *limit, ngx_str_t *key)
{
    dthrottle_decision_t            decision = DTHROTTLE_DECISION_INIT;
    ngx_http_dthrottle_ctx_t       *ctx;
    ngx_http_dthrottle_loc_conf_t  *lcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_dthrottle_module);
    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_dthrottle_ctx_t));
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ctx->limits = lcf->limits;
    ngx_http_dthrottle_set_ctx(r, mcf, ctx);
    dthrottle_peek(limit->zone->domain, key->data, key->len, 1, &decision);
    ngx_http_dthrottle_log_earlier_process(r, limit, key);
    return ngx_http_dthrottle_reject(r, ctx, limit, &decision);
}

/* Creates a context with all keys. Returns NULL if there is no memory. */
static ngx_http_dthrottle_ctx_t *
ngx_http_dthrottle_make_ctx(ngx_http_request_t *r, ngx_array_t *limits, ngx_uint_t *active)
{
    ngx_uint_t                    i;
    ngx_http_dthrottle_ctx_t     *ctx;
    ngx_http_dthrottle_limit_t  **limit = limits->elts;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_dthrottle_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }
    ctx->limits = limits;
    ctx->keys = ngx_palloc(r->pool, limits->nelts * sizeof(ngx_str_t));
    if (ctx->keys == NULL) {
        return NULL;
    }
    *active = 0;
    for (i = 0; i < limits->nelts; i++) {
        if (ngx_http_dthrottle_key(r, limit[i]->zone, &ctx->keys[i]) != NGX_OK) {
            return NULL;
        }
        *active += ctx->keys[i].len != 0;
    }
    return ctx;
}

/* Delays the request by a timer of nginx. */
static ngx_int_t
ngx_http_dthrottle_start_delay(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    ngx_msec_t delay_ms)
{
    ngx_uint_t           i;
    ngx_pool_cleanup_t  *cleanup;

    /* The keys may be in a buffer that nginx reuses while the request waits. */
    for (i = 0; i < ctx->limits->nelts; i++) {
        ctx->keys[i].data = ngx_pstrdup(r->pool, &ctx->keys[i]);
        if (ctx->keys[i].data == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }
    cleanup = ngx_pool_cleanup_add(r->pool, 0);
    if (cleanup == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    cleanup->handler = ngx_http_dthrottle_cleanup;
    cleanup->data = ctx;
    ctx->status = NGX_HTTP_DTHROTTLE_DELAYED;
    ctx->is_waiting = 1;
    /* Notices a client that leaves during the delay, or has left before, which causes no event. */
    if (r->connection->read->ready) {
        ngx_post_event(r->connection->read, &ngx_posted_events);
    } else if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_dthrottle_delay;
    r->connection->write->delayed = 1;
    ngx_add_timer(r->connection->write, delay_ms);
    return NGX_AGAIN;
}

/* Refuses a request if `limit` is set, else delays it by delay_ns, if that is not 0. */
static ngx_int_t
ngx_http_dthrottle_conclude(ngx_http_request_t *r, ngx_http_dthrottle_ctx_t *ctx,
    ngx_http_dthrottle_limit_t *limit, dthrottle_decision_t *decision, uint64_t delay_ns)
{
    ngx_msec_t                      delay_ms;
    ngx_http_dthrottle_loc_conf_t  *lcf;

    if (limit != NULL) {
        return ngx_http_dthrottle_reject(r, ctx, limit, decision);
    }
    delay_ms = (delay_ns + NGX_HTTP_DTHROTTLE_NS_PER_MS / 2) / NGX_HTTP_DTHROTTLE_NS_PER_MS;
    if (delay_ms == 0) {
        return NGX_DECLINED;
    }
    lcf = ngx_http_get_module_loc_conf(r, ngx_http_dthrottle_module);
    if (lcf->dry_run) {
        ngx_http_dthrottle_log_dry_run_delay(r, ctx, delay_ns);
        return NGX_DECLINED;
    }
    ngx_log_error(ngx_http_dthrottle_delay_level(lcf), r->connection->log, 0,
                  "delaying request by %Mms", delay_ms);
    return ngx_http_dthrottle_start_delay(r, ctx, delay_ms);
}

/* Checks one limit that may delay. Most requests are neither delayed nor refused. */
static ngx_int_t
ngx_http_dthrottle_check_one(ngx_http_request_t *r, ngx_http_dthrottle_main_conf_t *mcf,
    ngx_http_dthrottle_limit_t *limit, ngx_str_t *key)
{
    ngx_flag_t                 is_refused;
    ngx_uint_t                 active;
    dthrottle_decision_t       decision = DTHROTTLE_DECISION_INIT;
    ngx_http_dthrottle_ctx_t  *ctx;

    is_refused = ngx_http_dthrottle_refuses(r, limit, key, 1, &decision);
    if (!is_refused && decision.reset_after_ns <= limit->free_ns) {
        ngx_http_dthrottle_set_ctx(r, mcf, limit->passed);
        return NGX_DECLINED;
    }
    ctx = ngx_http_dthrottle_make_ctx(r, limit->passed->limits, &active);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    ngx_http_dthrottle_set_ctx(r, mcf, ctx);
    return ngx_http_dthrottle_conclude(r, ctx, is_refused ? limit : NULL, &decision,
                                       decision.reset_after_ns - limit->free_ns);
}

/* Checks several limits, or one that needs a peek before it is charged. */
NGX_HTTP_DTHROTTLE_COLD static ngx_int_t
ngx_http_dthrottle_check_all(ngx_http_request_t *r, ngx_http_dthrottle_main_conf_t *mcf,
    ngx_http_dthrottle_loc_conf_t *lcf)
{
    uint64_t                     delay_ns;
    ngx_uint_t                   active;
    dthrottle_decision_t         decision = DTHROTTLE_DECISION_INIT;
    ngx_http_dthrottle_ctx_t    *ctx;
    ngx_http_dthrottle_limit_t  *limit;

    ctx = ngx_http_dthrottle_make_ctx(r, lcf->limits, &active);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (active == 0) {
        return NGX_DECLINED;
    }
    ngx_http_dthrottle_set_ctx(r, mcf, ctx);
    limit = ngx_http_dthrottle_check_limits(r, ctx, active, &decision, &delay_ns);
    return ngx_http_dthrottle_conclude(r, ctx, limit, &decision, delay_ns);
}

static ngx_inline ngx_int_t
ngx_http_dthrottle_check(ngx_http_request_t *r, ngx_http_dthrottle_main_conf_t *mcf,
    ngx_http_dthrottle_loc_conf_t *lcf)
{
    int32_t                      answer;
    ngx_str_t                    key;
    ngx_http_dthrottle_limit_t  *limit = lcf->passed->simple;

    if (limit == NULL) {
        return ngx_http_dthrottle_check_all(r, mcf, lcf);
    }
    if (ngx_http_dthrottle_key(r, limit->zone, &key) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    if (key.len == 0) {
        return NGX_DECLINED;
    }
    if (limit->free_ns != UINT64_MAX) {
        return ngx_http_dthrottle_check_one(r, mcf, limit, &key);
    }
    answer = dthrottle_allow(limit->zone->domain, key.data, key.len, 1);
    if (answer == 0) {
        return ngx_http_dthrottle_refuse(r, mcf, limit, &key);
    }
    if (answer < 0) {
        ngx_http_dthrottle_failed(r, limit->zone, answer);
    }
    ngx_http_dthrottle_set_ctx(r, mcf, lcf->passed);
    return NGX_DECLINED;
}

ngx_int_t
ngx_http_dthrottle_handler(ngx_http_request_t *r)
{
    ngx_int_t                        rc;
    ngx_http_dthrottle_ctx_t        *ctx;
    ngx_http_dthrottle_loc_conf_t   *lcf;
    ngx_http_dthrottle_main_conf_t  *mcf;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_dthrottle_module);
    if (lcf->passed == NULL) {
        return NGX_DECLINED;
    }
    mcf = ngx_http_get_module_main_conf(r, ngx_http_dthrottle_module);
    if (ngx_http_dthrottle_get_ctx(r, mcf) != NULL) {
        return NGX_DECLINED;
    }
    rc = ngx_http_dthrottle_check(r, mcf, lcf);
    ctx = ngx_http_dthrottle_get_ctx(r, mcf);
    if (lcf->headers != DTHROTTLE_HEADERS_NONE && ctx != NULL) {
        ngx_http_dthrottle_add_fields(r, lcf->headers, ctx);
    }
    return rc;
}

/* Handles an event of the connection, or the end of the delay. */
static void
ngx_http_dthrottle_delay(ngx_http_request_t *r)
{
    ngx_event_t                     *write = r->connection->write;
    ngx_http_dthrottle_ctx_t        *ctx;
    ngx_http_dthrottle_main_conf_t  *mcf;

    if (write->delayed) {
        if (ngx_handle_write_event(write, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }
        return;
    }
    mcf = ngx_http_get_module_main_conf(r, ngx_http_dthrottle_module);
    ctx = ngx_http_dthrottle_get_ctx(r, mcf);
    if (ctx != NULL) {
        ctx->is_waiting = 0;
    }
    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }
    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;
    ngx_http_core_run_phases(r);
}
