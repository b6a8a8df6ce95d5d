/*
 * Domains of virtual hosts. A host with its own rules for a name has its own domain with its own
 * buckets. Otherwise the name means the server's domain. Names have numbers, so that a request
 * finds its domain by index.
 */
#include "mod_dthrottle.h"

#define DEFAULT_NAME "default"

static dthrottle_host_t *host_of(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &dthrottle_module);
}

/* Called only for hosts with a directive of this module. Other hosts share that of the server. */
void *dthrottle_create_host(apr_pool_t *pool, server_rec *s)
{
    dthrottle_host_t *host = apr_pcalloc(pool, sizeof *host);
    (void)s;
    host->rules = apr_array_make(pool, 2, sizeof(dthrottle_host_rule_t));
    return host;
}

void dthrottle_reset_domains(apr_pool_t *pool)
{
    dthrottle_server.names = apr_array_make(pool, 4, sizeof(const char *));
    dthrottle_server.uses = apr_array_make(pool, 4, sizeof(dthrottle_domain_use_t));
    dthrottle_server.domains = apr_array_make(pool, 4, sizeof(dthrottle_domain_conf_t *));
    APR_ARRAY_PUSH(dthrottle_server.names, const char *) = DEFAULT_NAME;
}

/* Notes that a directive names a domain. Returns the number of the name. */
int dthrottle_use_domain(cmd_parms *cmd, const char *name)
{
    dthrottle_domain_use_t *added = apr_array_push(dthrottle_server.uses);
    int number = 0;
    added->server = cmd->server;
    added->file = cmd->directive->filename;
    added->line = cmd->directive->line_num;
    for (; number < dthrottle_server.names->nelts; number++)
        if (strcmp(APR_ARRAY_IDX(dthrottle_server.names, number, const char *), name) == 0)
            break;
    if (number == dthrottle_server.names->nelts)
        APR_ARRAY_PUSH(dthrottle_server.names, const char *) = apr_pstrdup(cmd->pool, name);
    added->number = number;
    return number;
}

void dthrottle_add_rule(cmd_parms *cmd, const char *domain, const dthrottle_rule_t *rule)
{
    dthrottle_host_rule_t *added = apr_array_push(host_of(cmd->server)->rules);
    added->domain = apr_pstrdup(cmd->pool, domain);
    added->rule = *rule;
}

/* Makes the suffix for the domain names of a host. It is equal after a restart and on each node. */
static const char *suffix_of(apr_pool_t *pool, const server_rec *s, apr_array_header_t *taken)
{
    const server_addr_rec *at = s->addrs;
    int is_any = !at || strcmp(at->virthost, "*") == 0 || strcmp(at->virthost, "_default_") == 0;
    const char *name = s->server_hostname ? s->server_hostname : "";
    const char *suffix = apr_psprintf(pool, "@%s%s%s:%d", name, is_any ? "" : "/",
                                      is_any ? "" : at->virthost, at ? at->host_port : 0);
    int duplicates = 1;
    for (int i = 0; i < taken->nelts; i++)
        duplicates += strcmp(APR_ARRAY_IDX(taken, i, const char *), suffix) == 0;
    APR_ARRAY_PUSH(taken, const char *) = suffix;
    return duplicates > 1 ? apr_psprintf(pool, "%s#%d", suffix, duplicates) : suffix;
}

static dthrottle_domain_conf_t *add_domain(apr_pool_t *pool, dthrottle_config_t *config,
                                           const char *name)
{
    dthrottle_domain_conf_t *domain = apr_pcalloc(pool, sizeof *domain);
    domain->name = name;
    domain->name_len = strlen(name);
    domain->rules = dthrottle_config_rule_count(config, name, domain->name_len);
    APR_ARRAY_PUSH(dthrottle_server.domains, dthrottle_domain_conf_t *) = domain;
    return domain;
}

static int has_rules_for(const dthrottle_host_t *host, const char *name)
{
    for (int i = 0; i < host->rules->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(host->rules, i, dthrottle_host_rule_t).domain, name) == 0)
            return 1;
    return 0;
}

/* Adds the rules of a host, and finds the domain for each name. */
static const char *add_host(apr_pool_t *pool, dthrottle_config_t *config, dthrottle_host_t *host,
                            const dthrottle_host_t *above, const char *suffix)
{
    for (int i = 0; i < host->rules->nelts; i++) {
        const dthrottle_host_rule_t *own = &APR_ARRAY_IDX(host->rules, i, dthrottle_host_rule_t);
        const char *name = apr_pstrcat(pool, own->domain, suffix, NULL);
        if (dthrottle_config_add_rule(config, name, strlen(name), &own->rule) != DTHROTTLE_OK)
            return apr_psprintf(pool, "invalid rule for domain %s", name);
    }
    host->domains = apr_palloc(pool, dthrottle_server.names->nelts * sizeof *host->domains);
    for (int i = 0; i < dthrottle_server.names->nelts; i++) {
        const char *name = APR_ARRAY_IDX(dthrottle_server.names, i, const char *);
        if (above && !has_rules_for(host, name))
            host->domains[i] = above->domains[i];
        else
            host->domains[i] = add_domain(pool, config, apr_pstrcat(pool, name, suffix, NULL));
    }
    return NULL;
}

/* Adds the rules of the server and of all hosts. Returns an error message, or NULL. */
const char *dthrottle_add_domains(apr_pool_t *pool, dthrottle_config_t *config, server_rec *first)
{
    dthrottle_host_t *above = host_of(first);
    apr_array_header_t *taken = apr_array_make(pool, 4, sizeof(const char *));
    const char *message = add_host(pool, config, above, NULL, "");
    int32_t rules = 0;
    for (server_rec *s = first->next; s && !message; s = s->next)
        if (host_of(s) != above)
            message = add_host(pool, config, host_of(s), above, suffix_of(pool, s, taken));
    for (int i = 0; i < dthrottle_server.uses->nelts && !message; i++) {
        const dthrottle_domain_use_t *at =
            &APR_ARRAY_IDX(dthrottle_server.uses, i, dthrottle_domain_use_t);
        if (host_of(at->server)->domains[at->number]->rules < 0)
            message = apr_psprintf(pool, "DThrottleDomain on line %d of %s names the unknown "
                                   "domain \"%s\": add a DThrottleRule for it, there or for the "
                                   "whole server, or a DThrottleConfigFile that has it", at->line,
                                   at->file, APR_ARRAY_IDX(dthrottle_server.names, at->number,
                                                           const char *));
    }
    for (int i = 0; i < dthrottle_server.domains->nelts; i++) {
        const dthrottle_domain_conf_t *domain =
            APR_ARRAY_IDX(dthrottle_server.domains, i, dthrottle_domain_conf_t *);
        rules += domain->rules > 0 ? domain->rules : 0;
    }
    if (!message && dthrottle_server.is_on && rules == 0)
        message = "DThrottle is on, but there is no rule: add DThrottleRule default \"100/s\", or "
                  "a DThrottleConfigFile";
    return message;
}

static void resolve(server_rec *s, dthrottle_domain_conf_t *domain)
{
    int32_t status = dthrottle_domain(dthrottle_server.throttle, domain->name, domain->name_len,
                                      &domain->handle);
    if (status != DTHROTTLE_OK) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "dthrottle: cannot open domain %s: %s; it limits nothing", domain->name,
                     dthrottle_status_text(status));
        return;
    }
    domain->is_dry_run = dthrottle_domain_is_dry_run(domain->handle) == 1;
}

/* Opens the domains in a child. */
void dthrottle_resolve_domains(server_rec *s)
{
    for (int i = 0; i < dthrottle_server.domains->nelts; i++) {
        dthrottle_domain_conf_t *domain =
            APR_ARRAY_IDX(dthrottle_server.domains, i, dthrottle_domain_conf_t *);
        if (domain->rules >= 0)
            resolve(s, domain);
    }
}
