/*
 * dthrottle_table, dthrottle_cluster and dthrottle_config: directives for the whole server. Each
 * one is checked by the library when it is read, so that nginx adds its line to the error.
 */
#include "ngx_http_dthrottle.h"

#define NGX_HTTP_DTHROTTLE_MAX_FILE (1024 * 1024)

/* The type of a parameter in TOML. */
typedef enum {
    NGX_HTTP_DTHROTTLE_TEXT,
    NGX_HTTP_DTHROTTLE_LIST,
    NGX_HTTP_DTHROTTLE_NUMBER,
    NGX_HTTP_DTHROTTLE_FLAG,
    NGX_HTTP_DTHROTTLE_FILE
} ngx_http_dthrottle_kind_e;

typedef struct {
    ngx_str_t                  name;
    const char                *key;
    ngx_http_dthrottle_kind_e  kind;
} ngx_http_dthrottle_key_t;

static const ngx_http_dthrottle_key_t  ngx_http_dthrottle_keys[] = {
    { ngx_string("name="), "name", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("secret="), "secret", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("secret_file="), "secret", NGX_HTTP_DTHROTTLE_FILE },
    { ngx_string("packet_key="), "packet_keys", NGX_HTTP_DTHROTTLE_LIST },
    { ngx_string("without_secret="), "without_secret", NGX_HTTP_DTHROTTLE_FLAG },
    { ngx_string("listen="), "listen", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("advertise="), "advertise", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("peer="), "peers", NGX_HTTP_DTHROTTLE_LIST },
    { ngx_string("multicast="), "multicast", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("interface="), "interface", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("multicast_ttl="), "multicast_ttl", NGX_HTTP_DTHROTTLE_NUMBER },
    { ngx_string("period="), "period", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("reports="), "reports", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("tolerance="), "tolerance", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("pacing="), "pacing", NGX_HTTP_DTHROTTLE_FLAG },
    { ngx_string("retention="), "retention", NGX_HTTP_DTHROTTLE_TEXT },
    { ngx_string("retention_bytes="), "retention_bytes", NGX_HTTP_DTHROTTLE_TEXT },
};

#define NGX_HTTP_DTHROTTLE_KEYS \
    (sizeof(ngx_http_dthrottle_keys) / sizeof(ngx_http_dthrottle_keys[0]))

/* Lets the library check a text, of a file or of a directive, and a table. */
static char *
ngx_http_dthrottle_check_config(ngx_conf_t *cf, ngx_str_t *file, ngx_str_t *text,
    const dthrottle_table_t *table)
{
    char                 error[NGX_HTTP_DTHROTTLE_ERROR];
    const char          *message = error, *field;
    int32_t              status;
    ngx_str_t           *value;
    dthrottle_config_t  *config;
    dthrottle_rule_t     none = DTHROTTLE_RULE_INIT;

    if (dthrottle_config_new(&config) != DTHROTTLE_OK) {
        return NGX_CONF_ERROR;
    }
    error[0] = '\0';
    status = dthrottle_config_toml(config, (const char *) text->data, text->len, error,
                                   sizeof(error));
    if (status == DTHROTTLE_OK) {
        /* The rules may be in zones, so this configuration needs none. */
        none.rate = "unlimited";
        none.rate_len = sizeof("unlimited") - 1;
        status = dthrottle_config_add_rule(config, NULL, 0, &none);
    }
    if (status == DTHROTTLE_OK && table != NULL) {
        status = dthrottle_config_set_table(config, table);
        if (status == DTHROTTLE_OK && table->name == NULL) {
            status = dthrottle_config_name_table(config, "nginx", sizeof("nginx") - 1);
        }
    }
    if (status == DTHROTTLE_OK) {
        status = dthrottle_config_check(config, error, sizeof(error));
    }
    dthrottle_config_free(config);
    if (status == DTHROTTLE_OK) {
        return NGX_CONF_OK;
    }
    /* The number of the line is kept only if the text is a file. */
    field = ngx_strstr(error, ": ");
    if (file == NULL && ngx_strncmp(error, "line ", 5) == 0 && field != NULL) {
        message = field + 2;
    }
    value = cf->args->elts;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V: %s", file != NULL ? file : &value[0],
                       message[0] != '\0' ? message : dthrottle_status_text(status));
    return NGX_CONF_ERROR;
}

char *
ngx_http_dthrottle_table(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dthrottle_main_conf_t  *mcf = conf;
    u_char                          *last;
    ngx_str_t                       *value, text, none = ngx_null_string;
    ngx_uint_t                       i;
    off_t                            size;

    (void) cmd;
    if (mcf->has_table) {
        return "is duplicate";
    }
    mcf->has_table = 1;
    value = cf->args->elts;
    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_strncmp(value[i].data, "size=", 5) == 0) {
            text.data = value[i].data + 5;
            text.len = value[i].len - 5;
            size = ngx_parse_offset(&text);
            if (size <= 0) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "invalid size \"%V\"; write bytes such as size=64m, or a "
                                   "number of keys such as size=1000000", &value[i]);
                return NGX_CONF_ERROR;
            }
            /* A number without a unit is a number of keys. */
            last = &text.data[text.len - 1];
            if (*last >= '0' && *last <= '9') {
                mcf->table.tags = size;
            } else {
                mcf->table.bytes = size;
            }
        } else if (ngx_strncmp(value[i].data, "dir=", 4) == 0) {
            mcf->table.dir = (const char *) value[i].data + 4;
            mcf->table.dir_len = value[i].len - 4;
        } else if (ngx_strncmp(value[i].data, "group=", 6) == 0) {
            mcf->table.group = (const char *) value[i].data + 6;
            mcf->table.group_len = value[i].len - 6;
        } else if (i == 1) {
            mcf->table.name = (const char *) value[i].data;
            mcf->table.name_len = value[i].len;
        } else {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"; dthrottle_table takes a name, size=, "
                               "dir= and group=", &value[i]);
            return NGX_CONF_ERROR;
        }
    }
    return ngx_http_dthrottle_check_config(cf, NULL, &none, &mcf->table);
}

/* Writes text as a string of TOML, with escapes for characters that TOML does not allow. */
static u_char *
ngx_http_dthrottle_quote(u_char *p, ngx_str_t *text)
{
    size_t  i;

    *p++ = '"';
    for (i = 0; i < text->len; i++) {
        if (text->data[i] < ' ' || text->data[i] == '"' || text->data[i] == '\\'
            || text->data[i] == 0x7f)
        {
            p = ngx_sprintf(p, "\\u%04xd", (int) text->data[i]);
        } else {
            *p++ = text->data[i];
        }
    }
    *p++ = '"';
    return p;
}

/* The value of a parameter as TOML; for a list, the values of all parameters with the same key. */
static u_char *
ngx_http_dthrottle_value(ngx_conf_t *cf, u_char *p, ngx_uint_t first,
    const ngx_http_dthrottle_key_t *key)
{
    ngx_str_t   *value, text;
    ngx_uint_t   i;

    value = cf->args->elts;
    text.data = value[first].data + key->name.len;
    text.len = value[first].len - key->name.len;
    switch (key->kind) {
    case NGX_HTTP_DTHROTTLE_NUMBER:
        /* The library refuses text that is not a number. */
        return ngx_atoi(text.data, text.len) >= 0 ? ngx_cpymem(p, text.data, text.len)
                                                  : ngx_http_dthrottle_quote(p, &text);
    case NGX_HTTP_DTHROTTLE_FLAG:
        if (ngx_strcmp(text.data, "on") == 0) {
            return ngx_cpymem(p, "true", 4);
        }
        return ngx_strcmp(text.data, "off") == 0 ? ngx_cpymem(p, "false", 5)
                                                 : ngx_http_dthrottle_quote(p, &text);
    case NGX_HTTP_DTHROTTLE_FILE:
        if (ngx_conf_full_name(cf->cycle, &text, 1) != NGX_OK) {
            return NULL;
        }
        p = ngx_http_dthrottle_quote(ngx_cpymem(p, "{ file = ", 9), &text);
        return ngx_cpymem(p, " }", 2);
    case NGX_HTTP_DTHROTTLE_TEXT:
        return ngx_http_dthrottle_quote(p, &text);
    case NGX_HTTP_DTHROTTLE_LIST:
        break;
    }
    *p++ = '[';
    for (i = first; i < cf->args->nelts; i++) {
        if (ngx_strncmp(value[i].data, key->name.data, key->name.len) == 0) {
            text.data = value[i].data + key->name.len;
            text.len = value[i].len - key->name.len;
            p = ngx_http_dthrottle_quote(p, &text);
            *p++ = ',';
        }
    }
    *p++ = ']';
    return p;
}

/* Finds the key of a parameter. Returns NULL if it is unknown. */
static const ngx_http_dthrottle_key_t *
ngx_http_dthrottle_parameter(ngx_str_t *value)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_DTHROTTLE_KEYS; i++) {
        if (ngx_strncmp(value->data, ngx_http_dthrottle_keys[i].name.data,
                        ngx_http_dthrottle_keys[i].name.len) == 0)
        {
            return &ngx_http_dthrottle_keys[i];
        }
    }
    return NULL;
}

/* Whether an earlier parameter has this key. The values of a list are then already written. */
static ngx_flag_t
ngx_http_dthrottle_is_duplicate(ngx_str_t *value, ngx_uint_t before,
    const ngx_http_dthrottle_key_t *key)
{
    ngx_uint_t                       i;
    const ngx_http_dthrottle_key_t  *earlier;

    for (i = 1; i < before; i++) {
        earlier = ngx_http_dthrottle_parameter(&value[i]);
        if (earlier != NULL && ngx_strcmp(earlier->key, key->key) == 0) {
            return 1;
        }
    }
    return 0;
}

char *
ngx_http_dthrottle_cluster(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dthrottle_main_conf_t  *mcf = conf;
    size_t                           len = sizeof("\n[cluster]\n");
    u_char                          *p;
    ngx_str_t                       *value;
    ngx_uint_t                       i;
    const ngx_http_dthrottle_key_t  *key;

    (void) cmd;
    if (mcf->cluster.len != 0) {
        return "is duplicate";
    }
    value = cf->args->elts;
    for (i = 1; i < cf->args->nelts; i++) {
        /* An escaped byte takes up to six bytes. There may be a prefix of the path, and a key. */
        len += 6 * value[i].len + 128 + 6 * cf->cycle->conf_prefix.len;
    }
    p = ngx_pnalloc(cf->pool, len);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }
    mcf->cluster.data = p;
    p = ngx_cpymem(p, "\n[cluster]\n", sizeof("\n[cluster]\n") - 1);
    for (i = 1; i < cf->args->nelts; i++) {
        key = ngx_http_dthrottle_parameter(&value[i]);
        if (key == NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\"; dthrottle_cluster takes name=, "
                               "secret_file=, listen=, peer= and others", &value[i]);
            return NGX_CONF_ERROR;
        }
        if (ngx_http_dthrottle_is_duplicate(value, i, key)) {
            if (key->kind == NGX_HTTP_DTHROTTLE_LIST) {
                continue;
            }
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" must be given only once",
                               &key->name);
            return NGX_CONF_ERROR;
        }
        p = ngx_sprintf(p, "%s = ", key->key);
        p = ngx_http_dthrottle_value(cf, p, i, key);
        if (p == NULL) {
            return NGX_CONF_ERROR;
        }
        *p++ = '\n';
    }
    mcf->cluster.len = p - mcf->cluster.data;
    return ngx_http_dthrottle_check_config(cf, NULL, &mcf->cluster, NULL);
}

char *
ngx_http_dthrottle_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dthrottle_main_conf_t  *mcf = conf;
    ssize_t                          len;
    ngx_fd_t                         fd;
    ngx_str_t                       *value;

    (void) cmd;
    if (mcf->path.len != 0) {
        return "is duplicate";
    }
    value = cf->args->elts;
    mcf->path = value[1];
    if (ngx_conf_full_name(cf->cycle, &mcf->path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    mcf->text.data = ngx_pnalloc(cf->pool, NGX_HTTP_DTHROTTLE_MAX_FILE);
    if (mcf->text.data == NULL) {
        return NGX_CONF_ERROR;
    }
    fd = ngx_open_file(mcf->path.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno, "cannot read \"%V\"", &mcf->path);
        return NGX_CONF_ERROR;
    }
    len = ngx_read_fd(fd, mcf->text.data, NGX_HTTP_DTHROTTLE_MAX_FILE);
    ngx_close_file(fd);
    if (len < 0 || len == NGX_HTTP_DTHROTTLE_MAX_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, len < 0 ? ngx_errno : 0,
                           "\"%V\" cannot be read, or is larger than 1 MB", &mcf->path);
        return NGX_CONF_ERROR;
    }
    mcf->text.len = len;
    return ngx_http_dthrottle_check_config(cf, &mcf->path, &mcf->text, NULL);
}
