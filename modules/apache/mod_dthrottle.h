/*
 * Types and functions shared by the files of mod_dthrottle. The parent process reads and checks the
 * configuration. Each child opens the throttle by the name of its table, with the child's rights.
 */
#ifndef MOD_DTHROTTLE_H
#define MOD_DTHROTTLE_H

#include "httpd.h"
#include "http_config.h"
#include "http_core.h"
#include "http_log.h"
#include "http_protocol.h"
#include "http_request.h"
#include "ap_expr.h"
#include "apr_strings.h"

#include <dthrottle.h>

#define DTHROTTLE_ERROR_SIZE 512
#define DTHROTTLE_NS_PER_MS 1000000
#define DTHROTTLE_NS_PER_S 1000000000

APLOG_USE_MODULE(dthrottle);

/* A domain that the configuration uses. */
typedef struct {
    const char *name;
    apr_size_t name_len;
    /* The number of rules; negative if the domain does not exist. */
    int32_t rules;
    /* The handle of this child. If opening failed, it is NULL and requests pass. */
    dthrottle_domain_t *handle;
    int is_dry_run;
    /* Whether a failed check and an invalid cost have been logged. */
    int has_failed;
    int has_odd_cost;
} dthrottle_domain_conf_t;

/* A rule of DThrottleRule. */
typedef struct {
    const char *domain;
    dthrottle_rule_t rule;
} dthrottle_host_rule_t;

/* A directive that names a domain. */
typedef struct {
    int number;
    server_rec *server;
    const char *file;
    int line;
} dthrottle_domain_use_t;

/* The configuration of the server itself or of a virtual host. */
typedef struct {
    apr_array_header_t *rules;  /* dthrottle_host_rule_t, only its own */
    dthrottle_domain_conf_t **domains; /* indexed by the number of the name */
} dthrottle_host_t;

/* The configuration of the whole server. */
typedef struct {
    apr_array_header_t *names;    /* const char *, of domains; the first is the default */
    apr_array_header_t *uses; /* dthrottle_domain_use_t */
    apr_array_header_t *domains;  /* dthrottle_domain_conf_t *, of all hosts */
    const char *path;             /* of the configuration file */
    const char *text;             /* of the configuration file */
    apr_array_header_t *cluster;      /* const char *, the settings of DThrottleCluster */
    apr_array_header_t *cluster_lens; /* size_t, their lengths */
    dthrottle_table_t table;
    int has_table;
    int is_on;
    int may_delay; /* whether any DThrottleMaxDelay is above 0 */
    int max_delayed;  /* negative if not set */
    int names_variable;  /* whether the configuration names a variable of this module */
    dthrottle_config_t *config;
    /* The throttle of this child. */
    dthrottle_t *throttle;
} dthrottle_server_t;

/* The settings of a server, directory or location. -1 and NULL are inherited. */
typedef struct {
    int is_on;
    int domain; /* the number of its name */
    ap_expr_info_t *tag;
    ap_expr_info_t *cost;
    int units;
    int status;
    apr_int64_t max_delay_ns;
    int dry_run;
    int headers; /* a DTHROTTLE_HEADERS_ number */
    int environment;
    int log_level;
    int ipv6_prefix;
} dthrottle_dir_conf_t;

extern dthrottle_server_t dthrottle_server;

/* dir_conf.c: the directives for a server, directory or location. */
void *dthrottle_create_dir_conf(apr_pool_t *pool, char *dir);
void *dthrottle_merge_dir_conf(apr_pool_t *pool, void *above, void *below);

const char *dthrottle_cmd_on(cmd_parms *cmd, void *conf, int on);
const char *dthrottle_cmd_domain(cmd_parms *cmd, void *conf, const char *name);
const char *dthrottle_cmd_tag(cmd_parms *cmd, void *conf, const char *text);
const char *dthrottle_cmd_prefix(cmd_parms *cmd, void *conf, const char *text);
const char *dthrottle_cmd_cost(cmd_parms *cmd, void *conf, const char *text);
const char *dthrottle_cmd_status(cmd_parms *cmd, void *conf, const char *text);
const char *dthrottle_cmd_max_delay(cmd_parms *cmd, void *conf, const char *text);
const char *dthrottle_cmd_headers(cmd_parms *cmd, void *conf, const char *text);
const char *dthrottle_cmd_log_level(cmd_parms *cmd, void *conf, const char *text);
int dthrottle_time(const char *text, apr_interval_time_t *to);
const char *dthrottle_number(cmd_parms *cmd, const char *text, int least, int most, int *to);

/* server.c: the directives for the whole server. */
const char *dthrottle_cmd_rule(cmd_parms *cmd, void *none, int argc, char *const argv[]);
const char *dthrottle_cmd_table(cmd_parms *cmd, void *none, int argc, char *const argv[]);
const char *dthrottle_cmd_cluster(cmd_parms *cmd, void *none, int argc, char *const argv[]);
const char *dthrottle_cmd_file(cmd_parms *cmd, void *none, const char *path);
int32_t dthrottle_set_cluster(dthrottle_config_t *config, char *error, size_t size);
/* Allows a configuration without rules. */
int32_t dthrottle_allow_no_rules(dthrottle_config_t *config);

/* domain.c: the domains of virtual hosts. */
void *dthrottle_create_host(apr_pool_t *pool, server_rec *s);
void dthrottle_reset_domains(apr_pool_t *pool);
int dthrottle_use_domain(cmd_parms *cmd, const char *name);
void dthrottle_add_rule(cmd_parms *cmd, const char *domain, const dthrottle_rule_t *rule);
const char *dthrottle_add_domains(apr_pool_t *pool, dthrottle_config_t *config, server_rec *first);
void dthrottle_resolve_domains(server_rec *s);

/* child.c: the whole configuration, and the throttle in a child. */
int dthrottle_pre_config(apr_pool_t *config, apr_pool_t *log, apr_pool_t *temp);
int dthrottle_check_config(apr_pool_t *config, apr_pool_t *log, apr_pool_t *temp, server_rec *s);
void dthrottle_child_init(apr_pool_t *child, server_rec *s);
void dthrottle_child_stopping(apr_pool_t *child, int graceful);

/* delayed.c: the limit of delayed requests. */
const char *dthrottle_cmd_max_delayed(cmd_parms *cmd, void *none, const char *text);
int dthrottle_post_config(apr_pool_t *config, apr_pool_t *log, apr_pool_t *temp, server_rec *s);
void dthrottle_init_delayed(void);
int dthrottle_begin_delay(void);
void dthrottle_end_delay(void);

/* request.c */
int dthrottle_header_parser(request_rec *r);
const dthrottle_domain_conf_t *dthrottle_peek_request(request_rec *r,
                                                      dthrottle_decision_t *decision);

/* publish.c: header fields, environment and notes. */
void dthrottle_publish(request_rec *r, const dthrottle_dir_conf_t *conf,
                       const dthrottle_domain_conf_t *domain, const char *outcome,
                       const dthrottle_decision_t *decision);
void dthrottle_publish_later(request_rec *r);
int dthrottle_publish_again(request_rec *r);
void dthrottle_insert_filter(request_rec *r);
int dthrottle_names_variable(const ap_directive_t *directive);

#endif
