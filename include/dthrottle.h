/*
 * dthrottle: a rate limiter.
 *
 *     dthrottle_t *throttle;
 *     dthrottle_domain_t *domain;
 *     const char *rate = "rate = \"100/s\"";
 *
 *     dthrottle_open(rate, strlen(rate), &throttle, NULL, 0);
 *     dthrottle_domain(throttle, NULL, 0, &domain);
 *     if (!dthrottle_allow(domain, client, strlen(client), 1))
 *         ... respond with status 429 ...
 *
 * These conventions apply to every call:
 *
 * Status. A call returns DTHROTTLE_OK or a negative DTHROTTLE_ERR_ number. dthrottle_status_text()
 * describes it. A refused check is a result, not an error. The meaning of a number never changes.
 *
 * Fail open. A check that fails writes an allowed decision. So a caller that ignores the status
 * lets its clients pass.
 *
 * Handles. A dthrottle_t, dthrottle_domain_t, dthrottle_config_t, dthrottle_clock_t,
 * dthrottle_busy_t, dthrottle_client_t or dthrottle_middleware_t is made by one call and released
 * by another. Release each handle once, in any order. A call that fails to make a handle sets it to
 * NULL. Releasing NULL is allowed. All other calls return DTHROTTLE_ERR_ARGUMENT for NULL.
 *
 * Strings. A string is a pointer and a length in bytes, without a NUL at the end. NULL with length
 * 0 is the empty string, or the default if the call says so. NULL with another length, and a length
 * above PTRDIFF_MAX, are DTHROTTLE_ERR_ARGUMENT. Tags may be any bytes; other strings are UTF-8.
 * The library does not keep a pointer after the call. Strings that a call returns end with NUL and
 * belong to the library.
 *
 * Error messages. A call with error and error_size writes a message to that buffer. It says what is
 * wrong and what would be right. It ends with NUL, is cut if the buffer is too small, and is empty
 * after a success. error may be NULL.
 *
 * Structs. A struct begins with its size, because later versions may add fields at its end. The
 * INIT macros set the size. The library reads and writes only the fields that both it and the
 * program know. A size below that of the first version is DTHROTTLE_ERR_ARGUMENT.
 *
 * Time. Times are nanoseconds. Their names end with _ns.
 *
 * Threads. Any number of threads may use a handle at once, without locks. While a handle is
 * released, no other thread may use it. Domain handles remain valid after their throttle is closed.
 *
 * fork(). Calls about a tag use no locks, so a process may fork at any time, even while other
 * threads are in such a call. Parent and child then share all buckets, unless the table is private.
 * Each of them releases its own handles. To share a table between unrelated processes, give it a
 * name: dthrottle_config_set_table(), or table = "name" in TOML.
 *
 * Clusters. Nodes with the same [cluster] in their TOML report to each other what they admitted.
 * For this only, the library starts a thread named dthrottle, which runs no signal handlers. It
 * starts with the first check of a process or dthrottle_start(), and again in a forked child. A
 * process that only opens a throttle and forks has no thread. Of the processes that share a table,
 * one runs the exchange; if it ends, another one continues.
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
 * Initial values of the structs. They set the size and the defaults.
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

/** The call succeeded. */
#define DTHROTTLE_OK 0

/** An invalid configuration: unknown key, invalid rate, value out of range, duplicate name. */
#define DTHROTTLE_ERR_CONFIG (-1)

/** An invalid cost: negative, not whole, too large, or above the burst of a rule. */
#define DTHROTTLE_ERR_COST (-2)

/** A domain that does not exist. */
#define DTHROTTLE_ERR_DOMAIN (-3)

/** A call after close. */
#define DTHROTTLE_ERR_CLOSED (-4)

/**
 * Another invalid argument. For example a wrong length, text that is not UTF-8, or a clock that is
 * set back.
 */
#define DTHROTTLE_ERR_ARGUMENT (-5)

/** A file that cannot be used: a configuration, a secret, or a table. */
#define DTHROTTLE_ERR_FILE (-6)

/** A bug in dthrottle, caught at the border between languages. Please report it. */
#define DTHROTTLE_ERR_INTERNAL (-7)

/** limit and remaining of a decision in a domain without rules. */
#define DTHROTTLE_UNLIMITED 18446744073709551615ull

/** Let the request pass. */
#define DTHROTTLE_PASS 0

/** Delay the request by delay_ns, call dthrottle_middleware_end_delay(), and let it pass. */
#define DTHROTTLE_DELAY 1

/**
 * Refuse the request. If delay_ns is not 0, first delay the refusal by that time and call
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

/** The maximum number of bytes of a client address as a tag. */
#define DTHROTTLE_ADDRESS_SIZE 16

/** The cost of a request is the option cost, or 1. */
#define DTHROTTLE_COST_OF_OPTIONS 18446744073709551615ull

/**
 * A busy throttle: limits the requests to services that answer busy (429 or 503), and raises the
 * limit gradually when they recover. Made by dthrottle_busy_open(), released by
 * dthrottle_busy_close().
 *
 * The name of a service may be any bytes. Calls whose names end with _at take the time of the
 * throttle's clock, which dthrottle_busy_now() returns. The other calls read that clock.
 */
typedef struct dthrottle_busy_t dthrottle_busy_t;

/**
 * A client of dthrottled. If the daemon does not answer in time, checks are allowed, and the
 * client sends no request for a while. Made by dthrottle_client_open(), released by
 * dthrottle_client_close().
 */
typedef struct dthrottle_client_t dthrottle_client_t;

/**
 * A manual clock, for tests. Its time changes only by dthrottle_clock_advance() and
 * dthrottle_clock_set(). Made by dthrottle_clock_new(), released by dthrottle_clock_free().
 */
typedef struct dthrottle_clock_t dthrottle_clock_t;

/**
 * A configuration: domains and their rules, a table, and a clock. Made by dthrottle_config_new(),
 * released by dthrottle_config_free().
 */
typedef struct dthrottle_config_t dthrottle_config_t;

/**
 * A domain of a throttle. Look it up once by its name, and use the handle for every check. Made by
 * dthrottle_domain(), released by dthrottle_domain_free().
 */
typedef struct dthrottle_domain_t dthrottle_domain_t;

/** The memory of a response, released by dthrottle_response_free(). */
typedef struct dthrottle_memory_t dthrottle_memory_t;

/**
 * HTTP middleware: checks requests in a domain, as its options say. Made by
 * dthrottle_middleware_new(), released by dthrottle_middleware_free().
 */
typedef struct dthrottle_middleware_t dthrottle_middleware_t;

/**
 * A throttle: limits every tag by the rules of its domains. Made by dthrottle_open(),
 * dthrottle_open_file(), dthrottle_open_config() or dthrottle_reload(), released by
 * dthrottle_close().
 */
typedef struct dthrottle_t dthrottle_t;

/** Counters of a throttle since it was created. Begin with DTHROTTLE_STATS_INIT. */
typedef struct {
    /** sizeof(dthrottle_stats_t). */
    size_t size;
    /** Checks allowed, including those that only dry run allowed. */
    uint64_t allowed;
    /** Checks refused. */
    uint64_t refused;
    /** Checks that only dry run allowed, or whose delay it skipped. */
    uint64_t dry_run;
    /**
     * Charges that were not counted, because the table had no room or the bucket had reached its
     * greatest time. Such checks are allowed.
     */
    uint64_t failed_open;
    /** How often a debt was clamped to the most that a bucket can hold. */
    uint64_t clamped;
    /** Buckets that were evicted before they were full, to make room for others. */
    uint64_t evicted;
    /** Buckets that are not full now. */
    uint64_t buckets;
    /**
     * Units admitted that are never reported to other nodes, because their bucket was evicted or
     * had too many unreported units.
     */
    uint64_t unreported;
} dthrottle_stats_t;

/** A bucket in use. Begin with DTHROTTLE_BUCKET_INIT. */
typedef struct {
    /** sizeof(dthrottle_bucket_t). */
    size_t size;
    /** A hash of domain, rule and tag. The table does not contain the tag. */
    uint64_t fingerprint;
    /** The name of the domain. */
    char domain[256];
    /** The name of the rule. */
    char rule[256];
    /** The burst of the rule. */
    uint64_t limit;
    /** Whole units in the bucket. Negative in debt. */
    int64_t balance;
    /** The time until the bucket is full. */
    uint64_t reset_after_ns;
} dthrottle_bucket_t;

/**
 * The decision about a check. docs/semantics.md defines every field. Begin with
 * DTHROTTLE_DECISION_INIT. After an error it is allowed.
 */
typedef struct {
    /** sizeof(dthrottle_decision_t). */
    size_t size;
    /** Whether the request may proceed, if necessary after a delay. */
    bool allowed;
    /**
     * Whether only dry run allowed the check, or skipped its delay. rule is set if the check would
     * have been refused.
     */
    bool dry_run;
    /**
     * The rule that refused, if one did. Its index, for dthrottle_rule_name(). -1 if there is
     * none.
     */
    int32_t rule;
    /**
     * The burst of the deciding rule, in units. DTHROTTLE_UNLIMITED in a domain without rules.
     */
    uint64_t limit;
    /**
     * Whole units left in the bucket of the deciding rule, 0 if it is in debt. DTHROTTLE_UNLIMITED
     * in a domain without rules.
     */
    uint64_t remaining;
    /** Like remaining, but negative if the bucket is in debt. */
    int64_t balance;
    /** Units that the check took, or that it would take in the case of a peek. */
    uint64_t granted;
    /** How long to wait before proceeding. 0 in dry run, or if the check allowed no delay. */
    uint64_t delay_ns;
    /**
     * Time until the check would pass without a delay. 0 if it was allowed. In dry run, the time
     * that the check would have had to wait.
     */
    uint64_t retry_after_ns;
    /** Time until every bucket of the tag is full. */
    uint64_t reset_after_ns;
    /**
     * The deciding rule, which limit, remaining and balance describe, whether or not it refused.
     * Its index, for dthrottle_rule_name(). -1 if there is none.
     */
    int64_t deciding;
} dthrottle_decision_t;

/** Options of a check. Begin with DTHROTTLE_CHECK_OPTIONS_INIT: one unit, without a delay. */
typedef struct {
    /** sizeof(dthrottle_check_options_t). */
    size_t size;
    /**
     * If the bucket has fewer units than cost, take those that it has. granted of the decision is
     * their number.
     */
    bool partial;
    /** Units that the check takes. */
    uint64_t cost;
    /**
     * Also allow the check if the units become available within this time. They are taken at once.
     * delay_ns of the decision is the time to wait before proceeding. A caller that does not wait
     * calls dthrottle_refund().
     */
    uint64_t max_delay_ns;
    /**
     * If 1, allow a cost above the burst. The check then needs a full bucket and leaves it in
     * debt, in one atomic step. Has no effect together with partial.
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
 * The action for a request, and the header fields and body of the response. Begin with
 * DTHROTTLE_RESPONSE_INIT. The calls that fill it in allocate its memory. All pointers are valid
 * until dthrottle_response_free(). After an error the action is DTHROTTLE_PASS, and there is no
 * memory.
 */
typedef struct {
    /** sizeof(dthrottle_response_t). */
    size_t size;
    /** DTHROTTLE_PASS, DTHROTTLE_DELAY or DTHROTTLE_REFUSE. */
    int32_t action;
    /** The status of a refusal, such as 429. Otherwise 0. */
    int32_t status;
    /** The header fields. Add them to the response for every action. */
    const dthrottle_field_t *fields;
    /** The number of header fields. */
    size_t field_count;
    /** The body of a refusal. Otherwise NULL. */
    const void *body;
    /** Its length in bytes. */
    size_t body_len;
    /** The tag that was checked. NULL if the request passed without a check. */
    const void *tag;
    /** Its length in bytes. */
    size_t tag_len;
    /** The memory that dthrottle_response_free() releases. */
    dthrottle_memory_t *memory;
    /** How long to delay the request or its refusal. 0: no delay. */
    uint64_t delay_ns;
} dthrottle_response_t;

/** A request to the server. Begin with DTHROTTLE_REQUEST_INIT. */
typedef struct {
    /** sizeof(dthrottle_request_t). */
    size_t size;
    /** Whether the server can serve other requests while it delays this one. */
    bool can_delay;
    /** The address of the other end of the connection, as text. NULL: unknown. */
    const char *peer;
    /** Its length in bytes. */
    size_t peer_len;
    /** The X-Forwarded-For field. Join several lines with commas. NULL: the request has none. */
    const char *forwarded;
    /** Its length in bytes. */
    size_t forwarded_len;
    /**
     * The tag, if the option tag names a header or is "request". For a header, its value. NULL:
     * the tag is missing, and the address of the client is used instead.
     */
    const void *tag;
    /** Its length in bytes. */
    size_t tag_len;
    /**
     * A scope, such as the name of a route. Equal tags in different scopes have separate buckets.
     * NULL: no scope.
     */
    const char *scope;
    /** Its length in bytes. */
    size_t scope_len;
    /**
     * The cost in units, or DTHROTTLE_COST_OF_OPTIONS. A cost above the burst needs a full bucket
     * and leaves it in debt.
     */
    uint64_t cost;
} dthrottle_request_t;

/**
 * The state of a cluster, as seen from one node. All processes of a table see the same state.
 * Begin with DTHROTTLE_CLUSTER_STATS_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_cluster_stats_t). */
    size_t size;
    /** Whether the throttle belongs to a cluster. */
    bool in_cluster;
    /** The ID of this node, 0 before the first start of the exchange. */
    uint64_t node;
    /**
     * The incarnation of this node's exchange, 0 if it was never started. Later incarnations are
     * greater.
     */
    uint64_t incarnation;
    /** The ID of the process that runs the exchange, or ran it last. 0 in WebAssembly. */
    uint64_t pid;
    /** The number of current and recent peers, for dthrottle_cluster_peer(). */
    uint64_t peer_count;
} dthrottle_cluster_stats_t;

/**
 * A peer: another node of the cluster, as seen from this node. Begin with DTHROTTLE_PEER_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_peer_t). */
    size_t size;
    /** The ID of the peer. */
    uint64_t node;
    /** The incarnation of the peer's exchange. */
    uint64_t incarnation;
    /** The peer's address and port, if known. */
    char address[64];
    /** up, down, left, or known if it is not a member yet. */
    char state[16];
    /** Time since a datagram of the peer last arrived. */
    uint64_t age_ns;
    /** How long a datagram takes from the peer to this node. */
    uint64_t delay_ns;
    /** Reports of the peer that were applied. */
    uint64_t received;
    /** Applied reports that were missing at first. */
    uint64_t repaired;
    /** Reports that were lost. */
    uint64_t lost;
} dthrottle_peer_t;

/** An event in the cluster. Begin with DTHROTTLE_EVENT_INIT. */
typedef struct {
    /** sizeof(dthrottle_event_t). */
    size_t size;
    /** Number of the event, counted from 1. */
    uint64_t number;
    /** Time since the event. */
    uint64_t age_ns;
    /** peer_up, peer_down, peer_left, rules_differ, reports_lost or warm_start. */
    char kind[32];
    /** The peer that the event is about. */
    uint64_t node;
    /**
     * Number of reports lost, or of buckets that were copied at a warm start. 0 for other kinds.
     */
    uint64_t value;
} dthrottle_event_t;

/** A rule: rate and burst. Begin with DTHROTTLE_RULE_INIT and set at least the rate. */
typedef struct {
    /** sizeof(dthrottle_rule_t). */
    size_t size;
    /** Whether refused checks are charged, too. */
    bool charge_refused;
    /** The name, unique in its domain. NULL: "rule1", "rule2", ... by position. */
    const char *name;
    /** Its length in bytes. */
    size_t name_len;
    /**
     * The rate, such as "100/s" or "5 per 2 minutes". "unlimited" adds no rule. It states that a
     * domain without rules is intended, which allows every check.
     */
    const char *rate;
    /** Its length in bytes. */
    size_t rate_len;
    /** The burst in units. 0: the count of the rate. */
    uint64_t burst;
    /**
     * Alternative to burst: the burst is the units that the rate yields in this time. 0: unused.
     */
    uint64_t burst_time_ns;
} dthrottle_rule_t;

/**
 * The table of the buckets. Begin with DTHROTTLE_TABLE_INIT: a table for a million tags that is
 * shared with all children forked later.
 */
typedef struct {
    /** sizeof(dthrottle_table_t). */
    size_t size;
    /** Whether only this process uses it. A forked child gets a copy. */
    bool is_private;
    /** The name under which all processes of this user share it. NULL: no name. */
    const char *name;
    /** Its length in bytes. */
    size_t name_len;
    /**
     * The group, by name or number, whose members may use the named table. NULL: only this user.
     */
    const char *group;
    /** Its length in bytes. */
    size_t group_len;
    /** The directory of the file of the named table. NULL: the default in docs/table.md. */
    const char *dir;
    /** Its length in bytes. */
    size_t dir_len;
    /** The number of tags for which it has memory. 0: a million. */
    uint64_t tags;
    /** Alternative to tags: its size in bytes. 0: unused. */
    uint64_t bytes;
} dthrottle_table_t;

/** A named table on this machine. Begin with DTHROTTLE_TABLE_INFO_INIT. */
typedef struct {
    /** sizeof(dthrottle_table_info_t). */
    size_t size;
    /** The name of the table. */
    char name[256];
    /** The path of its file. */
    char path[1024];
    /** Why the table cannot be used. Empty if it can. */
    char fault[256];
    /** Its size in bytes. */
    uint64_t bytes;
    /** The number of tags for which it has memory. */
    uint64_t tags;
    /** The number of buckets that are not full. */
    uint64_t buckets;
} dthrottle_table_info_t;

/**
 * Counters of a busy throttle in this process since it was created. Begin with
 * DTHROTTLE_BUSY_STATS_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_busy_stats_t). */
    size_t size;
    /** Requests that were allowed to be sent. */
    uint64_t sent;
    /** Requests that were not allowed to be sent yet. */
    uint64_t refused;
    /** Good responses. */
    uint64_t good;
    /** Busy responses. */
    uint64_t busy;
    /** How often a busy response to this process cut a limit. */
    uint64_t cuts;
    /** Busy responses that other nodes of the cluster reported. */
    uint64_t remote_busy;
    /** Services with a limit that were removed, because there were too many services. */
    uint64_t forgotten;
    /** Services known now, in all processes that share them. */
    uint64_t services;
    /** Other nodes of the cluster that are up now. */
    uint64_t peers;
} dthrottle_busy_stats_t;

/** Options of a client. Begin with DTHROTTLE_CLIENT_OPTIONS_INIT, which sets the defaults. */
typedef struct {
    /** sizeof(dthrottle_client_options_t). */
    size_t size;
    /** The longest time of a call. Default: 50 ms. */
    uint64_t timeout_ns;
    /**
     * How long the client sends no request after a failure. Doubles with each further failure.
     * Default: 100 ms.
     */
    uint64_t backoff_ns;
    /** The longest time without requests. Default: 5 s. */
    uint64_t max_backoff_ns;
    /**
     * The token of the daemon, or NULL. dthrottle_client_refund() and dthrottle_client_reset()
     * need it over TCP. dthrottle_client_open() copies it.
     */
    const char *token;
    /** Its length. */
    size_t token_len;
} dthrottle_client_options_t;

/**
 * The decision about a check by a daemon. docs/semantics.md defines every field. Begin with
 * DTHROTTLE_CLIENT_DECISION_INIT.
 */
typedef struct {
    /** sizeof(dthrottle_client_decision_t). */
    size_t size;
    /** Whether the request may proceed, if necessary after a delay. */
    bool allowed;
    /**
     * Whether only dry run allowed the check, or skipped its delay. rule is set if the check would
     * have been refused.
     */
    bool dry_run;
    /** The daemon did not answer in time, so the check is allowed. */
    bool failed_open;
    /**
     * The burst of the deciding rule, in units. DTHROTTLE_UNLIMITED in a domain without rules.
     */
    uint64_t limit;
    /**
     * Whole units left in the bucket of the deciding rule, 0 if it is in debt. DTHROTTLE_UNLIMITED
     * in a domain without rules.
     */
    uint64_t remaining;
    /** Like remaining, but negative if the bucket is in debt. */
    int64_t balance;
    /** Units that the check took, or that it would take in the case of a peek. */
    uint64_t granted;
    /** How long to wait before proceeding. 0 in dry run, or if the check allowed no delay. */
    uint64_t delay_ns;
    /**
     * Time until the check would pass without a delay. 0 if it was allowed. In dry run, the time
     * that the check would have had to wait.
     */
    uint64_t retry_after_ns;
    /** Time until every bucket of the tag is full. */
    uint64_t reset_after_ns;
    /** The rule that refused, if one did. Its name, ended by NUL. Empty if there is none. */
    char rule[256];
    /**
     * The deciding rule, which limit, remaining and balance describe, whether or not it refused.
     * Its name, ended by NUL. Empty if there is none.
     */
    char deciding[256];
} dthrottle_client_decision_t;

/** Counts of a client. Begin with DTHROTTLE_CLIENT_COUNTS_INIT. */
typedef struct {
    /** sizeof(dthrottle_client_counts_t). */
    size_t size;
    /** Requests that the daemon answered. */
    uint64_t answered;
    /**
     * Requests that the daemon did not answer in time, or that were not sent during a pause after a
     * failure. Checks among them are allowed.
     */
    uint64_t failed_open;
    /** Connections that could not be opened, or failed. */
    uint64_t failures;
} dthrottle_client_counts_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the loaded library, such as "0.1.0". DTHROTTLE_VERSION is the version of
 * the header with which the program was compiled.
 */
const char *dthrottle_version(void);

/** Describes a status in a few words. Never returns NULL. Do not free the string. */
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
 * Opens a throttle from a configuration made with dthrottle_config_new(). The caller keeps the
 * configuration, and may use it again.
 */
int32_t dthrottle_open_config(const dthrottle_config_t *config,
                              dthrottle_t **out,
                              char *error,
                              size_t error_size);

/**
 * Opens a throttle on the table of another throttle, with the rules of a configuration. No bucket
 * is lost. The table and the clock of the configuration are ignored. In a cluster the exchange
 * starts again. The old throttle and its domains keep the old rules, and should be released;
 * dthrottle_close() on the old handle now only frees it.
 */
int32_t dthrottle_reload(const dthrottle_t *throttle,
                         const dthrottle_config_t *config,
                         dthrottle_t **out,
                         char *error,
                         size_t error_size);

/**
 * Closes a throttle and releases it. NULL is allowed. Its domain handles remain valid until
 * dthrottle_domain_free(); calls with them return DTHROTTLE_ERR_CLOSED. In a cluster, this process
 * leaves it, which may take 300 ms.
 */
void dthrottle_close(dthrottle_t *throttle);

/** Returns the statistics of a throttle. */
int32_t dthrottle_stats(const dthrottle_t *throttle, dthrottle_stats_t *stats);

/**
 * Returns a warning of the throttle by its index from 0, or NULL after the last one. A warning
 * says that something differs from the configuration, for example that a named table is not
 * shared. The throttle works anyway. The string is valid until the handle is released. Nothing is
 * printed.
 */
const char *dthrottle_warning(const dthrottle_t *throttle, int32_t index);

/**
 * Returns the name of a domain of the throttle by its index from 0, or NULL after the last one.
 * The default domain is the first. The string is valid until the handle is released.
 */
const char *dthrottle_domain_list(const dthrottle_t *throttle, int32_t index);

/**
 * Returns the numbers of checks allowed and refused, as dthrottle_stats() does. Faster, because it
 * does not read the table.
 */
int32_t dthrottle_decisions(const dthrottle_t *throttle, uint64_t *allowed, uint64_t *refused);

/**
 * Writes the buckets with the largest used share of their burst, the most used first. buckets is
 * an array of capacity structs, all of the size that the first one states. count receives the
 * number of structs written. Reads the whole table.
 */
int32_t dthrottle_top(const dthrottle_t *throttle,
                      dthrottle_bucket_t *buckets,
                      size_t capacity,
                      size_t *count);

/**
 * Looks up a domain by its name. NULL with a name_len of 0 stands for the default domain. Returns
 * DTHROTTLE_ERR_DOMAIN if the throttle has no such domain.
 */
int32_t dthrottle_domain(const dthrottle_t *throttle,
                         const char *name,
                         size_t name_len,
                         dthrottle_domain_t **out);

/** Releases a domain handle. NULL is allowed. The domain itself is not affected. */
void dthrottle_domain_free(dthrottle_domain_t *domain);

/**
 * Returns the name of a domain, or NULL if the handle is NULL. The string is valid until the
 * handle is released.
 */
const char *dthrottle_domain_name(const dthrottle_domain_t *domain);

/**
 * Returns 1 if the domain is in dry run, else 0, or a negative status. In dry run, refusals and
 * delays are counted, but every check is allowed at once.
 */
int32_t dthrottle_domain_is_dry_run(const dthrottle_domain_t *domain);

/** Returns the number of rules of the domain, or a negative status. */
int32_t dthrottle_rule_count(const dthrottle_domain_t *domain);

/**
 * Returns the name of a rule by its index from 0, as in a decision, or NULL if there is no such
 * rule, for example for -1. The string is valid until the handle is released.
 */
const char *dthrottle_rule_name(const dthrottle_domain_t *domain, int32_t index);

/**
 * Returns the burst of a rule by its index from 0, as in a decision, or 0 if there is no such
 * rule.
 */
uint64_t dthrottle_rule_limit(const dthrottle_domain_t *domain, int32_t index);

/**
 * Returns the time in which an empty bucket of a rule fills, in nanoseconds, by the index of the
 * rule from 0. Returns 0 if there is no such rule.
 */
uint64_t dthrottle_rule_window(const dthrottle_domain_t *domain, int32_t index);

/**
 * Returns 1 if a bucket of this tag is still charged with units that an earlier process took from a
 * named table, and writes a warning for the log to text. Returns 0 if not, or a negative status.
 * Call this after a refused check. A throttle returns this warning once; it names the table and the
 * command that removes it. text, unless it is NULL, is cut to text_size bytes and ends with NUL.
 */
int32_t dthrottle_earlier_process_warning(const dthrottle_domain_t *domain,
                                          const void *tag,
                                          size_t tag_len,
                                          char *text,
                                          size_t text_size);

/** Checks a tag, and takes cost units if the check is allowed. */
int32_t dthrottle_check(const dthrottle_domain_t *domain,
                        const void *tag,
                        size_t tag_len,
                        uint64_t cost,
                        dthrottle_decision_t *decision);

/** Checks a tag with options, and takes the units if the check is allowed. */
int32_t dthrottle_check_with(const dthrottle_domain_t *domain,
                             const void *tag,
                             size_t tag_len,
                             const dthrottle_check_options_t *options,
                             dthrottle_decision_t *decision);

/** Like dthrottle_check(), but takes no units. */
int32_t dthrottle_peek(const dthrottle_domain_t *domain,
                       const void *tag,
                       size_t tag_len,
                       uint64_t cost,
                       dthrottle_decision_t *decision);

/** Like dthrottle_check_with(), but takes no units. */
int32_t dthrottle_peek_with(const dthrottle_domain_t *domain,
                            const void *tag,
                            size_t tag_len,
                            const dthrottle_check_options_t *options,
                            dthrottle_decision_t *decision);

/**
 * Checks a tag, and takes cost units if the check is allowed. Returns 1 if it is allowed, 0 if it
 * is refused, and a negative status after an error. So "if (dthrottle_allow(...))" is also true
 * after an error.
 */
int32_t dthrottle_allow(const dthrottle_domain_t *domain,
                        const void *tag,
                        size_t tag_len,
                        uint64_t cost);

/**
 * Checks one unit for each of count tags, like count calls of dthrottle_allow(), but faster if
 * there are many buckets. Writes count results to allowed. If a pointer is invalid, no units are
 * taken. After an error, tags without a result are allowed.
 */
int32_t dthrottle_allow_many(const dthrottle_domain_t *domain,
                             const void *const *tags,
                             const size_t *tag_lens,
                             size_t count,
                             bool *allowed);

/**
 * Gives cost units back to every rule, for example if the work was not done or the caller did not
 * wait. A bucket never rises above its burst.
 */
int32_t dthrottle_refund(const dthrottle_domain_t *domain,
                         const void *tag,
                         size_t tag_len,
                         uint64_t cost);

/** Fills the bucket of the tag in every rule. */
int32_t dthrottle_reset(const dthrottle_domain_t *domain, const void *tag, size_t tag_len);

/**
 * Charges cost units that were used elsewhere age_ns ago, without a check. Peers get no report. The
 * balance of a bucket may become negative.
 */
int32_t dthrottle_charge_local(const dthrottle_domain_t *domain,
                               const void *tag,
                               size_t tag_len,
                               uint64_t cost,
                               uint64_t age_ns);

/**
 * Charges cost units that were used on this node, without a check, and reports them to peers. The
 * balance of a bucket may become negative. debt_ns, unless it is NULL, receives the time until no
 * bucket of the tag is negative.
 */
int32_t dthrottle_charge(const dthrottle_domain_t *domain,
                         const void *tag,
                         size_t tag_len,
                         uint64_t cost,
                         uint64_t *debt_ns);

/**
 * Converts the address of a client to a tag: the 4 bytes of an IPv4 address, or 16 bytes with the
 * first ipv6_prefix bits of an IPv6 address and zeros. address is the 4 or 16 bytes of a socket
 * address. An IPv4-mapped IPv6 address is converted like its IPv4 address. tag is a buffer of
 * DTHROTTLE_ADDRESS_SIZE bytes, and tag_len receives the number of bytes written. Most networks
 * assign a prefix of 64 bits to one client; ipv6_prefix may be from 1 to 128.
 */
int32_t dthrottle_address_tag(const void *address,
                              size_t address_len,
                              uint32_t ipv6_prefix,
                              uint8_t *tag,
                              size_t *tag_len);

/**
 * Returns the DTHROTTLE_HEADERS_ number of a kind of header fields: "standard" (or "draft-8",
 * "on"), "draft-7", "draft-6", "x-ratelimit" or "none" (or "off"). For configuration files of
 * servers. Returns DTHROTTLE_ERR_CONFIG if there is no such kind.
 */
int32_t dthrottle_header_kind(const char *name, size_t name_len);

/**
 * Writes the header fields for a decision of a domain to fields of the response, with Retry-After
 * if the decision is not allowed. kind is a DTHROTTLE_HEADERS_ number. The response has nothing
 * else.
 */
int32_t dthrottle_header_fields(const dthrottle_domain_t *domain,
                                int32_t kind,
                                const dthrottle_decision_t *decision,
                                dthrottle_response_t *response);

/**
 * Releases the memory of a response, which may then be used again. NULL and a response without
 * memory are allowed.
 */
void dthrottle_response_free(dthrottle_response_t *response);

/**
 * Makes middleware that checks requests in this domain. options is TOML with the options of
 * docs/http.md, except rates and rules, which the domain has. The caller compares methods and
 * routes, and reads the tag from the request; with the option tag = "request", it sets the tag of
 * every request. The domain handle may be released before the middleware.
 */
int32_t dthrottle_middleware_new(const dthrottle_domain_t *domain,
                                 const char *options,
                                 size_t options_len,
                                 dthrottle_middleware_t **out,
                                 char *error,
                                 size_t error_size);

/**
 * Releases middleware. NULL is allowed. Its responses must be released as well, before or after
 * it.
 */
void dthrottle_middleware_free(dthrottle_middleware_t *middleware);

/**
 * Decides whether to allow a request. The action of the response says what to do. Its header
 * fields are for the response of the server. decision, unless it is NULL, receives the decision of
 * the throttle. Invalid UTF-8 in the request is not an error, because clients can send it.
 */
int32_t dthrottle_middleware_decide(const dthrottle_middleware_t *middleware,
                                    const dthrottle_request_t *request,
                                    dthrottle_response_t *response,
                                    dthrottle_decision_t *decision);

/**
 * Ends the delay of a request, after delay_ns or when its client leaves, so that another request
 * may be delayed. If is_gone is true, the client left, and its units are refunded. Later calls for
 * the same response do nothing.
 */
int32_t dthrottle_middleware_end_delay(const dthrottle_middleware_t *middleware,
                                       const dthrottle_response_t *response,
                                       bool is_gone);

/**
 * Call this when the response to a request has been sent. Refunds the request if the option
 * skip_failed_requests or skip_successful_requests says so and dthrottle_middleware_end_delay()
 * did not. Later calls for the same response do nothing.
 */
int32_t dthrottle_middleware_finish(const dthrottle_middleware_t *middleware,
                                    const dthrottle_response_t *response,
                                    bool is_success);

/**
 * Returns 1 and writes the next warning to text, or returns 0 if there is none. A warning is one
 * line for a log, for example about X-Forwarded-For without trusted proxies. Each cause gives one
 * warning. Call this after dthrottle_middleware_new() and after each decision; it is fast without
 * a warning.
 */
int32_t dthrottle_middleware_warning(const dthrottle_middleware_t *middleware,
                                     char *text,
                                     size_t text_size);

/**
 * Starts the exchange with the cluster in this process. Without this call the first check starts
 * it. Does nothing without a cluster, or if the exchange runs already.
 */
int32_t dthrottle_start(const dthrottle_t *throttle);

/**
 * Ends the exchange in this process permanently, without waiting. Another process of the table
 * continues it. Checks work as before. For processes that only finish their current requests, such
 * as the old workers of a server after a reload.
 */
int32_t dthrottle_stop(const dthrottle_t *throttle);

/** Returns the state of the cluster, as seen from this node. */
int32_t dthrottle_cluster_stats(const dthrottle_t *throttle, dthrottle_cluster_stats_t *stats);

/**
 * Returns a counter of the node by its name, such as "reports_sent", "reports_received",
 * "reports_lost", "bytes_sent", or "dropped_auth" for datagrams with another key. Returns
 * DTHROTTLE_ERR_ARGUMENT if there is no such counter, and without a cluster.
 */
int32_t dthrottle_cluster_count(const dthrottle_t *throttle,
                                const char *name,
                                size_t name_len,
                                uint64_t *value);

/**
 * Returns a peer by its index from 0. Returns DTHROTTLE_ERR_ARGUMENT after the last one, which
 * ends a loop. The number of peers may change between two calls.
 */
int32_t dthrottle_cluster_peer(const dthrottle_t *throttle, size_t index, dthrottle_peer_t *peer);

/**
 * Writes the events of the cluster after the event with the number after, the oldest first. Begin
 * with 0, and continue with the number of the last event. The library keeps only the latest
 * events. events is an array of capacity structs, all of the size that the first one states. count
 * receives the number of structs written; if it is below capacity, there are no more events.
 */
int32_t dthrottle_events(const dthrottle_t *throttle,
                         uint64_t after,
                         dthrottle_event_t *events,
                         size_t capacity,
                         size_t *count);

/**
 * Makes a configuration with only the default domain, without rules. Add at least one rule before
 * dthrottle_open_config().
 */
int32_t dthrottle_config_new(dthrottle_config_t **out);

/**
 * Releases a configuration. NULL is allowed. Throttles that were opened from it are not affected.
 */
void dthrottle_config_free(dthrottle_config_t *config);

/**
 * Replaces everything except the clock with a configuration in TOML. After an error the
 * configuration is unchanged.
 */
int32_t dthrottle_config_toml(dthrottle_config_t *config,
                              const char *toml,
                              size_t toml_len,
                              char *error,
                              size_t error_size);

/** Like dthrottle_config_toml(), with a file in TOML. */
int32_t dthrottle_config_file(dthrottle_config_t *config,
                              const char *path,
                              size_t path_len,
                              char *error,
                              size_t error_size);

/**
 * Adds a rule to a domain, and adds the domain if it is new. If domain is NULL, to the default
 * domain. dthrottle_open_config() reports an invalid rate or burst.
 */
int32_t dthrottle_config_add_rule(dthrottle_config_t *config,
                                  const char *domain,
                                  size_t domain_len,
                                  const dthrottle_rule_t *rule);

/**
 * Sets the dry run of a domain, and adds the domain if it is new. In dry run, refusals are
 * counted, but every check is allowed. If domain is NULL, sets the default of all domains.
 */
int32_t dthrottle_config_set_dry_run(dthrottle_config_t *config,
                                     const char *domain,
                                     size_t domain_len,
                                     bool dry_run);

/** Sets the table. dthrottle_open_config() reports an invalid name or size. */
int32_t dthrottle_config_set_table(dthrottle_config_t *config, const dthrottle_table_t *table);

/**
 * Sets a default name of the table, used if the configuration sets neither a name nor private. For
 * programs whose processes open the throttle separately, such as the workers of a server.
 * dthrottle_open_config() reports an invalid name. If the table of that name belongs to another
 * cluster or to none, a name such as "name-2" is used instead.
 */
int32_t dthrottle_config_name_table(dthrottle_config_t *config, const char *name, size_t name_len);

/**
 * Sets the cluster from settings such as "name=web" or "peer=10.0.0.1": the keys of [cluster] in
 * docs/configuration.md. `peer` and `packet_key` may be repeated, `secret_file` is a path, and a
 * flag is on or off. A configuration that has a cluster already is an error. After an error
 * nothing has changed.
 */
int32_t dthrottle_config_set_cluster(dthrottle_config_t *config,
                                     const char *const *settings,
                                     const size_t *setting_lens,
                                     size_t count,
                                     char *error,
                                     size_t error_size);

/**
 * Returns the number of rules of a domain, or DTHROTTLE_ERR_DOMAIN if the configuration has no
 * such domain. If domain is NULL, of the default domain.
 */
int32_t dthrottle_config_rule_count(const dthrottle_config_t *config,
                                    const char *domain,
                                    size_t domain_len);

/**
 * Checks everything that dthrottle_open_config() checks, but opens no throttle and starts no
 * thread. If the secret of the cluster is in a file, reads the file and keeps the secret, so that
 * the throttle can be opened after the process has dropped its privileges.
 */
int32_t dthrottle_config_check(dthrottle_config_t *config, char *error, size_t error_size);

/**
 * Sets a manual clock for the throttles of this configuration. The caller keeps the clock handle,
 * and may release it at any time.
 */
int32_t dthrottle_config_set_clock(dthrottle_config_t *config, const dthrottle_clock_t *clock);

/**
 * Lists the tables of this user in the default directories. If filter is not NULL, lists the
 * tables of its group and in its dir. tables is an array of capacity structs, all of the size that
 * the first one states. count receives the number of tables, which may be above capacity.
 */
int32_t dthrottle_table_list(const dthrottle_table_t *filter,
                             dthrottle_table_info_t *tables,
                             size_t capacity,
                             size_t *count,
                             char *error,
                             size_t error_size);

/**
 * Removes the table with the name, group and dir of table. Processes that use the table share it
 * until they end.
 */
int32_t dthrottle_table_remove(const dthrottle_table_t *table, char *error, size_t error_size);

/**
 * Changes the size of the table with the name, group and dir of table to its tags or bytes. Keeps
 * all buckets that fit. forgotten, unless it is NULL, receives the number of those that did not.
 * Processes that use the old table share it until they are restarted.
 */
int32_t dthrottle_table_resize(const dthrottle_table_t *table,
                               uint64_t *forgotten,
                               char *error,
                               size_t error_size);

/** Makes a manual clock at time zero. */
int32_t dthrottle_clock_new(dthrottle_clock_t **out);

/**
 * Releases a clock handle. NULL is allowed. For throttles that use the clock, time then stands
 * still.
 */
void dthrottle_clock_free(dthrottle_clock_t *clock);

/** Advances the clock. It stops at 2^64 - 1 ns, after 584 years. */
int32_t dthrottle_clock_advance(dthrottle_clock_t *clock, uint64_t by_ns);

/**
 * Sets the clock to a time since its zero. Returns DTHROTTLE_ERR_ARGUMENT if this is earlier than
 * the current time.
 */
int32_t dthrottle_clock_set(dthrottle_clock_t *clock, uint64_t to_ns);

/** Returns the time since the zero of the clock. */
int32_t dthrottle_clock_now(const dthrottle_clock_t *clock, uint64_t *now_ns);

/**
 * Opens a busy throttle from settings in TOML, such as "floor = 2" or "mode = 'document'". An
 * empty string uses the defaults. With "table = 'name'", all processes of this user that use the
 * same name share their limits. With a table [cluster], the nodes of that cluster do. If clock is
 * not NULL, it is used instead of the clock of the system.
 */
int32_t dthrottle_busy_open(const char *toml,
                            size_t toml_len,
                            const dthrottle_clock_t *clock,
                            dthrottle_busy_t **out,
                            char *error,
                            size_t error_size);

/** Closes a busy throttle and releases it. NULL is allowed. */
void dthrottle_busy_close(dthrottle_busy_t *busy);

/**
 * Starts the exchange with the cluster in this process. Without this call the first request starts
 * it. Does nothing without a cluster, or if the exchange runs already.
 */
int32_t dthrottle_busy_start(const dthrottle_busy_t *busy);

/** Returns the time of the throttle's clock. */
int32_t dthrottle_busy_now(const dthrottle_busy_t *busy, uint64_t *now_ns);

/**
 * Returns 1 if a request to a service may be sent now; it then counts as sent. Otherwise returns
 * 0, and wait_ns, unless it is NULL, receives the time after which to call again.
 */
int32_t dthrottle_busy_should_send(const dthrottle_busy_t *busy,
                                   const char *service,
                                   size_t service_len,
                                   uint64_t *wait_ns);

/** Like dthrottle_busy_should_send(), at the time now_ns. */
int32_t dthrottle_busy_should_send_at(const dthrottle_busy_t *busy,
                                      const char *service,
                                      size_t service_len,
                                      uint64_t now_ns,
                                      uint64_t *wait_ns);

/**
 * Reports a busy response of a service. retry_after_ns is the time of its Retry-After field, or 0.
 */
int32_t dthrottle_busy_on_busy(const dthrottle_busy_t *busy,
                               const char *service,
                               size_t service_len,
                               uint64_t retry_after_ns);

/** Like dthrottle_busy_on_busy(), at the time now_ns. */
int32_t dthrottle_busy_on_busy_at(const dthrottle_busy_t *busy,
                                  const char *service,
                                  size_t service_len,
                                  uint64_t now_ns,
                                  uint64_t retry_after_ns);

/** Reports any other response of a service. */
int32_t dthrottle_busy_on_ok(const dthrottle_busy_t *busy, const char *service, size_t service_len);

/** Like dthrottle_busy_on_ok(), at the time now_ns. */
int32_t dthrottle_busy_on_ok_at(const dthrottle_busy_t *busy,
                                const char *service,
                                size_t service_len,
                                uint64_t now_ns);

/** Returns the limit of a service in requests per second. Negative if there is no limit. */
int32_t dthrottle_busy_limit(const dthrottle_busy_t *busy,
                             const char *service,
                             size_t service_len,
                             double *limit);

/** Like dthrottle_busy_limit(), at the time now_ns. */
int32_t dthrottle_busy_limit_at(const dthrottle_busy_t *busy,
                                const char *service,
                                size_t service_len,
                                uint64_t now_ns,
                                double *limit);

/** Returns the number of requests sent to a service in the last second. */
int32_t dthrottle_busy_rate(const dthrottle_busy_t *busy,
                            const char *service,
                            size_t service_len,
                            double *rate);

/** Like dthrottle_busy_rate(), at the time now_ns. */
int32_t dthrottle_busy_rate_at(const dthrottle_busy_t *busy,
                               const char *service,
                               size_t service_len,
                               uint64_t now_ns,
                               double *rate);

/** Removes a service and its limit. */
int32_t dthrottle_busy_forget(const dthrottle_busy_t *busy,
                              const char *service,
                              size_t service_len);

/** Returns the statistics of a busy throttle. */
int32_t dthrottle_busy_stats(const dthrottle_busy_t *busy, dthrottle_busy_stats_t *stats);

/**
 * Makes a client of the daemon at address: the path of a Unix socket, which contains a "/", or
 * "host:port". NULL is the default socket of the daemon. A host name is looked up once, in this
 * call. If options is NULL, the defaults are used. The client connects when it sends the first
 * request, so the daemon need not run yet.
 */
int32_t dthrottle_client_open(const char *address,
                              size_t address_len,
                              const dthrottle_client_options_t *options,
                              dthrottle_client_t **out,
                              char *error,
                              size_t error_size);

/** Closes the connections of a client and releases it. NULL is allowed. */
void dthrottle_client_close(dthrottle_client_t *client);

/**
 * Checks one unit in the default domain of the daemon. Returns 1 if it is allowed or the daemon
 * does not answer, 0 if it is refused, and a negative status after an error. So "if
 * (dthrottle_client_allow(...))" is also true after an error. A tag must not contain a newline.
 */
int32_t dthrottle_client_allow(const dthrottle_client_t *client, const void *tag, size_t tag_len);

/**
 * Checks one unit for each of count tags, in as few round trips as possible. Writes count results
 * to allowed. If a tag is invalid, nothing is sent. After an error, tags without a result are
 * allowed.
 */
int32_t dthrottle_client_allow_many(const dthrottle_client_t *client,
                                    const void *const *tags,
                                    const size_t *tag_lens,
                                    size_t count,
                                    bool *allowed);

/**
 * Checks a tag. If domain is NULL, in the default domain; if options is NULL, for one unit. Errors
 * that the daemon reports, such as an unknown domain, are returned like errors of arguments.
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

/** Like dthrottle_client_check(), but takes no units. */
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
 * Gives cost units back to every rule. Returns 1 if the daemon did it, and 0 if it did not answer.
 * Needs the Unix socket of the daemon, or the token.
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
 * Fills the bucket of the tag in every rule. Returns 1 if the daemon did it, and 0 if it did not
 * answer. Needs the Unix socket of the daemon, or the token.
 */
int32_t dthrottle_client_reset(const dthrottle_client_t *client,
                               const char *domain,
                               size_t domain_len,
                               const void *tag,
                               size_t tag_len,
                               char *error,
                               size_t error_size);

/** Returns the counts of a client. */
int32_t dthrottle_client_counts(const dthrottle_client_t *client,
                                dthrottle_client_counts_t *counts);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DTHROTTLE_H */
