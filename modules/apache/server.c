/*
 * The directives for the whole server: rules (also of virtual hosts), table, cluster and file. Each
 * one is checked by the library when it is read, so that Apache adds its line to the error.
 */
#include "mod_dthrottle.h"

#define MAX_FILE (1024 * 1024)

/* The value of name=value, or NULL. */
static const char *value_of(const char *argument, const char *name)
{
    size_t len = strlen(name);
    return strncmp(argument, name, len) == 0 && argument[len] == '=' ? argument + len + 1 : NULL;
}

static const char *argument_error(cmd_parms *cmd, const char *argument, const char *right)
{
    return apr_psprintf(cmd->pool, "%s \"%s\": %s", cmd->cmd->name, argument, right);
}

/* Formats an error of the library; file is NULL for a directive. */
static const char *config_error(cmd_parms *cmd, const char *error, const char *file)
{
    return apr_pstrcat(cmd->pool, cmd->cmd->name, file ? " " : "", file ? file : "", ": ", error,
                       NULL);
}

int32_t dthrottle_allow_no_rules(dthrottle_config_t *config)
{
    dthrottle_rule_t none = DTHROTTLE_RULE_INIT;
    none.rate = "unlimited";
    none.rate_len = strlen(none.rate);
    return dthrottle_config_add_rule(config, NULL, 0, &none);
}

/* Checks a configuration and frees it. It needs no rules, which may be in other directives. */
static const char *check_config(cmd_parms *cmd, dthrottle_config_t *config, const char *file)
{
    char error[DTHROTTLE_ERROR_SIZE] = "";
    int32_t status = dthrottle_allow_no_rules(config);
    if (status == DTHROTTLE_OK)
        status = dthrottle_config_check(config, error, sizeof error);
    dthrottle_config_free(config);
    return status == DTHROTTLE_OK ? NULL : config_error(cmd, error, file);
}

/* DThrottleRule DOMAIN RATE [burst=N|TIME] [name=NAME] [charge_refused=on|off] */
const char *dthrottle_cmd_rule(cmd_parms *cmd, void *none, int argc, char *const argv[])
{
    dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;
    dthrottle_config_t *config;
    const char *value, *message;
    char *end;
    (void)none;
    if (argc < 2)
        return "DThrottleRule takes a domain, a rate such as \"100/s\", and burst=, name=, "
               "charge_refused=on";
    rule.rate = apr_pstrdup(cmd->pool, argv[1]);
    rule.rate_len = strlen(rule.rate);
    for (int i = 2; i < argc; i++) {
        if ((value = value_of(argv[i], "burst"))) {
            apr_interval_time_t time;
            apr_int64_t units = apr_strtoi64(value, &end, 10);
            if (end != value && units > 0 && !*end)
                rule.burst = (uint64_t)units;
            else if (end != value && units > 0 && dthrottle_time(value, &time))
                rule.burst_time_ns = (uint64_t)time * 1000;
            else
                return argument_error(cmd, argv[i], "must be a number of requests, such as "
                                                    "burst=200, or a time, such as burst=10s");
        } else if ((value = value_of(argv[i], "name"))) {
            rule.name = apr_pstrdup(cmd->pool, value);
            rule.name_len = strlen(rule.name);
        } else if ((value = value_of(argv[i], "charge_refused"))) {
            rule.charge_refused = ap_cstr_casecmp(value, "on") == 0;
            if (!rule.charge_refused && ap_cstr_casecmp(value, "off") != 0)
                return argument_error(cmd, argv[i], "must be on or off");
        } else {
            return argument_error(cmd, argv[i], "unknown parameter; DThrottleRule takes a domain, "
                                                "a rate, and burst=, name=, charge_refused=on");
        }
    }
    if (dthrottle_config_new(&config) != DTHROTTLE_OK)
        return "no memory";
    if (dthrottle_config_add_rule(config, argv[0], strlen(argv[0]), &rule) != DTHROTTLE_OK) {
        dthrottle_config_free(config);
        return argument_error(cmd, argv[0], "the domain must be UTF-8 and not too long");
    }
    if ((message = check_config(cmd, config, NULL)))
        return message;
    dthrottle_add_rule(cmd, argv[0], &rule);
    return NULL;
}

/* Reads a number of bytes such as 64M, or a number of tags. Returns 0 if it is neither. */
static int read_size(const char *text, dthrottle_table_t *table)
{
    char *end;
    apr_int64_t size = apr_strtoi64(text, &end, 10);
    int shift = 0;
    if (end == text || size <= 0)
        return 0;
    if (!*end) {
        table->tags = (uint64_t)size;
        return 1;
    }
    switch (*end & ~0x20) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    default:
        return 0;
    }
    table->bytes = (uint64_t)size << shift;
    return !end[1] && size < ((apr_int64_t)1 << 32);
}

const char *dthrottle_cmd_table(cmd_parms *cmd, void *none, int argc, char *const argv[])
{
    dthrottle_table_t *table = &dthrottle_server.table;
    dthrottle_config_t *config;
    const char *value, *message = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    (void)none;
    if (message)
        return message;
    if (dthrottle_server.has_table || argc == 0)
        return "DThrottleTable must be given once, with a name, and size=, dir=, group=";
    dthrottle_server.has_table = 1;
    for (int i = 0; i < argc; i++) {
        if ((value = value_of(argv[i], "size"))) {
            if (!read_size(value, table))
                return argument_error(cmd, argv[i], "must be a number of bytes such as size=64M, "
                                                    "or of tags such as size=1000000");
        } else if ((value = value_of(argv[i], "dir"))) {
            table->dir = ap_server_root_relative(cmd->pool, value);
            table->dir_len = table->dir ? strlen(table->dir) : 0;
        } else if ((value = value_of(argv[i], "group"))) {
            table->group = apr_pstrdup(cmd->pool, value);
            table->group_len = strlen(table->group);
        } else if (i == 0) {
            table->name = apr_pstrdup(cmd->pool, argv[0]);
            table->name_len = strlen(table->name);
        } else {
            return argument_error(cmd, argv[i], "unknown parameter; DThrottleTable takes a name, "
                                                "and size=, dir=, group=");
        }
    }
    if (dthrottle_config_new(&config) != DTHROTTLE_OK)
        return "no memory";
    if (dthrottle_config_set_table(config, table) != DTHROTTLE_OK) {
        dthrottle_config_free(config);
        return "DThrottleTable must have a name in UTF-8";
    }
    dthrottle_config_name_table(config, "apache", strlen("apache"));
    return check_config(cmd, config, NULL);
}

int32_t dthrottle_set_cluster(dthrottle_config_t *config, char *error, size_t size)
{
    const apr_array_header_t *settings = dthrottle_server.cluster;
    return dthrottle_config_set_cluster(config, (const char *const *)settings->elts,
                                        (const size_t *)dthrottle_server.cluster_lens->elts,
                                        (size_t)settings->nelts, error, size);
}

const char *dthrottle_cmd_cluster(cmd_parms *cmd, void *none, int argc, char *const argv[])
{
    char error[DTHROTTLE_ERROR_SIZE];
    dthrottle_config_t *config;
    const char *message = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    (void)none;
    if (message)
        return message;
    if (dthrottle_server.cluster)
        return "DThrottleCluster must be given only once";
    dthrottle_server.cluster = apr_array_make(cmd->pool, argc, sizeof(const char *));
    dthrottle_server.cluster_lens = apr_array_make(cmd->pool, argc, sizeof(size_t));
    for (int i = 0; i < argc; i++) {
        const char *setting = apr_pstrdup(cmd->pool, argv[i]);
        const char *path = value_of(setting, "secret_file");
        if (path && (path = ap_server_root_relative(cmd->pool, path)))
            setting = apr_pstrcat(cmd->pool, "secret_file=", path, NULL);
        APR_ARRAY_PUSH(dthrottle_server.cluster, const char *) = setting;
        APR_ARRAY_PUSH(dthrottle_server.cluster_lens, size_t) = strlen(setting);
    }
    if (dthrottle_config_new(&config) != DTHROTTLE_OK)
        return "no memory";
    if (dthrottle_set_cluster(config, error, sizeof error) == DTHROTTLE_OK)
        return check_config(cmd, config, NULL);
    dthrottle_config_free(config);
    return config_error(cmd, error, NULL);
}

const char *dthrottle_cmd_file(cmd_parms *cmd, void *none, const char *path)
{
    char error[DTHROTTLE_ERROR_SIZE];
    dthrottle_config_t *config;
    apr_file_t *file;
    apr_size_t len = MAX_FILE;
    apr_status_t status;
    char *text;
    const char *message = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    (void)none;
    if (message)
        return message;
    if (dthrottle_server.path)
        return "DThrottleConfigFile must be given only once";
    path = ap_server_root_relative(cmd->pool, path);
    if (!path || apr_file_open(&file, path, APR_READ, 0, cmd->pool) != APR_SUCCESS)
        return argument_error(cmd, path ? path : "", "cannot be read");
    text = apr_palloc(cmd->pool, MAX_FILE);
    status = apr_file_read_full(file, text, MAX_FILE, &len);
    apr_file_close(file);
    if (status == APR_SUCCESS || !APR_STATUS_IS_EOF(status))
        return argument_error(cmd, path, "cannot be read, or is larger than 1 MB");
    text[len] = '\0';
    dthrottle_server.path = path;
    dthrottle_server.text = text;
    if (dthrottle_config_new(&config) != DTHROTTLE_OK)
        return "no memory";
    if (dthrottle_config_toml(config, text, strlen(text), error, sizeof error) == DTHROTTLE_OK)
        return check_config(cmd, config, path);
    dthrottle_config_free(config);
    return config_error(cmd, error, path);
}
