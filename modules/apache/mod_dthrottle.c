/*
 * The module's directives and hooks.
 */
#include "mod_dthrottle.h"

#include "mpm_common.h"

#define DTHROTTLE_ANYWHERE (RSRC_CONF | ACCESS_CONF)
#define DTHROTTLE_FIELD(field) (void *)APR_OFFSETOF(dthrottle_dir_conf_t, field)

dthrottle_server_t dthrottle_server;

static const command_rec commands[] = {
    AP_INIT_FLAG("DThrottle", dthrottle_cmd_on, NULL, DTHROTTLE_ANYWHERE,
                 "On: requests are throttled by the rules of a domain"),
    AP_INIT_TAKE1("DThrottleDomain", dthrottle_cmd_domain, NULL, DTHROTTLE_ANYWHERE,
                  "the domain whose rules apply; \"default\" by default"),
    AP_INIT_TAKE1("DThrottleTag", dthrottle_cmd_tag, NULL, DTHROTTLE_ANYWHERE,
                  "an expression for the tag; the client's address by default"),
    AP_INIT_TAKE1("DThrottleIPv6Prefix", dthrottle_cmd_prefix, NULL, DTHROTTLE_ANYWHERE,
                  "how many bits of an IPv6 address identify a client: 1 to 128, 64 by default"),
    AP_INIT_TAKE1("DThrottleCost", dthrottle_cmd_cost, NULL, DTHROTTLE_ANYWHERE,
                  "the cost of a request: a number or an expression, 1 by default"),
    AP_INIT_TAKE1("DThrottleStatus", dthrottle_cmd_status, NULL, DTHROTTLE_ANYWHERE,
                  "the status of refusals, 400 to 599; 429 by default"),
    AP_INIT_TAKE1("DThrottleMaxDelay", dthrottle_cmd_max_delay, NULL, DTHROTTLE_ANYWHERE,
                  "the longest delay of a request, such as 500ms; 0 by default"),
    AP_INIT_FLAG("DThrottleDryRun", ap_set_flag_slot, DTHROTTLE_FIELD(dry_run),
                 DTHROTTLE_ANYWHERE, "On: nothing is refused or delayed, only counted and logged"),
    AP_INIT_TAKE1("DThrottleHeaders", dthrottle_cmd_headers, NULL, DTHROTTLE_ANYWHERE,
                  "header fields of responses: On or standard, draft-7, draft-6, x-ratelimit, Off"),
    AP_INIT_FLAG("DThrottleEnvironment", ap_set_flag_slot, DTHROTTLE_FIELD(environment),
                 DTHROTTLE_ANYWHERE, "On: always set environment and notes, not only where they "
                 "are known to be read"),
    AP_INIT_TAKE1("DThrottleLogLevel", dthrottle_cmd_log_level, NULL, DTHROTTLE_ANYWHERE,
                  "the log level of refusals: debug, info, notice, warn or error; warn by default"),
    AP_INIT_TAKE_ARGV("DThrottleRule", dthrottle_cmd_rule, NULL, RSRC_CONF,
                      "a domain, a rate, and burst=, name=, charge_refused=on; a virtual host "
                      "with a rule has its own buckets"),
    AP_INIT_TAKE1("DThrottleMaxDelayed", dthrottle_cmd_max_delayed, NULL, RSRC_CONF,
                  "the most requests delayed at once; a quarter of MaxRequestWorkers by default"),
    AP_INIT_TAKE1("DThrottleConfigFile", dthrottle_cmd_file, NULL, RSRC_CONF,
                  "the path of a configuration in TOML"),
    AP_INIT_TAKE_ARGV("DThrottleTable", dthrottle_cmd_table, NULL, RSRC_CONF,
                      "the name of the table, and size=, dir=, group="),
    AP_INIT_TAKE_ARGV("DThrottleCluster", dthrottle_cmd_cluster, NULL, RSRC_CONF,
                      "the keys of [cluster]: name=, secret_file=, listen=, peer= and others"),
    { NULL, { NULL }, NULL, 0, RAW_ARGS, NULL }
};

static void register_hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_pre_config(dthrottle_pre_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(dthrottle_check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(dthrottle_post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(dthrottle_child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_stopping(dthrottle_child_stopping, NULL, NULL, APR_HOOK_MIDDLE);
    /* Runs once for a request, after SetEnvIf, and before access control and authentication. */
    ap_hook_header_parser(dthrottle_header_parser, NULL, NULL, APR_HOOK_LAST);
    ap_hook_insert_filter(dthrottle_insert_filter, NULL, NULL, APR_HOOK_REALLY_LAST);
}

module AP_MODULE_DECLARE_DATA dthrottle_module = {
    STANDARD20_MODULE_STUFF,
    dthrottle_create_dir_conf,
    dthrottle_merge_dir_conf,
    dthrottle_create_host,
    NULL,
    commands,
    register_hooks,
    AP_MODULE_FLAG_NONE
};
