/*
 * Checks a request once, even if internal redirects follow.
 */
#include "mod_dthrottle.h"

#include <errno.h>
#include <time.h>

#define MAX_UNITS 1000000000
#define STATUS_DEFAULT HTTP_TOO_MANY_REQUESTS
#define PREFIX_DEFAULT 64

/* The configuration of a request, and its tag. */
typedef struct {
    const dthrottle_dir_conf_t *conf;
    dthrottle_domain_conf_t *domain;
    const void *tag;
    size_t tag_len;
    unsigned char address[DTHROTTLE_ADDRESS_SIZE];
} client_t;

/* The cost of a request. Clients may choose it, so an invalid value is logged only once. */
static apr_uint64_t cost_of(request_rec *r, const client_t *client)
{
    const char *error = NULL, *text;
    char *end;
    apr_int64_t units;
    if (!client->conf->cost)
        return client->conf->units >= 0 ? (apr_uint64_t)client->conf->units : 1;
    text = ap_expr_str_exec(r, client->conf->cost, &error);
    units = text && !error ? apr_strtoi64(text, &end, 10) : -1;
    if (!text || error || end == text || *end || units < 0) {
        if (!client->domain->has_odd_cost)
            ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, "DThrottleCost must give a number, "
                          "got \"%s\"; such requests cost 1", text ? text : "");
        client->domain->has_odd_cost = 1;
        return 1;
    }
    return units < MAX_UNITS ? (apr_uint64_t)units : MAX_UNITS;
}

/* Whether the fast path applies: no headers, delay, cost or variables are needed. */
static int is_simple(const client_t *client)
{
    const dthrottle_dir_conf_t *conf = client->conf;
    return conf->headers <= 0 && conf->max_delay_ns <= 0 && !conf->cost && conf->units < 0 &&
           conf->environment != 1 && !dthrottle_server.names_variable &&
           !client->domain->is_dry_run;
}

/* Logs once if a refusal comes from a bucket that an earlier start of the server left. */
static void log_earlier_process(request_rec *r, const client_t *client, int level)
{
    char text[DTHROTTLE_ERROR_SIZE];
    if (dthrottle_earlier_process_warning(client->domain->handle, client->tag, client->tag_len,
                                          text, sizeof text) == 1)
        ap_log_rerror(APLOG_MARK, level, 0, r, "dthrottle: %s", text);
}

static int refused(request_rec *r, const client_t *client, const dthrottle_decision_t *decision)
{
    const dthrottle_dir_conf_t *conf = client->conf;
    int dry_run = conf->dry_run == 1 || decision->dry_run;
    int level = conf->log_level >= 0 ? conf->log_level : APLOG_WARNING;
    const char *rule = dthrottle_rule_name(client->domain->handle, decision->rule);
    ap_log_rerror(APLOG_MARK, level, 0, r,
                  "limiting requests%s by domain \"%s\", %s%s%s, retry after %"
                  APR_UINT64_T_FMT " ms", dry_run ? ", dry run," : "", client->domain->name,
                  rule ? "rule \"" : "too many delayed requests (DThrottleMaxDelayed)",
                  rule ? rule : "", rule ? "\"" : "",
                  decision->retry_after_ns / DTHROTTLE_NS_PER_MS);
    log_earlier_process(r, client, level);
    dthrottle_publish(r, conf, client->domain, dry_run ? "refused-dry-run" : "refused", decision);
    if (dry_run)
        return DECLINED;
    return conf->status > 0 ? conf->status : STATUS_DEFAULT;
}

/* Sleeps. Not apr_sleep, which the signal that ends a child of prefork gracefully interrupts. */
static void sleep_ns(apr_uint64_t ns)
{
    struct timespec left = { (time_t)(ns / DTHROTTLE_NS_PER_S), (long)(ns % DTHROTTLE_NS_PER_S) };
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

static int delayed(request_rec *r, const client_t *client, dthrottle_decision_t *decision)
{
    if (dthrottle_begin_delay()) {
        dthrottle_publish(r, client->conf, client->domain, "delayed", decision);
        sleep_ns(decision->delay_ns);
        dthrottle_end_delay();
        return DECLINED;
    }
    /* Too many requests are delayed: refuse this one, and refund it. */
    dthrottle_refund(client->domain->handle, client->tag, client->tag_len, decision->granted);
    decision->allowed = false;
    decision->retry_after_ns = decision->delay_ns;
    decision->delay_ns = 0;
    return refused(r, client, decision);
}

/* Finds the configuration and the tag of a request. Returns 0 if it is not limited. */
static int find_client(request_rec *r, client_t *client)
{
    const dthrottle_host_t *host = ap_get_module_config(r->server->module_config,
                                                        &dthrottle_module);
    const dthrottle_dir_conf_t *conf = ap_get_module_config(r->per_dir_config, &dthrottle_module);
    const apr_sockaddr_t *peer = r->useragent_addr;
    const char *error = NULL;
    client->conf = conf;
    client->tag_len = 0;
    if (conf->is_on != 1)
        return 0;
    client->domain = host->domains[conf->domain >= 0 ? conf->domain : 0];
    if (!client->domain->handle)
        return 0;
    if (conf->tag) {
        client->tag = ap_expr_str_exec(r, conf->tag, &error);
        client->tag_len = client->tag && !error ? strlen(client->tag) : 0;
    } else if (peer && peer->ipaddr_ptr) {
        client->tag = client->address;
        dthrottle_address_tag(peer->ipaddr_ptr, (size_t)peer->ipaddr_len,
                              conf->ipv6_prefix > 0 ? (uint32_t)conf->ipv6_prefix : PREFIX_DEFAULT,
                              client->address, &client->tag_len);
    }
    return client->tag_len > 0;
}

/* Looks up the figures of a request that passed. Returns NULL if they are unknown. */
const dthrottle_domain_conf_t *dthrottle_peek_request(request_rec *r,
                                                      dthrottle_decision_t *decision)
{
    client_t client;
    if (!find_client(r, &client) ||
        dthrottle_peek(client.domain->handle, client.tag, client.tag_len, 0, decision) !=
            DTHROTTLE_OK)
        return NULL;
    return client.domain;
}

/* Checks with one unit. Returns 1 if the request passes and has no decision yet, else a status. */
static int32_t check_simple(const client_t *client, dthrottle_decision_t *decision)
{
    const dthrottle_domain_t *domain = client->domain->handle;
    int32_t status = dthrottle_allow(domain, client->tag, client->tag_len, 1);
    if (status != 0)
        return status;
    status = dthrottle_peek(domain, client->tag, client->tag_len, 1, decision);
    if (status == DTHROTTLE_OK) {
        /* The bucket may have refilled between the two calls. */
        decision->allowed = false;
        decision->rule = (int32_t)decision->deciding;
    }
    return status;
}

static int32_t check(request_rec *r, const client_t *client, dthrottle_decision_t *decision)
{
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    options.cost = cost_of(r, client);
    options.allow_debt = 1;
    if (client->conf->max_delay_ns > 0)
        options.max_delay_ns = (uint64_t)client->conf->max_delay_ns;
    return dthrottle_check_with(client->domain->handle, client->tag, client->tag_len, &options,
                                decision);
}

int dthrottle_header_parser(request_rec *r)
{
    client_t client;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    int32_t status;
    if ((r->prev && dthrottle_publish_again(r)) || !find_client(r, &client))
        return DECLINED;
    status = is_simple(&client) ? check_simple(&client, &decision) : check(r, &client, &decision);
    if (status == 1) {
        dthrottle_publish_later(r);
        return DECLINED;
    }
    if (status != DTHROTTLE_OK && !client.domain->has_failed) {
        client.domain->has_failed = 1;
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "dthrottle: domain %s: %s; requests pass",
                      client.domain->name, dthrottle_status_text(status));
    }
    if (!decision.allowed || decision.rule >= 0)
        return refused(r, &client, &decision);
    if (decision.delay_ns && client.conf->dry_run != 1 && !decision.dry_run)
        return delayed(r, &client, &decision);
    dthrottle_publish(r, client.conf, client.domain,
                      decision.dry_run || decision.delay_ns ? "delayed-dry-run" : "passed",
                      &decision);
    return DECLINED;
}
