/*
 * Builds the configuration of the library from all directives and checks it. Only workers open
 * the throttle, so `nginx -t` creates no table.
 */
#include "ngx_http_dthrottle.h"

/* The size of a table if no zone and no directive sets one. */
#define NGX_HTTP_DTHROTTLE_DEFAULT_TAGS 1000000
#define NGX_HTTP_DTHROTTLE_MAX_RATE (NGX_INT64_LEN + sizeof("/s") - 1)

static ngx_int_t
ngx_http_dthrottle_zone_error(ngx_conf_t *cf, ngx_http_dthrottle_zone_t *zone, const char *what)
{
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "dthrottle zone \"%V\" %s in %V:%ui", &zone->name,
                  what, &zone->file, zone->line);
    return NGX_ERROR;
}

/* The time in which a bucket of this many units fills, rounded up. */
static uint64_t
ngx_http_dthrottle_fill_ns(ngx_http_dthrottle_zone_t *zone, uint64_t units)
{
    unsigned __int128  time;

    time = ((unsigned __int128) units * zone->unit_ns + zone->count - 1) / zone->count;
    return time < UINT64_MAX ? (uint64_t) time : UINT64_MAX;
}

static ngx_int_t
ngx_http_dthrottle_finish_use(ngx_conf_t *cf, ngx_http_dthrottle_main_conf_t *mcf,
    ngx_http_dthrottle_limit_t *limit)
{
    ngx_http_dthrottle_zone_t  *zone = limit->zone;

    limit->free_ns = UINT64_MAX;
    limit->most_ns = UINT64_MAX;
    if (zone->count == 0) {
        if (limit->burst != 0 || limit->delay != 0) {
            return ngx_http_dthrottle_zone_error(cf, zone, "has the rules of a file, which set "
                                                 "the burst; remove burst, nodelay and delay");
        }
        return NGX_OK;
    }
    if (limit->max_delay_ns != 0) {
        return ngx_http_dthrottle_zone_error(cf, zone, "has a rate, so burst and delay determine "
                                             "the longest delay; remove max_delay");
    }
    if (limit->delay != UINT64_MAX) {
        limit->free_ns = ngx_http_dthrottle_fill_ns(zone, limit->delay + 1);
    }
    if (limit->burst < zone->burst) {
        limit->most_ns = ngx_http_dthrottle_fill_ns(zone, limit->burst + 1);
        limit->step_ns = zone->unit_ns / zone->count;
    }
    /* A file may set dry run, which needs the full check. */
    if (limit->most_ns == UINT64_MAX && mcf->text.len == 0 && limit->passed->limits->nelts == 1) {
        limit->passed->simple = limit;
    }
    return NGX_OK;
}

/* A zone with a rate is a domain with one rule. */
static ngx_int_t
ngx_http_dthrottle_add_zone(ngx_conf_t *cf, ngx_http_dthrottle_main_conf_t *mcf,
    ngx_http_dthrottle_zone_t *zone)
{
    u_char            text[NGX_HTTP_DTHROTTLE_MAX_RATE], *last;
    int32_t           count, status;
    const char       *name = (const char *) zone->name.data;
    dthrottle_rule_t  rule = DTHROTTLE_RULE_INIT;

    if (!zone->is_defined) {
        return ngx_http_dthrottle_zone_error(cf, zone, "is used, but no dthrottle_zone defines it");
    }
    count = dthrottle_config_rule_count(mcf->config, name, zone->name.len);
    if (zone->count == 0) {
        return count >= 0 ? NGX_OK
                          : ngx_http_dthrottle_zone_error(cf, zone, "has no rate, and the "
                                                          "dthrottle_config file has no domain "
                                                          "of this name");
    }
    if (count > 0) {
        return ngx_http_dthrottle_zone_error(cf, zone, "has a rate and also rules in the "
                                             "dthrottle_config file; remove one of them");
    }
    switch (zone->unit_ns / NGX_HTTP_DTHROTTLE_NS_PER_S) {
    case 1:
        last = ngx_sprintf(text, "%uL/s", zone->count);
        break;
    case 60:
        last = ngx_sprintf(text, "%uL/m", zone->count);
        break;
    case 60 * 60:
        last = ngx_sprintf(text, "%uL/h", zone->count);
        break;
    default:
        last = ngx_sprintf(text, "%uL/d", zone->count);
    }
    rule.rate = (const char *) text;
    rule.rate_len = last - text;
    rule.burst = zone->burst + 1;
    status = dthrottle_config_add_rule(mcf->config, name, zone->name.len, &rule);
    return status == DTHROTTLE_OK
           ? NGX_OK : ngx_http_dthrottle_zone_error(cf, zone, dthrottle_status_text(status));
}

/* Sets the table of the directive or of the file. The default name is a hash of our paths. */
static ngx_int_t
ngx_http_dthrottle_add_table(ngx_conf_t *cf, ngx_http_dthrottle_main_conf_t *mcf)
{
    u_char                       name[sizeof("nginx-00000000") - 1];
    uint64_t                     tags = 0;
    uint32_t                     number;
    ngx_uint_t                   i;
    ngx_flag_t                   has_all = 1;
    ngx_http_dthrottle_zone_t  **zones;

    zones = mcf->zones.elts;
    for (i = 0; i < mcf->zones.nelts; i++) {
        tags += zones[i]->tags;
        has_all &= zones[i]->tags != 0;
    }
    /* A zone without a size needs the default size of a table. */
    if (!has_all && tags < NGX_HTTP_DTHROTTLE_DEFAULT_TAGS) {
        tags = 0;
    }
    if (mcf->table.tags == 0 && mcf->table.bytes == 0) {
        mcf->table.tags = tags;
    }
    if (mcf->has_table || (mcf->table.tags != 0 && mcf->text.len == 0)) {
        if (dthrottle_config_set_table(mcf->config, &mcf->table) != DTHROTTLE_OK) {
            return NGX_ERROR;
        }
    }
    ngx_crc32_init(number);
    ngx_crc32_update(&number, cf->cycle->prefix.data, cf->cycle->prefix.len);
    ngx_crc32_update(&number, cf->cycle->conf_file.data, cf->cycle->conf_file.len);
    ngx_crc32_final(number);
    ngx_sprintf(name, "nginx-%08xD", number);
    return dthrottle_config_name_table(mcf->config, (const char *) name, sizeof(name))
           == DTHROTTLE_OK ? NGX_OK : NGX_ERROR;
}

ngx_int_t
ngx_http_dthrottle_build(ngx_conf_t *cf, ngx_http_dthrottle_main_conf_t *mcf)
{
    char                          error[NGX_HTTP_DTHROTTLE_ERROR];
    ngx_uint_t                    i;
    ngx_http_dthrottle_zone_t   **zones;
    ngx_http_dthrottle_limit_t  **uses;
    ngx_str_t                     name = ngx_string("dthrottle_context");

    mcf->ctx_index = ngx_http_get_variable_index(cf, &name);
    if (mcf->ctx_index == NGX_ERROR) {
        return NGX_ERROR;
    }
    if (mcf->zones.nelts == 0) {
        return NGX_OK;
    }
    if (dthrottle_config_new(&mcf->config) != DTHROTTLE_OK) {
        return NGX_ERROR;
    }
    if (mcf->text.len != 0
        && dthrottle_config_toml(mcf->config, (const char *) mcf->text.data, mcf->text.len, error,
                                 sizeof(error)) != DTHROTTLE_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "dthrottle: %s", error);
        return NGX_ERROR;
    }
    if (mcf->nsettings != 0
        && dthrottle_config_set_cluster(mcf->config, mcf->settings, mcf->setting_lens,
                                        mcf->nsettings, error, sizeof(error)) != DTHROTTLE_OK)
    {
        /* Each directive was valid on its own, so the error is a conflict of both. */
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "dthrottle_config \"%V\" and dthrottle_cluster "
                      "contradict each other: %s", &mcf->path, error);
        return NGX_ERROR;
    }
    zones = mcf->zones.elts;
    for (i = 0; i < mcf->zones.nelts; i++) {
        if (ngx_http_dthrottle_add_zone(cf, mcf, zones[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    uses = mcf->uses.elts;
    for (i = 0; i < mcf->uses.nelts; i++) {
        if (ngx_http_dthrottle_finish_use(cf, mcf, uses[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    if (ngx_http_dthrottle_add_table(cf, mcf) != NGX_OK) {
        return NGX_ERROR;
    }
    if (dthrottle_config_check(mcf->config, error, sizeof(error)) != DTHROTTLE_OK) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "dthrottle: %s", error);
        return NGX_ERROR;
    }
    return NGX_OK;
}
