/*
 * dthrottle_table, dthrottle_cluster and dthrottle_config: directives for the whole server. The
 * library checks each one when nginx reads it, so that an error names the line of the directive.
 */
#include "ngx_http_dthrottle.h"

#define NGX_HTTP_DTHROTTLE_MAX_FILE (1024 * 1024)

/*
 * Checks and frees a configuration that contains the values of one directive. status is the result
 * of the call that set these values. Errors are logged with the directive, or with the file.
 */
static char *
ngx_http_dthrottle_check_config(ngx_conf_t *cf, dthrottle_config_t *config, int32_t status,
    char *error, ngx_str_t *file)
{
    ngx_str_t         *value;
    dthrottle_rule_t   none = DTHROTTLE_RULE_INIT;

    if (status == DTHROTTLE_OK) {
        /* The rules may be in zones. A configuration without rules must be unlimited. */
        none.rate = "unlimited";
        none.rate_len = sizeof("unlimited") - 1;
        status = dthrottle_config_add_rule(config, NULL, 0, &none);
    }
    if (status == DTHROTTLE_OK) {
        status = dthrottle_config_check(config, error, NGX_HTTP_DTHROTTLE_ERROR);
    }
    dthrottle_config_free(config);
    if (status == DTHROTTLE_OK) {
        return NGX_CONF_OK;
    }
    value = cf->args->elts;
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V: %s", file != NULL ? file : &value[0],
                       error[0] != '\0' ? error : dthrottle_status_text(status));
    return NGX_CONF_ERROR;
}

char *
ngx_http_dthrottle_table(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dthrottle_main_conf_t  *mcf = conf;
    u_char                          *last;
    char                             error[NGX_HTTP_DTHROTTLE_ERROR] = "";
    int32_t                          status;
    ngx_str_t                       *value, text;
    ngx_uint_t                       i;
    off_t                            size;
    dthrottle_config_t              *config;

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
    if (dthrottle_config_new(&config) != DTHROTTLE_OK) {
        return NGX_CONF_ERROR;
    }
    status = dthrottle_config_set_table(config, &mcf->table);
    if (status == DTHROTTLE_OK && mcf->table.name == NULL) {
        status = dthrottle_config_name_table(config, "nginx", sizeof("nginx") - 1);
    }
    return ngx_http_dthrottle_check_config(cf, config, status, error, NULL);
}

char *
ngx_http_dthrottle_cluster(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dthrottle_main_conf_t  *mcf = conf;
    char                             error[NGX_HTTP_DTHROTTLE_ERROR] = "";
    size_t                          *len;
    int32_t                          status;
    ngx_str_t                       *value, path;
    ngx_uint_t                       i;
    const char                     **setting;
    dthrottle_config_t              *config;
    static const ngx_str_t           file = ngx_string("secret_file=");

    (void) cmd;
    if (mcf->settings != NULL) {
        return "is duplicate";
    }
    mcf->nsettings = cf->args->nelts - 1;
    mcf->settings = ngx_palloc(cf->pool, mcf->nsettings * sizeof(char *));
    mcf->setting_lens = ngx_palloc(cf->pool, mcf->nsettings * sizeof(size_t));
    if (mcf->settings == NULL || mcf->setting_lens == NULL) {
        return NGX_CONF_ERROR;
    }
    value = cf->args->elts;
    for (i = 1; i < cf->args->nelts; i++) {
        setting = &mcf->settings[i - 1];
        len = &mcf->setting_lens[i - 1];
        *setting = (const char *) value[i].data;
        *len = value[i].len;
        if (ngx_strncmp(value[i].data, file.data, file.len) == 0) {
            path.data = value[i].data + file.len;
            path.len = value[i].len - file.len;
            if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
                return NGX_CONF_ERROR;
            }
            *len = file.len + path.len;
            *setting = ngx_pnalloc(cf->pool, *len);
            if (*setting == NULL) {
                return NGX_CONF_ERROR;
            }
            ngx_memcpy(ngx_cpymem((u_char *) *setting, file.data, file.len), path.data, path.len);
        }
    }
    if (dthrottle_config_new(&config) != DTHROTTLE_OK) {
        return NGX_CONF_ERROR;
    }
    status = dthrottle_config_set_cluster(config, mcf->settings, mcf->setting_lens,
                                          mcf->nsettings, error, sizeof(error));
    return ngx_http_dthrottle_check_config(cf, config, status, error, NULL);
}

char *
ngx_http_dthrottle_file(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_dthrottle_main_conf_t  *mcf = conf;
    char                             error[NGX_HTTP_DTHROTTLE_ERROR] = "";
    ssize_t                          len;
    int32_t                          status;
    ngx_fd_t                         fd;
    ngx_str_t                       *value;
    dthrottle_config_t              *config;

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
    if (dthrottle_config_new(&config) != DTHROTTLE_OK) {
        return NGX_CONF_ERROR;
    }
    status = dthrottle_config_toml(config, (const char *) mcf->text.data, len, error,
                                   sizeof(error));
    return ngx_http_dthrottle_check_config(cf, config, status, error, &mcf->path);
}
