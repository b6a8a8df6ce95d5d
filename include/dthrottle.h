/*
 * dthrottle: hold every client to a rate.
 *
 *     dthrottle_t *throttle;
 *     dthrottle_domain_t *domain;
 *     const char *rate = "rate = \"100/s\"";
 *
 *     dthrottle_open(rate, strlen(rate), &throttle, NULL, 0);
 *     dthrottle_domain(throttle, NULL, 0, &domain);
 *     if (!dthrottle_allow(domain, client, strlen(client), 1))
 *         ... answer 429 ...
 *
 * The conventions hold for every call:
 *
 * Status. A call answers DTHROTTLE_OK or a negative DTHROTTLE_ERR_ number; dthrottle_status_text()
 * puts it into words. To be throttled is an answer, not an error. Numbers are never given a new
 * meaning.
 *
 * Fail open. A call that fails leaves a decision that says allowed, if there is room for one. So a
 * caller who does not look at the status lets its clients through.
 *
 * Handles. A dthrottle_t, dthrottle_domain_t, dthrottle_config_t, dthrottle_clock_t, dthrottle_busy_t,
 * dthrottle_client_t or dthrottle_middleware_t is made by one call and released by another, once, in
 * any order. After a failure the handle is NULL. NULL may be released, and is DTHROTTLE_ERR_ARGUMENT
 * everywhere else.
 *
 * Strings. A pointer and a length in bytes, without a NUL at the end. NULL with length 0 is the
 * empty string, or the default where the call says so; NULL with another length, and lengths above
 * PTRDIFF_MAX, are DTHROTTLE_ERR_ARGUMENT. Tags are any bytes; other texts are UTF-8. Nothing given
 * to a call is kept after it. Strings that a call returns end with NUL and belong to the library.
 *
 * Error text. Where a call takes error and error_size, the buffer gets a message that says what is
 * wrong and what would be right: always ended by NUL, cut to the size, empty after a success. error
 * may be NULL.
 *
 * Structs. They begin with their size, so that they can grow: use the INIT macros, which set it.
 * Only the fields that both program and library know are read and written. A size below that of
 * the first version is DTHROTTLE_ERR_ARGUMENT.
 *
 * Time. Nanoseconds, in names that end with _ns.
 *
 * Threads. Every handle may be used by any number of threads at once, without locks of the caller.
 * Only releasing needs care: no other thread may use the handle then. Domain handles outlive their
 * throttle.
 *
 * fork(). Calls about a tag have no locks: fork whenever you like, also while other threads are
 * inside one. Parent and child share the buckets from then on, exactly, unless the table was asked
 * to be private; each has handles of its own to release. Processes that are not forked from one
 * another share a table by its name: dthrottle_config_set_table(), or table = "name" in TOML.
 *
 * Clusters. Nodes with one [cluster] in their TOML tell each other what they admitted. For that,
 * and for nothing else, the library has a thread, named dthrottle, that runs no signal handlers. It
 * starts with the first check in a process, or dthrottle_start(), and again in a forked child; a
 * process that only opens and forks has none. Of all processes that share a table one exchanges,
 * the others wait for their turn.
 */

#ifndef DTHROTTLE_H
#define DTHROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DTHROTTLE_VERSION "0.1.0"
#define DTHROTTLE_VERSION_MAJOR 0
#define DTHROTTLE_VERSION_MINOR 1
#define DTHROTTLE_VERSION_PATCH 0

/*
 * How the structs begin: the size set, and nothing asked for that is not the default.
 *
 *     dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
 */
#define DTHROTTLE_CHECK_OPTIONS_INIT \
    { sizeof(dthrottle_check_options_t), false, 1, 0, 0 }
#define DTHROTTLE_RULE_INIT \
    { sizeof(dthrottle_rule_t), false, NULL, 0, NULL, 0, 0, 0 }
#define DTHROTTLE_TABLE_INIT \
    { sizeof(dthrottle_table_t), false, NULL, 0, NULL, 0, NULL, 0, 0, 0 }
#define DTHROTTLE_CLIENT_OPTIONS_INIT \
    { sizeof(dthrottle_client_options_t), 50000000, 100000000, 5000000000, NULL, 0 }
#define DTHROTTLE_CLIENT_COUNTS_INIT \
    { sizeof(dthrottle_client_counts_t), 0, 0, 0 }
#define DTHROTTLE_BUCKET_INIT \
    { sizeof(dthrottle_bucket_t), 0, "", "", 0, 0, 0 }
#define DTHROTTLE_TABLE_INFO_INIT \
    { sizeof(dthrottle_table_info_t), "", "", "", 0, 0, 0 }
#define DTHROTTLE_REQUEST_INIT \
    { sizeof(dthrottle_request_t), false, NULL, 0, NULL, 0, NULL, 0, NULL, 0, \
      DTHROTTLE_COST_OF_OPTIONS }
#define DTHROTTLE_RESPONSE_INIT \
    { sizeof(dthrottle_response_t), 0, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0 }
#define DTHROTTLE_DECISION_INIT \
    { sizeof(dthrottle_decision_t), true, false, -1, 0, 0, 0, 0, 0, 0, 0, -1 }
#define DTHROTTLE_STATS_INIT \
    { sizeof(dthrottle_stats_t), 0, 0, 0, 0, 0, 0, 0, 0 }
#define DTHROTTLE_BUSY_STATS_INIT \
    { sizeof(dthrottle_busy_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
#define DTHROTTLE_CLUSTER_STATS_INIT \
    { sizeof(dthrottle_cluster_stats_t), false, 0, 0, 0, 0 }
#define DTHROTTLE_PEER_INIT \
    { sizeof(dthrottle_peer_t), 0, 0, "", "", 0, 0, 0, 0, 0 }
#define DTHROTTLE_EVENT_INIT \
    { sizeof(dthrottle_event_t), 0, 0, "", 0, 0 }
#define DTHROTTLE_CLIENT_DECISION_INIT \
    { sizeof(dthrottle_client_decision_t), true, false, false, 0, 0, 0, 0, 0, 0, 0, "", "" }

/** The call did what it was asked. */
#define DTHROTTLE_OK 0

/** An invalid configuration: unknown key, bad rate, value out of range, duplicate name. */
#define DTHROTTLE_ERR_CONFIG (-1)

/** A cost that is negative, not whole, too large, or above the burst. */
#define DTHROTTLE_ERR_COST (-2)

/** No such domain. */
#define DTHROTTLE_ERR_DOMAIN (-3)

/** A call after close. */
#define DTHROTTLE_ERR_CLOSED (-4)

/**
 * Anything else that is wrong with an argument. Such as a bad length, text that is not UTF-8, or a
 * clock that is set back.
 */
#define DTHROTTLE_ERR_ARGUMENT (-5)

/** A configuration file that cannot be read. */
#define DTHROTTLE_ERR_FILE (-6)

/** A bug in dthrottle, caught where the languages meet. Please report it. */
#define DTHROTTLE_ERR_INTERNAL (-7)

/** The limit and remaining of a domain without rules. */
#define DTHROTTLE_UNLIMITED 18446744073709551615ull

/** Let the request pass. */
#define DTHROTTLE_PASS 0

/** Delay the request by delay_ns, call dthrottle_middleware_end_delay(), and let it pass. */
#define DTHROTTLE_DELAY 1

/**
 * Refuse the request. If delay_ns is not 0, delay it by that time first, and call
 * dthrottle_middleware_end_delay().
 */
#define DTHROTTLE_REFUSE 2

/** No header fields except Retry-After. */
#define DTHROTTLE_HEADERS_NONE 0

/**
 * RateLimit-Policy and RateLimit as structured fields: drafts 08 to 11 of
 * draft-ietf-httpapi-ratelimit-headers.
 */
#define DTHROTTLE_HEADERS_STANDARD 1

/** RateLimit-Policy and RateLimit of draft 07. */
#define DTHROTTLE_HEADERS_DRAFT_7 2

/**
 * RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset of draft 06, and RateLimit-Policy.
 */
#define DTHROTTLE_HEADERS_DRAFT_6 3

/** X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. */
#define DTHROTTLE_HEADERS_X_RATELIMIT 4

/** How many bytes a client address may need as a tag. */
#define DTHROTTLE_ADDRESS_SIZE 16

/** The cost of a request is that of the options, or 1. */
#define DTHROTTLE_COST_OF_OPTIONS 18446744073709551615ull

/**
 * A busy throttle: slows down what is sent to services that say they are busy, and comes back
 * gradually. Made by dthrottle_busy_open(), released by dthrottle_busy_close().
 *
 * A service is known by any bytes. The calls whose names end with _at take the time by the
 * throttle's clock, as dthrottle_busy_now() tells it; the others read that clock.
 */
typedef struct dthrottle_busy_t dthrottle_busy_t;

/**
 * A client: asks a dthrottled. Without an answer in time everything is allowed, and nobody is
 * asked for a while. Made by dthrottle_client_open(), released by dthrottle_client_close().
 */
typedef struct dthrottle_client_t dthrottle_client_t;

/**
 * A clock that stands still until it is moved: for tests. Made by dthrottle_clock_new(), released
 * by dthrottle_clock_free().
 */
typedef struct dthrottle_clock_t dthrottle_clock_t;

/**
 * A configuration: domains and their rules, a table, and a clock. Made by
 * dthrottle_config_new(), released by dthrottle_config_free().
 */
typedef struct dthrottle_config_t dthrottle_config_t;

/**
 * A domain of a throttle: resolved once by its name, then asked at every check. Made by
 * dthrottle_domain(), released by dthrottle_domain_free().
 */
typedef struct dthrottle_domain_t dthrottle_domain_t;

/** The memory of a response, released by dthrottle_response_free(). */
typedef struct dthrottle_memory_t dthrottle_memory_t;

/**
 * HTTP middleware on a domain, which decides about requests by its options. Made by
 * dthrottle_middleware_new(), released by dthrottle_middleware_free().
 */
typedef struct dthrottle_middleware_t dthrottle_middleware_t;

/**
 * A throttle: holds every tag to the rules of its domains. Made by dthrottle_open() and its
 * sisters, released by dthrottle_close().
 */
typedef struct dthrottle_t dthrottle_t;

/** What a throttle counted since it was made. Begin with DTHROTTLE_STATS_INIT. */
typedef struct {
    /** sizeof(dthrottle_stats_t). */
    size_t size;
    /** Checks allowed, those that only dry run allowed included. */
    uint64_t allowed;
    /** Checks refused. */
    uint64_t refused;
    /** Checks that were allowed, or allowed without a delay, only because of dry run. */
    uint64_t dry_run;
    /**
     * Charges that were not counted, because the table had no room or the bucket no more ticks:
     * they failed open.
     */
    uint64_t failed_open;
    /** How often the debt of a bucket went beyond what a bucket can hold. */
    uint64_t clamped;
    /**
     * Buckets that were forgotten before they were full, because the table had no better room for
     * others.
     */
    uint64_t evicted;
    /** Buckets that are not full now. */
    uint64_t buckets;
    /**
     * Units admitted that no other node will hear about: of buckets that were forgotten, or more
     * than one bucket could keep for the next report.
     */
    uint64_t unreported;
} dthrottle_stats_t;

/** A bucket that is used. Begin with DTHROTTLE_BUCKET_INIT. */
typedef struct {
    /** sizeof(dthrottle_bucket_t). */
    size_t size;
    /** Stands for domain, rule and tag: the tag itself is not kept. */
    uint64_t fingerprint;
    /** The domain's name. */
    char domain[256];
    /** The rule's name. */
    char rule[256];
    /** The rule's burst. */
    uint64_t limit;
    /** Whole units in the bucket, negative in debt. */
    int64_t balance;
    /** The time until the bucket is full. */
    uint64_t reset_after_ns;
} dthrottle_bucket_t;

/**
 * The answer to a check. docs/semantics.md defines every field. Begin with
 * DTHROTTLE_DECISION_INIT. After an error it says allowed.
 */
typedef struct {
    /** sizeof(dthrottle_decision_t). */
    size_t size;
    /** Go on. */
    bool allowed;
    /**
     * Refused, or allowed after a delay, but allowed at once because the domain is in dry run:
     * rule tells them apart.
     */
    bool dry_run;
    /** The rule that refused. Its index, for dthrottle_rule_name(); -1 if there is none. */
    int32_t rule;
    /** The burst of the deciding rule. DTHROTTLE_UNLIMITED in a domain without rules. */
    uint64_t limit;
    /**
     * Whole units in the bucket of the deciding rule, 0 in debt. DTHROTTLE_UNLIMITED in a domain
     * without rules.
     */
    uint64_t remaining;
    /** Like remaining, but negative in debt. */
    int64_t balance;
    /** Units taken (by a peek: that would be). */
    uint64_t granted;
    /** How long to wait before going on; 0 unless max_delay was set, and in dry run. */
    uint64_t delay_ns;
    /**
     * When refused, or spared a delay by dry run: time until this check would pass without
     * waiting. Otherwise 0.
     */
    uint64_t retry_after_ns;
    /** Time until every bucket of the tag is full again. */
    uint64_t reset_after_ns;
    /**
     * The deciding rule, whose figures these are, also when it did not refuse. Its index, for
     * dthrottle_rule_name(); -1 if there is none.
     */
    int64_t deciding;
} dthrottle_decision_t;

/**
 * What a check asks for. Begin with DTHROTTLE_CHECK_OPTIONS_INIT, which asks for one unit, now.
 */
typedef struct {
    /** sizeof(dthrottle_check_options_t). */
    size_t size;
    /** Take as many units as there are, if not all; the decision's granted says how many. */
    bool partial;
    /** Units. */
    uint64_t cost;
    /**
     * Be allowed also when the turn comes within this time. The units are taken at once, and
     * the decision's delay_ns says how long to wait. Who gives up calls dthrottle_refund().
     */
    uint64_t max_delay_ns;
    /**
     * 1: allow a cost above the burst. The check then needs a full bucket of that rule and leaves
     * it in debt, in one atomic step. Has no effect together with partial.
     */
    uint64_t allow_debt;
} dthrottle_check_options_t;

/** A header field of a response. Both strings end with NUL. */
typedef struct {
    /** The name, such as "RateLimit". */
    const char *name;
    /** The value. */
    const char *value;
} dthrottle_field_t;

/**
 * What to do with a request, and the fields and body of its response. Begin with
 * DTHROTTLE_RESPONSE_INIT. Every call that fills one in gives it memory, which
 * dthrottle_response_free() releases: all pointers are valid until then. After an error the action
 * is DTHROTTLE_PASS and there is no memory.
 */
typedef struct {
    /** sizeof(dthrottle_response_t). */
    size_t size;
    /** DTHROTTLE_PASS, DTHROTTLE_DELAY or DTHROTTLE_REFUSE. */
    int32_t action;
    /** The status of a refusal, such as 429; else 0. */
    int32_t status;
    /** The header fields. Add them to the response, whatever the action is. */
    const dthrottle_field_t *fields;
    /** How many there are. */
    size_t field_count;
    /** The body of a refusal; else NULL. */
    const void *body;
    /** Its length in bytes. */
    size_t body_len;
    /** The tag that was counted; NULL: the request passed without a decision. */
    const void *tag;
    /** Its length in bytes. */
    size_t tag_len;
    /** What dthrottle_response_free() releases. */
    dthrottle_memory_t *memory;
    /** How long to delay the request; 0: not at all. */
    uint64_t delay_ns;
} dthrottle_response_t;

/** A request, as the server knows it. Begin with DTHROTTLE_REQUEST_INIT. */
typedef struct {
    /** sizeof(dthrottle_request_t). */
    size_t size;
    /** Whether the server can delay this request, and serve others meanwhile. */
    bool can_delay;
    /** The address at the other end of the connection as text; NULL: unknown. */
    const char *peer;
    /** Its length in bytes. */
    size_t peer_len;
    /** X-Forwarded-For; several lines are joined with commas. NULL: the request has none. */
    const char *forwarded;
    /** Its length in bytes. */
    size_t forwarded_len;
    /**
     * The tag, if the option tag is a header, whose value it is, or "request". NULL: the header is
     * missing, and the client's address is counted.
     */
    const void *tag;
    /** Its length in bytes. */
    size_t tag_len;
    /** Tags of different scopes are different clients: the name of a route. NULL: none. */
    const char *scope;
    /** Its length in bytes. */
    size_t scope_len;
    /**
     * Units, or DTHROTTLE_COST_OF_OPTIONS. A cost above the burst needs a full bucket and leaves
     * it in debt.
     */
    uint64_t cost;
} dthrottle_request_t;

/**
 * A cluster, as seen from one node. All processes of a table see the same. Begin with
 * DTHROTTLE_CLUSTER_STATS_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_cluster_stats_t). */
    size_t size;
    /** Whether the throttle belongs to a cluster at all. */
    bool in_cluster;
    /** This node; zero before the start. */
    uint64_t node;
    /** The present life of its exchange; zero: it has not begun. Later lives are greater. */
    uint64_t incarnation;
    /** The process that runs the exchange, or did last; 0 in WebAssembly. */
    uint64_t pid;
    /** How many peers are there or were lately, for dthrottle_cluster_peer(). */
    uint64_t peer_count;
} dthrottle_cluster_stats_t;

/**
 * A peer: another node of the cluster, as seen from one node. Begin with DTHROTTLE_PEER_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_peer_t). */
    size_t size;
    /** Which node. */
    uint64_t node;
    /** In which life. */
    uint64_t incarnation;
    /** Its address and port, as far as they are known. */
    char address[64];
    /** up, down, left, or known if it has yet to become a member. */
    char state[16];
    /** How long ago it was last heard. */
    uint64_t age_ns;
    /** How long a datagram takes. */
    uint64_t delay_ns;
    /** Reports applied. */
    uint64_t received;
    /** Those of them that had been missing at first. */
    uint64_t repaired;
    /** Reports that are lost for good. */
    uint64_t lost;
} dthrottle_peer_t;

/** Something that happened in the cluster. Begin with DTHROTTLE_EVENT_INIT. */
typedef struct {
    /** sizeof(dthrottle_event_t). */
    size_t size;
    /** Counts events, from 1. */
    uint64_t number;
    /** How long ago it happened. */
    uint64_t age_ns;
    /** peer_up, peer_down, peer_left, rules_differ, reports_lost or warm_start. */
    char kind[32];
    /** The peer it is about. */
    uint64_t node;
    /** How many, where that matters: reports lost, buckets taken over at the start. */
    uint64_t value;
} dthrottle_event_t;

/** A rule: rate and burst. Begin with DTHROTTLE_RULE_INIT and set at least the rate. */
typedef struct {
    /** sizeof(dthrottle_rule_t). */
    size_t size;
    /** Whether refused checks are charged to this rule as well. */
    bool charge_refused;
    /** The name, unique in its domain; NULL: "rule1", "rule2", ... by position. */
    const char *name;
    /** Its length in bytes. */
    size_t name_len;
    /**
     * The rate, such as "100/s" or "5 per 2 minutes". "unlimited" adds no rule: it says that a
     * domain without rules is meant to allow everything.
     */
    const char *rate;
    /** Its length in bytes. */
    size_t rate_len;
    /** The burst in units; 0: the count of the rate. */
    uint64_t burst;
    /** Or the burst as the units that the rate gives in this time; 0: not so. */
    uint64_t burst_time_ns;
} dthrottle_rule_t;

/**
 * Where the buckets live. Begin with DTHROTTLE_TABLE_INIT: shared with all children forked later,
 * and with room for a million tags.
 */
typedef struct {
    /** sizeof(dthrottle_table_t). */
    size_t size;
    /** Whether it is of this process alone; a forked child goes on with a copy. */
    bool is_private;
    /** The name under which every process of this user shares it; NULL: none. */
    const char *name;
    /** Its length in bytes. */
    size_t name_len;
    /**
     * The group, by name or number, whose members may all use the named table; NULL: this user
     * alone.
     */
    const char *group;
    /** Its length in bytes. */
    size_t group_len;
    /** The directory for the named table's file; NULL: the default of docs/table.md. */
    const char *dir;
    /** Its length in bytes. */
    size_t dir_len;
    /** How many tags it has room for; 0: a million. */
    uint64_t tags;
    /** Or how many bytes it may take; 0: not so. */
    uint64_t bytes;
} dthrottle_table_t;

/** A named table on this machine. Begin with DTHROTTLE_TABLE_INFO_INIT. */
typedef struct {
    /** sizeof(dthrottle_table_info_t). */
    size_t size;
    /** Its name. */
    char name[256];
    /** Its file. */
    char path[1024];
    /** Why it cannot be used; empty if it can. */
    char fault[256];
    /** Bytes of memory. */
    uint64_t bytes;
    /** How many tags it has room for. */
    uint64_t tags;
    /** Buckets that are not full now. */
    uint64_t buckets;
} dthrottle_table_info_t;

/**
 * What a busy throttle counted in this process since it was made. Begin with
 * DTHROTTLE_BUSY_STATS_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_busy_stats_t). */
    size_t size;
    /** Requests that could be sent. */
    uint64_t sent;
    /** Requests that should not be sent yet. */
    uint64_t refused;
    /** Good answers. */
    uint64_t good;
    /** Busy answers. */
    uint64_t busy;
    /** How often a limit was cut by a busy answer of its own. */
    uint64_t cuts;
    /** Busy responses that other nodes of the cluster reported. */
    uint64_t remote_busy;
    /** Services with a limit that were forgotten, because there were too many others. */
    uint64_t forgotten;
    /** Services known now, by all processes that share them. */
    uint64_t services;
    /** Other nodes of the cluster that are there now. */
    uint64_t peers;
} dthrottle_busy_stats_t;

/** How a client waits. Begin with DTHROTTLE_CLIENT_OPTIONS_INIT. */
typedef struct {
    /** sizeof(dthrottle_client_options_t). */
    size_t size;
    /** How long a call may take; 50 ms. */
    uint64_t timeout_ns;
    /**
     * How long nobody is asked after a failure, twice as long after each further one; 100 ms.
     */
    uint64_t backoff_ns;
    /** The longest such pause; 5 s. */
    uint64_t max_backoff_ns;
    /**
     * The daemon's token, which dthrottle_client_refund() and dthrottle_client_reset() need over
     * TCP; NULL for none. dthrottle_client_open() copies it.
     */
    const char *token;
    /** Its length. */
    size_t token_len;
} dthrottle_client_options_t;

/**
 * The answer to a check, from a daemon. docs/semantics.md defines every field. Begin with
 * DTHROTTLE_CLIENT_DECISION_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_client_decision_t). */
    size_t size;
    /** Go on. */
    bool allowed;
    /**
     * Refused, or allowed after a delay, but allowed at once because the domain is in dry run:
     * rule tells them apart.
     */
    bool dry_run;
    /** Nobody answered in time, so it is allowed. */
    bool failed_open;
    /** The burst of the deciding rule. DTHROTTLE_UNLIMITED in a domain without rules. */
    uint64_t limit;
    /**
     * Whole units in the bucket of the deciding rule, 0 in debt. DTHROTTLE_UNLIMITED in a domain
     * without rules.
     */
    uint64_t remaining;
    /** Like remaining, but negative in debt. */
    int64_t balance;
    /** Units taken (by a peek: that would be). */
    uint64_t granted;
    /** How long to wait before going on; 0 unless max_delay was set, and in dry run. */
    uint64_t delay_ns;
    /**
     * When refused, or spared a delay by dry run: time until this check would pass without
     * waiting. Otherwise 0.
     */
    uint64_t retry_after_ns;
    /** Time until every bucket of the tag is full again. */
    uint64_t reset_after_ns;
    /** The rule that refused. Its name, ended by NUL; empty if there is none. */
    char rule[256];
    /**
     * The deciding rule, whose figures these are, also when it did not refuse. Its name, ended by
     * NUL; empty if there is none.
     */
    char deciding[256];
} dthrottle_client_decision_t;

/** What a client counted. Begin with DTHROTTLE_CLIENT_COUNTS_INIT. */
typedef struct {
    /** sizeof(dthrottle_client_counts_t). */
    size_t size;
    /** Questions that the daemon answered. */
    uint64_t asked;
    /**
     * Questions that were allowed because nobody answered in time, or not asked during a pause.
     */
    uint64_t failed_open;
    /** Connections that could not be made, or broke. */
    uint64_t failures;
} dthrottle_client_counts_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is running, such as "0.1.0". DTHROTTLE_VERSION is the one of
 * the header that the program was compiled with.
 */
const char *dthrottle_version(void);

/** A few words about a status, never NULL. Static: not to be freed. */
const char *dthrottle_status_text(int32_t status);

/** Opens a throttle from a configuration in TOML. */
int32_t dthrottle_open(const char *toml,
                       size_t toml_len,
                       dthrottle_t **out,
                       char *error,
                       size_t error_size);

/** Opens a throttle from a configuration file in TOML. */
int32_t dthrottle_open_file(const char *path,
                            size_t path_len,
                            dthrottle_t **out,
                            char *error,
                            size_t error_size);

/**
 * Opens a throttle from a configuration made with dthrottle_config_new(). The configuration
 * stays the caller's, and can be used again.
 */
int32_t dthrottle_open_config(const dthrottle_config_t *config,
                              dthrottle_t **out,
                              char *error,
                              size_t error_size);

/**
 * Opens a throttle on the table of another one, with the rules of a configuration: no bucket is
 * lost. What the configuration says about the table and the clock is left out of account. In a
 * cluster the exchange starts anew. The old throttle and its domains go on with the old rules, and
 * are meant to be released: dthrottle_close() only does that with it from now on.
 */
int32_t dthrottle_reload(const dthrottle_t *throttle,
                         const dthrottle_config_t *config,
                         dthrottle_t **out,
                         char *error,
                         size_t error_size);

/**
 * Closes a throttle and releases it; NULL is fine. Its domain handles remain, to be released
 * with dthrottle_domain_free(), and answer DTHROTTLE_ERR_CLOSED. Takes leave of its cluster in
 * this process, which may take 300 ms.
 */
void dthrottle_close(dthrottle_t *throttle);

/** What the throttle counted so far. */
int32_t dthrottle_stats(const dthrottle_t *throttle, dthrottle_stats_t *stats);

/**
 * What is not as it was asked for, by index from 0, such as a named table that is not shared
 * because there is no place for it; NULL if there is no more. Lives as long as the handle. The
 * throttle works all the same; nothing is printed.
 */
const char *dthrottle_warning(const dthrottle_t *throttle, int32_t index);

/**
 * The name of a domain of the throttle, by its index from 0, the default domain first; NULL if
 * there is no more. Lives as long as the handle.
 */
const char *dthrottle_domain_list(const dthrottle_t *throttle, int32_t index);

/**
 * Checks allowed and refused so far, as in dthrottle_stats(), which also looks at the whole table.
 */
int32_t dthrottle_decisions(const dthrottle_t *throttle, uint64_t *allowed, uint64_t *refused);

/**
 * The buckets with the largest share of their burst used, most used first. buckets has room for so
 * many, each as large as the first one's size says; count gets how many were written. Looks at the
 * whole table.
 */
int32_t dthrottle_top(const dthrottle_t *throttle,
                      dthrottle_bucket_t *buckets,
                      size_t capacity,
                      size_t *count);

/**
 * Resolves a domain by its name; name NULL and name_len 0 is the default domain.
 * DTHROTTLE_ERR_DOMAIN if the throttle has no such domain.
 */
int32_t dthrottle_domain(const dthrottle_t *throttle,
                         const char *name,
                         size_t name_len,
                         dthrottle_domain_t **out);

/** Releases a domain handle; NULL is fine. The domain itself goes on. */
void dthrottle_domain_free(dthrottle_domain_t *domain);

/** The domain's name, or NULL without a domain. Lives as long as the handle. */
const char *dthrottle_domain_name(const dthrottle_domain_t *domain);

/**
 * Whether nothing is refused or told to wait in this domain, only counted: 1, 0, or a negative
 * status.
 */
int32_t dthrottle_domain_is_dry_run(const dthrottle_domain_t *domain);

/** How many rules the domain has, or a negative status. */
int32_t dthrottle_rule_count(const dthrottle_domain_t *domain);

/**
 * The name of a rule by its index from 0, as in a decision; NULL if there is no such rule, as for
 * -1. Lives as long as the handle.
 */
const char *dthrottle_rule_name(const dthrottle_domain_t *domain, int32_t index);

/** The burst of a rule by its index from 0, as in a decision; 0 if there is no such rule. */
uint64_t dthrottle_rule_limit(const dthrottle_domain_t *domain, int32_t index);

/**
 * The nanoseconds in which an empty bucket of a rule fills, by the rule's index from 0; 0 if there
 * is no such rule.
 */
uint64_t dthrottle_rule_window(const dthrottle_domain_t *domain, int32_t index);

/**
 * Gives a warning for the log if a bucket of this tag still misses units that an earlier process
 * took from a named table: 1, 0 if not, or a negative status. To be called when a check was
 * refused. A throttle gives this warning once; it names the table and the command that removes
 * it. text, unless it is NULL, gets the warning, cut to text_size bytes with the NUL at its end.
 */
int32_t dthrottle_earlier_process_warning(const dthrottle_domain_t *domain,
                                          const void *tag,
                                          size_t tag_len,
                                          char *text,
                                          size_t text_size);

/** Asks for cost units, and takes them if they pass. */
int32_t dthrottle_check(const dthrottle_domain_t *domain,
                        const void *tag,
                        size_t tag_len,
                        uint64_t cost,
                        dthrottle_decision_t *decision);

/** Checks a tag with these options. */
int32_t dthrottle_check_with(const dthrottle_domain_t *domain,
                             const void *tag,
                             size_t tag_len,
                             const dthrottle_check_options_t *options,
                             dthrottle_decision_t *decision);

/** The decision that dthrottle_check() would give. Takes nothing. */
int32_t dthrottle_peek(const dthrottle_domain_t *domain,
                       const void *tag,
                       size_t tag_len,
                       uint64_t cost,
                       dthrottle_decision_t *decision);

/** The decision that dthrottle_check_with() would give. Takes nothing. */
int32_t dthrottle_peek_with(const dthrottle_domain_t *domain,
                            const void *tag,
                            size_t tag_len,
                            const dthrottle_check_options_t *options,
                            dthrottle_decision_t *decision);

/**
 * Asks for cost units, and takes them if they pass: 1 allowed, 0 refused, negative a status. So
 * "if (dthrottle_allow(...))" goes on also after an error.
 */
int32_t dthrottle_allow(const dthrottle_domain_t *domain,
                        const void *tag,
                        size_t tag_len,
                        uint64_t cost);

/**
 * Asks for one unit for each of count tags in turn, and takes what passes: as so many calls of
 * dthrottle_allow(), but faster where tags are many. allowed has room for count answers. All
 * pointers are looked at before anything is taken; after an error, what is not known is allowed.
 */
int32_t dthrottle_allow_many(const dthrottle_domain_t *domain,
                             const void *const *tags,
                             const size_t *tag_lens,
                             size_t count,
                             bool *allowed);

/**
 * Gives cost units back to every rule: for work that was not done after all, or a wait that was
 * given up. A bucket never rises above its burst.
 */
int32_t dthrottle_refund(const dthrottle_domain_t *domain,
                         const void *tag,
                         size_t tag_len,
                         uint64_t cost);

/** Fills the tag's bucket of every rule. */
int32_t dthrottle_reset(const dthrottle_domain_t *domain, const void *tag, size_t tag_len);

/**
 * Charges units that were used elsewhere, the first of them age_ns ago, without asking. May take
 * a bucket below zero.
 */
int32_t dthrottle_charge_local(const dthrottle_domain_t *domain,
                               const void *tag,
                               size_t tag_len,
                               uint64_t cost,
                               uint64_t age_ns);

/**
 * Charges units that were used here, without asking, and tells peers. May take a bucket below zero:
 * debt_ns, unless it is NULL, gets the time until none of the tag's buckets is.
 */
int32_t dthrottle_charge(const dthrottle_domain_t *domain,
                         const void *tag,
                         size_t tag_len,
                         uint64_t cost,
                         uint64_t *debt_ns);

/**
 * The address of a client as a tag: 4 bytes for IPv4, or the leading ipv6_prefix bits of an IPv6
 * address and zeros, 16 bytes in all. address is as a socket has it, 4 or 16 bytes. An IPv6 address
 * that stands for an IPv4 address gives that. tag has room for DTHROTTLE_ADDRESS_SIZE bytes, and
 * tag_len gets how many were written. ipv6_prefix is 1 to 128; 64 is what most networks give one
 * client.
 */
int32_t dthrottle_address_tag(const void *address,
                              size_t address_len,
                              uint32_t ipv6_prefix,
                              uint8_t *tag,
                              size_t *tag_len);

/**
 * The kind of header fields with this name, for configurations: "standard" (or "draft-8", "on"),
 * "draft-7", "draft-6", "x-ratelimit", "none" (or "off") give a DTHROTTLE_HEADERS_ number.
 * DTHROTTLE_ERR_CONFIG: there is no such kind.
 */
int32_t dthrottle_header_kind(const char *name, size_t name_len);

/**
 * The header fields for a decision of a domain, with Retry-After if the decision is not allowed.
 * kind is a DTHROTTLE_HEADERS_ number. Only the fields of the response are filled in.
 */
int32_t dthrottle_header_fields(const dthrottle_domain_t *domain,
                                int32_t kind,
                                const dthrottle_decision_t *decision,
                                dthrottle_response_t *response);

/**
 * Releases what a response points at; the response can be used again. NULL is fine, and a response
 * without memory.
 */
void dthrottle_response_free(dthrottle_response_t *response);

/**
 * Makes middleware that asks this domain. options is TOML with the options of docs/http.md; rates
 * and rules are the domain's. The caller compares methods and routes, and reads the tag from the
 * request: tag = "request" says that each request brings one. Keeps a reference to the domain.
 */
int32_t dthrottle_middleware_new(const dthrottle_domain_t *domain,
                                 const char *options,
                                 size_t options_len,
                                 dthrottle_middleware_t **out,
                                 char *error,
                                 size_t error_size);

/** Releases middleware; NULL is fine. Release its responses as well, before or after it. */
void dthrottle_middleware_free(dthrottle_middleware_t *middleware);

/**
 * Decides about a request. The response says what to do with it, and has its header fields;
 * decision, unless it is NULL, gets the decision of the throttle. Texts that are not UTF-8 are no
 * error: clients write them.
 */
int32_t dthrottle_middleware_decide(const dthrottle_middleware_t *middleware,
                                    const dthrottle_request_t *request,
                                    dthrottle_response_t *response,
                                    dthrottle_decision_t *decision);

/**
 * Ends the delay of a request, after delay_ns or earlier: another request can be delayed then.
 * is_gone: the client left before its turn, and gets back what it took. Only the first call counts.
 */
int32_t dthrottle_middleware_end_delay(const dthrottle_middleware_t *middleware,
                                       const dthrottle_response_t *response,
                                       bool is_gone);

/**
 * To be called when the response to a request has ended: refunds the request, if the options
 * skip_failed_requests or skip_successful_requests say so, and if dthrottle_middleware_end_delay()
 * did not. Only the first call counts.
 */
int32_t dthrottle_middleware_finish(const dthrottle_middleware_t *middleware,
                                    const dthrottle_response_t *response,
                                    bool is_success);

/**
 * Takes the next warning, such as about X-Forwarded-For without trusted proxies, as one line for a
 * log: 1, or 0 if there is none. Each cause gives one warning. To be called after
 * dthrottle_middleware_new() and after each decision; cheap if there is none.
 */
int32_t dthrottle_middleware_warning(const dthrottle_middleware_t *middleware,
                                     char *text,
                                     size_t text_size);

/**
 * Starts the exchange with the cluster in this process, unless it has started: otherwise the
 * first check does. Without a cluster there is nothing to start.
 */
int32_t dthrottle_start(const dthrottle_t *throttle);

/**
 * Ends the exchange in this process for good, and waits for nothing: another process of the table
 * goes on with it. Checks go on as before. For processes that only finish what they have begun,
 * such as the old workers of a server that has read its configuration again.
 */
int32_t dthrottle_stop(const dthrottle_t *throttle);

/** The cluster, as this node sees it. */
int32_t dthrottle_cluster_stats(const dthrottle_t *throttle, dthrottle_cluster_stats_t *stats);

/**
 * What the node counted under a name, such as "reports_sent", "reports_received",
 * "reports_lost", "bytes_sent", or "dropped_auth" for datagrams under another key.
 * DTHROTTLE_ERR_ARGUMENT if nothing is counted under this name, as without a cluster.
 */
int32_t dthrottle_cluster_count(const dthrottle_t *throttle,
                                const char *name,
                                size_t name_len,
                                uint64_t *value);

/**
 * A peer by its index from 0. DTHROTTLE_ERR_ARGUMENT if there is none, which ends a loop: peers
 * come and go between two calls.
 */
int32_t dthrottle_cluster_peer(const dthrottle_t *throttle, size_t index, dthrottle_peer_t *peer);

/**
 * What happened in the cluster after the event with the number after, oldest first, as far as it
 * is still known: begin with 0, and go on with the number of the last one. events has room for so
 * many, each as large as the first one's size says; count gets how many were written. Fewer than
 * room: there are no more.
 */
int32_t dthrottle_events(const dthrottle_t *throttle,
                         uint64_t after,
                         dthrottle_event_t *events,
                         size_t capacity,
                         size_t *count);

/**
 * Makes a configuration: the default domain, without rules. Add at least one rule before
 * dthrottle_open_config().
 */
int32_t dthrottle_config_new(dthrottle_config_t **out);

/** Releases a configuration; NULL is fine. Throttles that were opened from it go on. */
void dthrottle_config_free(dthrottle_config_t *config);

/**
 * Replaces all domains, rules, dry runs and the table by those of a configuration in TOML. The
 * clock stays. After an error nothing has changed.
 */
int32_t dthrottle_config_toml(dthrottle_config_t *config,
                              const char *toml,
                              size_t toml_len,
                              char *error,
                              size_t error_size);

/** The same with a configuration file in TOML. */
int32_t dthrottle_config_file(dthrottle_config_t *config,
                              const char *path,
                              size_t path_len,
                              char *error,
                              size_t error_size);

/**
 * Adds a rule to a domain, which is made if it is not there; domain NULL is the default domain.
 * A bad rate or burst is an error of dthrottle_open_config(), which says what would be right.
 */
int32_t dthrottle_config_add_rule(dthrottle_config_t *config,
                                  const char *domain,
                                  size_t domain_len,
                                  const dthrottle_rule_t *rule);

/**
 * Whether refusals are only counted, not enforced, in a domain, which is made if it is not
 * there; domain NULL is every domain for which nothing else was said.
 */
int32_t dthrottle_config_set_dry_run(dthrottle_config_t *config,
                                     const char *domain,
                                     size_t domain_len,
                                     bool dry_run);

/**
 * Says where the buckets live. A bad name or size is an error of dthrottle_open_config(), which
 * says what would be right.
 */
int32_t dthrottle_config_set_table(dthrottle_config_t *config, const dthrottle_table_t *table);

/**
 * Names the table, if nothing was said of whose it is: for hosts whose processes open the
 * throttle each for itself, such as a server's workers. A bad name is told as above. In a
 * cluster, a table of that name that has the key of another, or of none, is left alone: `name-2`
 * or so is taken.
 */
int32_t dthrottle_config_name_table(dthrottle_config_t *config, const char *name, size_t name_len);

/**
 * How many rules a domain of the configuration has, or DTHROTTLE_ERR_DOMAIN if there is no such
 * domain; domain NULL is the default domain.
 */
int32_t dthrottle_config_rule_count(const dthrottle_config_t *config,
                                    const char *domain,
                                    size_t domain_len);

/**
 * Looks at everything that dthrottle_open_config() would look at, and opens nothing: for tests of
 * a configuration. Reads the secret of the cluster, if it is in a file, and keeps it: a process
 * that has given up its rights can open the throttle later. Starts no thread.
 */
int32_t dthrottle_config_check(dthrottle_config_t *config, char *error, size_t error_size);

/**
 * Makes throttles of this configuration run by a clock that is moved by hand. The caller keeps
 * the clock handle, and may release it at any time.
 */
int32_t dthrottle_config_set_clock(dthrottle_config_t *config, const dthrottle_clock_t *clock);

/**
 * The tables of this user, in the usual folders; or of the group and in the dir that are given in
 * of, which may be NULL. tables has room for so many, each as large as the first one's size says;
 * count gets how many there are, which may be more.
 */
int32_t dthrottle_table_list(const dthrottle_table_t *of,
                             dthrottle_table_info_t *tables,
                             size_t capacity,
                             size_t *count,
                             char *error,
                             size_t error_size);

/**
 * Removes the table with the name, group and dir of table. Processes that have it open keep it
 * among themselves until they end.
 */
int32_t dthrottle_table_remove(const dthrottle_table_t *table, char *error, size_t error_size);

/**
 * Gives the table with the name, group and dir of table the size of table, in tags or bytes, with
 * all its buckets that fit; forgotten, unless it is NULL, gets how many did not. Processes that
 * have it open keep the old one among themselves until they are restarted.
 */
int32_t dthrottle_table_resize(const dthrottle_table_t *table,
                               uint64_t *forgotten,
                               char *error,
                               size_t error_size);

/** Makes a clock that stands at zero. */
int32_t dthrottle_clock_new(dthrottle_clock_t **out);

/** Releases a clock handle; NULL is fine. Throttles that run by the clock stand still then. */
void dthrottle_clock_free(dthrottle_clock_t *clock);

/** Moves the clock on. It stops at its end, after 584 years. */
int32_t dthrottle_clock_advance(dthrottle_clock_t *clock, uint64_t by_ns);

/**
 * Moves the clock on to a time since its zero. Time never runs backwards: an earlier time is
 * DTHROTTLE_ERR_ARGUMENT.
 */
int32_t dthrottle_clock_set(dthrottle_clock_t *clock, uint64_t to_ns);

/** The time since the clock's zero. */
int32_t dthrottle_clock_now(const dthrottle_clock_t *clock, uint64_t *now_ns);

/**
 * Opens a busy throttle from settings in TOML, such as "floor = 2" or "mode = 'document'"; without
 * any text, the usual ones. With "table = 'name'" all processes of this user that give the same
 * name share what they know; with a table [cluster], the nodes of that cluster. A clock, if one is
 * given, takes the place of the system's.
 */
int32_t dthrottle_busy_open(const char *toml,
                            size_t toml_len,
                            const dthrottle_clock_t *clock,
                            dthrottle_busy_t **out,
                            char *error,
                            size_t error_size);

/** Closes a busy throttle and releases it; NULL is fine. */
void dthrottle_busy_close(dthrottle_busy_t *busy);

/**
 * Starts the exchange with the cluster in this process, unless it has started: otherwise the first
 * request does. Without a cluster there is nothing to start.
 */
int32_t dthrottle_busy_start(const dthrottle_busy_t *busy);

/** The time by the throttle's clock. */
int32_t dthrottle_busy_now(const dthrottle_busy_t *busy, uint64_t *now_ns);

/**
 * Whether a request to a service may be sent now: 1, and it counts as sent; or 0, and wait_ns,
 * unless it is NULL, says when it is worth asking again.
 */
int32_t dthrottle_busy_should_send(const dthrottle_busy_t *busy,
                                   const char *service,
                                   size_t service_len,
                                   uint64_t *wait_ns);

/** The same at a time. */
int32_t dthrottle_busy_should_send_at(const dthrottle_busy_t *busy,
                                      const char *service,
                                      size_t service_len,
                                      uint64_t now_ns,
                                      uint64_t *wait_ns);

/**
 * The service said that it is busy, and for how long nothing should be sent; 0: it did not say.
 */
int32_t dthrottle_busy_on_busy(const dthrottle_busy_t *busy,
                               const char *service,
                               size_t service_len,
                               uint64_t retry_after_ns);

/** The same at a time. */
int32_t dthrottle_busy_on_busy_at(const dthrottle_busy_t *busy,
                                  const char *service,
                                  size_t service_len,
                                  uint64_t now_ns,
                                  uint64_t retry_after_ns);

/** The service gave any other answer. */
int32_t dthrottle_busy_on_ok(const dthrottle_busy_t *busy, const char *service, size_t service_len);

/** The same at a time. */
int32_t dthrottle_busy_on_ok_at(const dthrottle_busy_t *busy,
                                const char *service,
                                size_t service_len,
                                uint64_t now_ns);

/** The limit of a service in requests a second; below zero: there is none. */
int32_t dthrottle_busy_limit(const dthrottle_busy_t *busy,
                             const char *service,
                             size_t service_len,
                             double *limit);

/** The same at a time. */
int32_t dthrottle_busy_limit_at(const dthrottle_busy_t *busy,
                                const char *service,
                                size_t service_len,
                                uint64_t now_ns,
                                double *limit);

/** How many requests were sent to a service in the last second. */
int32_t dthrottle_busy_rate(const dthrottle_busy_t *busy,
                            const char *service,
                            size_t service_len,
                            double *rate);

/** The same at a time. */
int32_t dthrottle_busy_rate_at(const dthrottle_busy_t *busy,
                               const char *service,
                               size_t service_len,
                               uint64_t now_ns,
                               double *rate);

/** Forgets a service, and with it its limit. */
int32_t dthrottle_busy_forget(const dthrottle_busy_t *busy,
                              const char *service,
                              size_t service_len);

/** What the throttle counted so far. */
int32_t dthrottle_busy_stats(const dthrottle_busy_t *busy, dthrottle_busy_stats_t *stats);

/**
 * Makes a client of the daemon at address: the path of a Unix socket, which has a "/" in it, or
 * "host:port"; NULL is the daemon's default socket. A host's name is looked up here, once. options
 * NULL uses the defaults. Connects to nobody yet, so it does not matter whether the daemon runs.
 */
int32_t dthrottle_client_open(const char *address,
                              size_t address_len,
                              const dthrottle_client_options_t *options,
                              dthrottle_client_t **out,
                              char *error,
                              size_t error_size);

/** Closes a client's connections and releases it; NULL is fine. */
void dthrottle_client_close(dthrottle_client_t *client);

/**
 * Asks for one unit in the daemon's default domain, and takes it if it passes: 1 allowed, or
 * nobody answered; 0 refused; negative a status. So "if (dthrottle_client_allow(...))" goes on
 * also after an error. A tag cannot have a newline in it.
 */
int32_t dthrottle_client_allow(const dthrottle_client_t *client, const void *tag, size_t tag_len);

/**
 * Asks for one unit for each of count tags in turn, in as few round trips as can be. allowed has
 * room for count answers. All tags are looked at before anything is asked; after an error, what is
 * not known is allowed.
 */
int32_t dthrottle_client_allow_many(const dthrottle_client_t *client,
                                    const void *const *tags,
                                    const size_t *tag_lens,
                                    size_t count,
                                    bool *allowed);

/**
 * Checks a tag with these options. domain NULL is the default domain, options NULL checks one unit.
 * Errors reported by the daemon, such as an unknown domain, are returned like local argument errors.
 */
int32_t dthrottle_client_check(const dthrottle_client_t *client,
                               const char *domain,
                               size_t domain_len,
                               const void *tag,
                               size_t tag_len,
                               const dthrottle_check_options_t *options,
                               dthrottle_client_decision_t *decision,
                               char *error,
                               size_t error_size);

/** The answer that dthrottle_client_check() would get. Takes nothing. */
int32_t dthrottle_client_peek(const dthrottle_client_t *client,
                              const char *domain,
                              size_t domain_len,
                              const void *tag,
                              size_t tag_len,
                              const dthrottle_check_options_t *options,
                              dthrottle_client_decision_t *decision,
                              char *error,
                              size_t error_size);

/**
 * Gives cost units back: 1 if the daemon heard of it, 0 if not. Needs the daemon's Unix socket, or
 * the token.
 */
int32_t dthrottle_client_refund(const dthrottle_client_t *client,
                                const char *domain,
                                size_t domain_len,
                                const void *tag,
                                size_t tag_len,
                                uint64_t cost,
                                char *error,
                                size_t error_size);

/**
 * Fills the tag's bucket of every rule: 1 if the daemon heard of it, 0 if not. Needs the daemon's
 * Unix socket, or the token.
 */
int32_t dthrottle_client_reset(const dthrottle_client_t *client,
                               const char *domain,
                               size_t domain_len,
                               const void *tag,
                               size_t tag_len,
                               char *error,
                               size_t error_size);

/** What the client counted so far. */
int32_t dthrottle_client_counts(const dthrottle_client_t *client,
                                dthrottle_client_counts_t *counts);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DTHROTTLE_H */
