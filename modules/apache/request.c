/*
 * A request: asked about once, whatever it is redirected to inside the server.
 */
#include "mod_dthrottle.h"

#include <errno.h>
#include <time.h>

#define MOST_UNITS 1000000000
#define STATUS_DEFAULT HTTP_TOO_MANY_REQUESTS
#define PREFIX_DEFAULT 64
#define IPV6_BYTES 16

/* IPv6 addresses that stand for an IPv4 address, which is in the last four bytes. */
static int is_ipv4(const unsigned char *address)
{
    static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    static const unsigned char nat64[12] = { 0, 0x64, 0xff, 0x9b };
    static const unsigned char compatible[12];
    return memcmp(address, mapped, 12) == 0 || memcmp(address, nat64, 12) == 0 ||
           (memcmp(address, compatible, 12) == 0 && address[12] != 0);
}

/* The client's address: 4 bytes, or 16 of which only the prefix counts, as other doors have it. */
static apr_size_t address_tag(request_rec *r, int prefix, unsigned char *tag)
{
    const apr_sockaddr_t *client = r->useragent_addr;
    if (!client || !client->ipaddr_ptr || client->ipaddr_len < 4)
        return 0;
    if (client->ipaddr_len != IPV6_BYTES) {
        memcpy(tag, client->ipaddr_ptr, 4);
        return 4;
    }
    memcpy(tag, client->ipaddr_ptr, IPV6_BYTES);
    if (is_ipv4(tag)) {
        memmove(tag, tag + 12, 4);
        return 4;
    }
    for (int i = 0; i < IPV6_BYTES; i++, prefix -= 8) {
        if (prefix <= 0)
            tag[i] = 0;
        else if (prefix < 8)
            tag[i] &= (unsigned char)(0xff << (8 - prefix));
    }
    return IPV6_BYTES;
}

/* What the request costs. What is no number costs one, and is logged once: clients may write it. */
static apr_uint64_t cost_of(request_rec *r, dthrottle_used_t *domain,
                            const dthrottle_place_t *place)
{
    const char *error = NULL, *text;
    char *end;
    apr_int64_t units;
    if (!place->cost)
        return place->units >= 0 ? (apr_uint64_t)place->units : 1;
    text = ap_expr_str_exec(r, place->cost, &error);
    units = text && !error ? apr_strtoi64(text, &end, 10) : -1;
    if (!text || error || end == text || *end || units < 0) {
        if (!domain->has_odd_cost)
            ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, "DThrottleCost gives \"%s\", which is "
                          "no number; such requests cost 1", text ? text : "");
        domain->has_odd_cost = 1;
        return 1;
    }
    return units < MOST_UNITS ? (apr_uint64_t)units : MOST_UNITS;
}

/* Asks. A cost above every burst passes when the bucket is full, and takes it into debt. */
static int32_t ask(const dthrottle_used_t *domain, const void *tag, apr_size_t tag_len,
                   const dthrottle_place_t *place, apr_uint64_t cost,
                   dthrottle_decision_t *decision)
{
    dthrottle_ask_t ask = DTHROTTLE_ASK_INIT;
    apr_uint64_t beyond = 0;
    int32_t status;
    ask.cost = cost;
    if (ask.cost > domain->largest) {
        beyond = ask.cost - domain->largest;
        ask.cost = domain->largest;
    }
    if (place->max_delay_ns > 0)
        ask.max_wait_ns = (uint64_t)place->max_delay_ns;
    status = dthrottle_check_with(domain->handle, tag, tag_len, &ask, decision);
    if (status == DTHROTTLE_OK && beyond && decision->granted)
        dthrottle_charge(domain->handle, tag, tag_len, beyond, NULL);
    return status;
}

/* Whether yes or no is all that has to be known now. */
static int is_simple(const dthrottle_place_t *place, const dthrottle_used_t *domain)
{
    return place->headers != 1 && place->max_delay_ns <= 0 && !place->cost && place->units < 0 &&
           place->environment != 1 && !dthrottle_server.is_named && !domain->is_dry_run;
}

static int refused(request_rec *r, const dthrottle_place_t *place, dthrottle_used_t *domain,
                   const dthrottle_decision_t *decision)
{
    int dry_run = place->dry_run == 1 || decision->dry_run;
    const char *rule = dthrottle_rule_name(domain->handle, decision->rule);
    ap_log_rerror(APLOG_MARK, place->log_level >= 0 ? place->log_level : APLOG_WARNING, 0, r,
                  "limiting requests%s by domain \"%s\", %s%s%s, retry after %"
                  APR_UINT64_T_FMT " ms", dry_run ? ", dry run," : "", domain->name,
                  rule ? "rule \"" : "as many wait as DThrottleMaxHeld allows", rule ? rule : "",
                  rule ? "\"" : "", decision->retry_after_ns / DTHROTTLE_NS_PER_MS);
    dthrottle_tell(r, place, domain, dry_run ? "refused-dry-run" : "refused", decision);
    if (dry_run)
        return DECLINED;
    return place->status > 0 ? place->status : STATUS_DEFAULT;
}

/* What there is no room to wait for is refused, and costs nothing. */
static void give_back(dthrottle_used_t *domain, const void *tag, apr_size_t tag_len,
                      apr_uint64_t cost, dthrottle_decision_t *decision)
{
    dthrottle_refund(domain->handle, tag, tag_len, cost);
    decision->allowed = false;
    decision->retry_after_ns = decision->wait_ns;
    decision->wait_ns = 0;
}

/* To the end: a child of prefork that shall end gracefully gets a signal, which ends apr_sleep. */
static void wait_ns(apr_uint64_t ns)
{
    struct timespec left = { (time_t)(ns / DTHROTTLE_NS_PER_S), (long)(ns % DTHROTTLE_NS_PER_S) };
    while (nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
}

/* The domain of a request; NULL: it is not limited. */
static dthrottle_used_t *domain_of(const request_rec *r, const dthrottle_place_t *place)
{
    const dthrottle_host_t *host = ap_get_module_config(r->server->module_config,
                                                        &dthrottle_module);
    dthrottle_used_t *domain;
    if (place->is_on != 1)
        return NULL;
    domain = host->domains[place->domain >= 0 ? place->domain : 0];
    return domain->handle ? domain : NULL;
}

/* The tag of a request; its length is 0 if it is not limited. */
static apr_size_t tag_of(request_rec *r, const dthrottle_place_t *place, unsigned char *address,
                         const void **tag)
{
    const char *error = NULL;
    *tag = address;
    if (!place->tag)
        return address_tag(r, place->ipv6_prefix > 0 ? place->ipv6_prefix : PREFIX_DEFAULT,
                           address);
    *tag = ap_expr_str_exec(r, place->tag, &error);
    return *tag && !error ? strlen(*tag) : 0;
}

/* What a request that passed has left. NULL: nobody knows. */
const dthrottle_used_t *dthrottle_look(request_rec *r, dthrottle_decision_t *decision)
{
    const dthrottle_place_t *place = ap_get_module_config(r->per_dir_config, &dthrottle_module);
    const dthrottle_used_t *domain = domain_of(r, place);
    unsigned char address[IPV6_BYTES];
    const void *tag;
    apr_size_t tag_len = domain ? tag_of(r, place, address, &tag) : 0;
    return tag_len && dthrottle_peek(domain->handle, tag, tag_len, 0, decision) == DTHROTTLE_OK
               ? domain
               : NULL;
}

int dthrottle_header_parser(request_rec *r)
{
    const dthrottle_place_t *place = ap_get_module_config(r->per_dir_config, &dthrottle_module);
    dthrottle_used_t *domain;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    unsigned char address[IPV6_BYTES];
    const void *tag;
    apr_size_t tag_len;
    apr_uint64_t cost = 1;
    int32_t status;
    if (r->prev && dthrottle_tell_again(r))
        return DECLINED;
    domain = domain_of(r, place);
    tag_len = domain ? tag_of(r, place, address, &tag) : 0;
    if (tag_len == 0)
        return DECLINED;
    if (is_simple(place, domain)) {
        status = dthrottle_allow(domain->handle, tag, tag_len, 1);
        if (status == 1) {
            dthrottle_tell_later(r);
            return DECLINED;
        }
        /* When to come back is looked for only now. */
        status = status < 0 ? status
                            : dthrottle_peek(domain->handle, tag, tag_len, 1, &decision);
        if (status == DTHROTTLE_OK) {
            /* It may be full again meanwhile. */
            decision.allowed = false;
            decision.rule = (int32_t)decision.deciding;
        }
    } else {
        cost = cost_of(r, domain, place);
        status = ask(domain, tag, tag_len, place, cost, &decision);
    }
    if (status != DTHROTTLE_OK && !domain->has_failed) {
        domain->has_failed = 1;
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "dthrottle: domain %s: %s; requests pass",
                      domain->name, dthrottle_status_text(status));
    }
    if (!decision.allowed || decision.rule >= 0)
        return refused(r, place, domain, &decision);
    if (decision.dry_run || (decision.wait_ns && place->dry_run == 1)) {
        dthrottle_tell(r, place, domain, "delayed-dry-run", &decision);
    } else if (!decision.wait_ns) {
        dthrottle_tell(r, place, domain, "passed", &decision);
    } else if (dthrottle_enter()) {
        dthrottle_tell(r, place, domain, "delayed", &decision);
        wait_ns(decision.wait_ns);
        dthrottle_leave();
    } else {
        give_back(domain, tag, tag_len, cost, &decision);
        return refused(r, place, domain, &decision);
    }
    return DECLINED;
}
