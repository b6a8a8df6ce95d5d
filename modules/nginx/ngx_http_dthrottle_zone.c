/*
 * dthrottle_zone and dthrottle: a rate for a key, and its use. Their syntax is that of
 * limit_req_zone and limit_req. A zone may be used before it is defined.
 */
#include "ngx_http_dthrottle.h"

/* The bytes that limit_req needs for a key. */
#define NGX_HTTP_DTHROTTLE_LIMIT_REQ_KEY 128

#define ngx_http_dthrottle_is(value, name) \
    ((value)->len > sizeof(name) - 1 && ngx_strncmp((value)->data, name, sizeof(name) - 1) == 0)

static ngx_http_dthrottle_zone_t *
ngx_http_dthrottle_zone_of(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_uint_t                       i;
    ngx_http_dthrottle_zone_t      **zones, **added, *zone;
    ngx_http_dthrottle_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dthrottle_module);
    zones = mcf->zones.elts;
    for (i = 0; i < mcf->zones.nelts; i++) {
        if (zones[i]->name.len == name->len
            && ngx_memcmp(zones[i]->name.data, name->data, name->len) == 0)
        {
            return zones[i];
        }
    }
    zone = ngx_pcalloc(cf->pool, sizeof(ngx_http_dthrottle_zone_t));
    added = ngx_array_push(&mcf->zones);
    if (zone == NULL || added == NULL) {
        return NULL;
    }
    zone->name = *name;
    zone->file = cf->conf_file->file.name;
    zone->line = cf->conf_file->line;
    *added = zone;
    return zone;
}

/*
 * The index of the variable if a key is a single variable, which need not be copied; or NGX_ERROR.
 */
static ngx_int_t
ngx_http_dthrottle_variable_of(ngx_conf_t *cf, ngx_str_t *key)
{
    size_t     i;
    u_char     c;
    ngx_str_t  name;

    if (key->len < 2 || key->data[0] != '$') {
        return NGX_ERROR;
    }
    name.data = key->data + 1;
    name.len = key->len - 1;
    for (i = 0; i < name.len; i++) {
        c = name.data[i] | 0x20;
        if (!(c >= 'a' && c <= 'z') && !(name.data[i] >= '0' && name.data[i] <= '9')
            && name.data[i] != '_')
        {
            return NGX_ERROR;
        }
    }
    /* A number names a capture of a regular expression, not a variable. */
    return name.data[0] >= '0' && name.data[0] <= '9' ? NGX_ERROR
                                                      : ngx_http_get_variable_index(cf, &name);
}

/* Reads a rate such as 10r/s, 30r/m, 1000r/h or 1r/d. */
static ngx_int_t
ngx_http_dthrottle_rate(ngx_str_t *text, ngx_http_dthrottle_zone_t *zone)
{
    size_t     len;
    ngx_int_t  count;

    if (text->len < sizeof("1r/s") - 1) {
        return NGX_ERROR;
    }
    len = text->len - (sizeof("r/s") - 1);
    if (text->data[len] != 'r' || text->data[len + 1] != '/') {
        return NGX_ERROR;
    }
    switch (text->data[len + 2]) {
    case 's':
        zone->unit_ns = 1;
        break;
    case 'm':
        zone->unit_ns = 60;
        break;
    case 'h':
        zone->unit_ns = 60 * 60;
        break;
    case 'd':
        zone->unit_ns = 24 * 60 * 60;
        break;
    default:
        return NGX_ERROR;
    }
    zone->unit_ns *= NGX_HTTP_DTHROTTLE_NS_PER_S;
    count = ngx_atoi(text->data, len);
    if (count <= 0) {
        return NGX_ERROR;
    }
    zone->count = count;
    return NGX_OK;
}

/* Reads a name, or a name and a size as name:size. */
static char *
ngx_http_dthrottle_zone_name(ngx_conf_t *cf, ngx_str_t *text, ngx_str_t *name, uint64_t *tags)
{
    u_char    *colon;
    ssize_t    size;
    ngx_str_t  written;

    *name = *text;
    colon = ngx_strlchr(text->data, text->data + text->len, ':');
    if (colon != NULL) {
        name->len = colon - text->data;
        written.data = colon + 1;
        written.len = text->data + text->len - written.data;
        size = ngx_parse_size(&written);
        if (size < (ssize_t) (8 * ngx_pagesize)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid zone size \"%V\"; write at least %uz bytes, such as "
                               "zone=name:10m, or leave it out", &written, 8 * ngx_pagesize);
            return NGX_CONF_ERROR;
        }
        *tags = size / NGX_HTTP_DTHROTTLE_LIMIT_REQ_KEY;
    }
    if (name->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "the zone has no name; write zone=name");
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

char *
ngx_http_dthrottle_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    uint64_t                           tags = 0;
    ngx_str_t                         *value, text, name, rate;
    ngx_uint_t                         i;
    ngx_http_dthrottle_zone_t         *zone;
    ngx_http_compile_complex_value_t   ccv;

    (void) conf;
    value = cf->args->elts;
    ngx_str_null(&name);
    ngx_str_null(&rate);

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_dthrottle_is(&value[i], "zone=")) {
            text.data = value[i].data + sizeof("zone=") - 1;
            text.len = value[i].len - (sizeof("zone=") - 1);
            if (ngx_http_dthrottle_zone_name(cf, &text, &name, &tags) != NGX_CONF_OK) {
                return NGX_CONF_ERROR;
            }
        } else if (ngx_http_dthrottle_is(&value[i], "rate=")) {
            rate.data = value[i].data + sizeof("rate=") - 1;
            rate.len = value[i].len - (sizeof("rate=") - 1);
        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"; %V takes zone=name and rate=10r/s",
                               &value[i], &cmd->name);
            return NGX_CONF_ERROR;
        }
    }
    if (name.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" must have a \"zone\" parameter",
                           &cmd->name);
        return NGX_CONF_ERROR;
    }
    zone = ngx_http_dthrottle_zone_of(cf, &name);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }
    if (zone->is_defined) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V \"%V\" is already defined in %V:%ui",
                           &cmd->name, &name, &zone->file, zone->line);
        return NGX_CONF_ERROR;
    }
    if (rate.len != 0 && ngx_http_dthrottle_rate(&rate, zone) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid rate \"%V\"; write a number and r/s, r/m, r/h or r/d, such "
                           "as rate=10r/s", &rate);
        return NGX_CONF_ERROR;
    }
    ngx_memzero(&ccv, sizeof(ccv));
    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = &zone->key;
    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    zone->index = ngx_http_dthrottle_variable_of(cf, &value[1]);
    zone->tags = tags;
    zone->is_defined = 1;
    zone->file = cf->conf_file->file.name;
    zone->line = cf->conf_file->line;
    return NGX_CONF_OK;
}

static char *
ngx_http_dthrottle_both_delays(ngx_conf_t *cf)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "only one of nodelay and delay= is possible; "
                       "nodelay delays no request, delay=8 all but the first 8 beyond the rate");
    return NGX_CONF_ERROR;
}

/* Reads a parameter of `dthrottle` other than the zone. */
static char *
ngx_http_dthrottle_option(ngx_conf_t *cf, ngx_str_t *value, ngx_http_dthrottle_limit_t *limit)
{
    ngx_str_t  text;
    ngx_int_t  number;

    if (value->len == sizeof("nodelay") - 1
        && ngx_strncmp(value->data, "nodelay", sizeof("nodelay") - 1) == 0)
    {
        if (limit->delay != 0) {
            return ngx_http_dthrottle_both_delays(cf);
        }
        limit->delay = UINT64_MAX;
        return NGX_CONF_OK;
    }
    if (ngx_http_dthrottle_is(value, "burst=")) {
        number = ngx_atoi(value->data + sizeof("burst=") - 1, value->len - (sizeof("burst=") - 1));
        if (number < 0 || number > NGX_HTTP_DTHROTTLE_MAX_BURST) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid burst \"%V\"; write burst=0 to burst=%L", value,
                               (int64_t) NGX_HTTP_DTHROTTLE_MAX_BURST);
            return NGX_CONF_ERROR;
        }
        limit->burst = number;
        return NGX_CONF_OK;
    }
    if (ngx_http_dthrottle_is(value, "delay=")) {
        number = ngx_atoi(value->data + sizeof("delay=") - 1, value->len - (sizeof("delay=") - 1));
        if (number <= 0 || number > NGX_HTTP_DTHROTTLE_MAX_BURST) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid delay \"%V\"; write how many requests beyond the rate "
                               "are not delayed, such as delay=8", value);
            return NGX_CONF_ERROR;
        }
        if (limit->delay != 0) {
            return ngx_http_dthrottle_both_delays(cf);
        }
        limit->delay = number;
        return NGX_CONF_OK;
    }
    if (ngx_http_dthrottle_is(value, "max_delay=")) {
        text.data = value->data + sizeof("max_delay=") - 1;
        text.len = value->len - (sizeof("max_delay=") - 1);
        number = ngx_parse_time(&text, 0);
        /* The second condition is the longest time of a timer. */
        if (number <= 0 || number > NGX_MAX_INT32_VALUE) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid max_delay \"%V\"; write a time, such as "
                               "max_delay=500ms or max_delay=5s", value);
            return NGX_CONF_ERROR;
        }
        limit->max_delay_ns = (uint64_t) number * NGX_HTTP_DTHROTTLE_NS_PER_MS;
        return NGX_CONF_OK;
    }
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\"; dthrottle takes zone=name, burst=20, nodelay "
                       "or delay=8, and max_delay=5s where the rules are those of a file", value);
    return NGX_CONF_ERROR;
}

char *
ngx_http_dthrottle_use(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dthrottle_loc_conf_t   *lcf = conf;
    ngx_str_t                       *value, name;
    ngx_uint_t                       i;
    ngx_flag_t                       is_off;
    ngx_http_dthrottle_limit_t      *limit, **added, **limits;
    ngx_http_dthrottle_main_conf_t  *mcf;

    value = cf->args->elts;
    /* `off` also turns off inherited limits. */
    is_off = cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0;
    if (lcf->limits == NULL) {
        lcf->limits = ngx_array_create(cf->pool, 1, sizeof(void *));
        lcf->passed = ngx_pcalloc(cf->pool, sizeof(ngx_http_dthrottle_ctx_t));
        if (lcf->limits == NULL || lcf->passed == NULL) {
            return NGX_CONF_ERROR;
        }
        lcf->passed->limits = lcf->limits;
    } else if (is_off || lcf->limits->nelts == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V off\" and another \"%V\" exclude each "
                           "other", &cmd->name, &cmd->name);
        return NGX_CONF_ERROR;
    }
    if (is_off) {
        return NGX_CONF_OK;
    }
    limit = ngx_pcalloc(cf->pool, sizeof(ngx_http_dthrottle_limit_t));
    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }
    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_dthrottle_is(&value[i], "zone=")) {
            name.data = value[i].data + sizeof("zone=") - 1;
            name.len = value[i].len - (sizeof("zone=") - 1);
            limit->zone = ngx_http_dthrottle_zone_of(cf, &name);
            if (limit->zone == NULL) {
                return NGX_CONF_ERROR;
            }
        } else if (ngx_http_dthrottle_option(cf, &value[i], limit) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
    }
    if (limit->zone == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" must have a \"zone\" parameter",
                           &cmd->name);
        return NGX_CONF_ERROR;
    }
    limit->passed = lcf->passed;
    limits = lcf->limits->elts;
    for (i = 0; i < lcf->limits->nelts; i++) {
        if (limits[i]->zone == limit->zone) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" must be used only once here",
                               &limit->zone->name);
            return NGX_CONF_ERROR;
        }
    }
    if (limit->zone->burst < limit->burst) {
        limit->zone->burst = limit->burst;
    }
    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_dthrottle_module);
    added = ngx_array_push(&mcf->uses);
    if (added == NULL) {
        return NGX_CONF_ERROR;
    }
    *added = limit;
    added = ngx_array_push(lcf->limits);
    if (added == NULL) {
        return NGX_CONF_ERROR;
    }
    *added = limit;
    return NGX_CONF_OK;
}
