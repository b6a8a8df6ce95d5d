/*
 * Invalid arguments of clusters, busy throttles and clients of the daemon, as in bad_calls.c.
 */
#include "bad_input.h"

static void cluster_calls_reject_invalid_arguments(void)
{
    dthrottle_cluster_stats_t stats = DTHROTTLE_CLUSTER_STATS_INIT;
    dthrottle_peer_t peer = DTHROTTLE_PEER_INIT;
    dthrottle_event_t event = DTHROTTLE_EVENT_INIT;
    uint64_t value = 7;
    size_t count = 7;

    BAD(dthrottle_start(NULL));
    OK(dthrottle_start(throttle));
    BAD(dthrottle_stop(NULL));
    OK(dthrottle_stop(throttle));
    BAD(dthrottle_cluster_stats(NULL, &stats));
    BAD(dthrottle_cluster_stats(throttle, NULL));

    BAD(dthrottle_cluster_count(NULL, "restarts", 8, &value));
    EQUAL(value, 0);
    BAD(dthrottle_cluster_count(throttle, "restarts", 8, NULL));
    BAD(dthrottle_cluster_count(throttle, NULL, 8, &value));
    BAD(dthrottle_cluster_count(throttle, "restarts", TOO_LONG, &value));
    BAD(dthrottle_cluster_count(throttle, NOT_UTF8, 2, &value));
    BAD(dthrottle_cluster_count(throttle, NULL, 0, &value));

    BAD(dthrottle_cluster_peer(NULL, 0, &peer));
    BAD(dthrottle_cluster_peer(throttle, 0, NULL));
    BAD(dthrottle_cluster_peer(throttle, 0, &peer));
    BAD(dthrottle_cluster_peer(throttle, SIZE_MAX, &peer));

    BAD(dthrottle_events(NULL, 0, &event, 1, &count));
    EQUAL(count, 0);
    BAD(dthrottle_events(throttle, 0, NULL, 1, &count));
    BAD(dthrottle_events(throttle, 0, &event, 1, NULL));
    BAD(dthrottle_events(throttle, 0, &event, SIZE_MAX, &count));
    BAD(dthrottle_events(throttle, 0, &event, PTRDIFF_MAX / sizeof event + 1, &count));
    OK(dthrottle_events(throttle, UINT64_MAX, &event, 1, &count));
    OK(dthrottle_events(throttle, 0, NULL, 0, &count));
}

static void busy_calls_reject_invalid_arguments(void)
{
    dthrottle_busy_t *busy = NULL;
    dthrottle_busy_stats_t stats = DTHROTTLE_BUSY_STATS_INIT;
    uint64_t wait = 7;
    double limit = 7;

    BAD(dthrottle_busy_open(NULL, 0, NULL, NULL, NULL, 0));
    BAD(dthrottle_busy_open(NULL, 1, NULL, &busy, NULL, 0));
    BAD(dthrottle_busy_open("x", TOO_LONG, NULL, &busy, NULL, 0));
    BAD(dthrottle_busy_open(NOT_UTF8, 2, NULL, &busy, NULL, 0));
    EQUAL(dthrottle_busy_open("floor = -1", 10, NULL, &busy, NULL, 0), DTHROTTLE_ERR_CONFIG);
    CHECK(busy == NULL);
    OK(dthrottle_busy_open(NULL, 0, clock_, &busy, NULL, 0));

    BAD(dthrottle_busy_should_send(NULL, "a", 1, &wait));
    BAD(dthrottle_busy_should_send(busy, NULL, 1, &wait));
    BAD(dthrottle_busy_should_send(busy, "a", TOO_LONG, &wait));
    EQUAL(dthrottle_busy_should_send(busy, NULL, 0, NULL), 1);
    BAD(dthrottle_busy_on_busy(NULL, "a", 1, 0));
    BAD(dthrottle_busy_on_busy(busy, NULL, 1, 0));
    OK(dthrottle_busy_on_busy(busy, "a", 1, UINT64_MAX));
    BAD(dthrottle_busy_on_ok(NULL, "a", 1));
    BAD(dthrottle_busy_on_ok(busy, NULL, 1));
    BAD(dthrottle_busy_limit(NULL, "a", 1, &limit));
    BAD(dthrottle_busy_limit(busy, NULL, 1, &limit));
    BAD(dthrottle_busy_limit(busy, "a", 1, NULL));
    BAD(dthrottle_busy_limit_at(NULL, "a", 1, 0, &limit));
    BAD(dthrottle_busy_limit_at(busy, "a", 1, 0, NULL));
    OK(dthrottle_busy_limit_at(busy, "a", 1, UINT64_MAX, &limit));
    BAD(dthrottle_busy_should_send_at(NULL, "a", 1, 0, &wait));
    BAD(dthrottle_busy_should_send_at(busy, NULL, 1, 0, &wait));
    CHECK(dthrottle_busy_should_send_at(busy, "a", 1, UINT64_MAX, NULL) >= 0);
    BAD(dthrottle_busy_on_busy_at(NULL, "a", 1, 0, 0));
    OK(dthrottle_busy_on_busy_at(busy, "a", 1, UINT64_MAX, UINT64_MAX));
    BAD(dthrottle_busy_on_ok_at(busy, NULL, 1, 0));
    OK(dthrottle_busy_on_ok_at(busy, "a", 1, UINT64_MAX));
    BAD(dthrottle_busy_rate(NULL, "a", 1, &limit));
    BAD(dthrottle_busy_rate(busy, "a", 1, NULL));
    BAD(dthrottle_busy_rate_at(busy, NULL, 1, 0, &limit));
    BAD(dthrottle_busy_forget(NULL, "a", 1));
    BAD(dthrottle_busy_forget(busy, NULL, 1));
    BAD(dthrottle_busy_start(NULL));
    BAD(dthrottle_busy_now(NULL, &wait));
    BAD(dthrottle_busy_now(busy, NULL));
    BAD(dthrottle_busy_stats(NULL, &stats));
    BAD(dthrottle_busy_stats(busy, NULL));
    stats.size = 1;
    BAD(dthrottle_busy_stats(busy, &stats));
    dthrottle_busy_close(busy);
    dthrottle_busy_close(NULL);
}

static void client_calls_reject_invalid_arguments(void)
{
    dthrottle_client_t *client = (dthrottle_client_t *)throttle;
    dthrottle_client_options_t options = DTHROTTLE_CLIENT_OPTIONS_INIT;
    dthrottle_client_decision_t decision = DTHROTTLE_CLIENT_DECISION_INIT;
    dthrottle_client_counts_t counts = DTHROTTLE_CLIENT_COUNTS_INIT;
    const void *tags[] = {"a", NULL};
    size_t lens[] = {1, 1};
    bool allowed[2] = {false, false};
    char error[256];

    BAD(dthrottle_client_open("/x", 2, NULL, NULL, NULL, 0));
    BAD(dthrottle_client_open(NULL, 2, NULL, &client, error, sizeof error));
    CHECK(client == NULL && strlen(error) > 0);
    BAD(dthrottle_client_open("/x", TOO_LONG, NULL, &client, NULL, 0));
    BAD(dthrottle_client_open(NOT_UTF8, 2, NULL, &client, NULL, 0));
    BAD(dthrottle_client_open("nonsense", 8, NULL, &client, error, sizeof error));
    CHECK(strstr(error, "`address` must be a path such as") == error);
    CHECK(strstr(error, "got \"nonsense\", which is neither") != NULL);
    options.timeout_ns = 0;
    BAD(dthrottle_client_open("/x", 2, &options, &client, error, sizeof error));
    CHECK(strstr(error, "`timeout_ns` must be above 0") == error);
    options.timeout_ns = options.max_backoff_ns = 1;
    BAD(dthrottle_client_open("/x", 2, &options, &client, error, sizeof error));
    CHECK(strstr(error, "`max_backoff_ns` must be at least backoff_ns") == error);
    options.size--;
    BAD(dthrottle_client_open("/x", 2, &options, &client, NULL, 0));
    OK(dthrottle_client_open(NULL, 0, NULL, &client, NULL, 0));
    dthrottle_client_close(client);
    OK(dthrottle_client_open("/no/such", 8, NULL, &client, NULL, 0));

    BAD(dthrottle_client_allow(NULL, "a", 1));
    BAD(dthrottle_client_allow(client, NULL, 1));
    BAD(dthrottle_client_allow(client, "a", TOO_LONG));
    BAD(dthrottle_client_allow_many(NULL, tags, lens, 1, allowed));
    CHECK(allowed[0] && !allowed[1]);
    BAD(dthrottle_client_allow_many(client, NULL, lens, 1, allowed));
    BAD(dthrottle_client_allow_many(client, tags, NULL, 1, allowed));
    BAD(dthrottle_client_allow_many(client, tags, lens, 1, NULL));
    BAD(dthrottle_client_allow_many(client, tags, lens, 2, allowed));
    OK(dthrottle_client_allow_many(client, NULL, NULL, 0, NULL));

    decision.allowed = false;
    BAD(dthrottle_client_check(NULL, NULL, 0, "a", 1, NULL, &decision, NULL, 0));
    CHECK(decision.allowed && !decision.failed_open && decision.granted == 1);
    BAD(dthrottle_client_check(client, NULL, 1, "a", 1, NULL, &decision, NULL, 0));
    BAD(dthrottle_client_check(client, NOT_UTF8, 2, "a", 1, NULL, &decision, NULL, 0));
    BAD(dthrottle_client_check(client, NULL, 0, NULL, 1, NULL, &decision, NULL, 0));
    BAD(dthrottle_client_check(client, NULL, 0, "a", 1, NULL, NULL, NULL, 0));
    BAD(dthrottle_client_peek(NULL, NULL, 0, "a", 1, NULL, &decision, NULL, 0));
    BAD(dthrottle_client_peek(client, NULL, 0, NULL, 1, NULL, &decision, NULL, 0));
    BAD(dthrottle_client_peek(client, NULL, 0, "a", 1, NULL, NULL, NULL, 0));
    dthrottle_check_options_t check = DTHROTTLE_CHECK_OPTIONS_INIT;
    check.size = offsetof(dthrottle_check_options_t, allow_debt) - 1;
    BAD(dthrottle_client_check(client, NULL, 0, "a", 1, &check, &decision, NULL, 0));
    decision.size = offsetof(dthrottle_client_decision_t, deciding) - 1;
    BAD(dthrottle_client_peek(client, NULL, 0, "a", 1, NULL, &decision, NULL, 0));
    BAD(dthrottle_client_refund(NULL, NULL, 0, "a", 1, 1, NULL, 0));
    BAD(dthrottle_client_refund(client, NULL, 0, NULL, 1, 1, NULL, 0));
    BAD(dthrottle_client_reset(NULL, NULL, 0, "a", 1, NULL, 0));
    BAD(dthrottle_client_reset(client, NULL, 1, "a", 1, NULL, 0));
    BAD(dthrottle_client_counts(NULL, &counts));
    BAD(dthrottle_client_counts(client, NULL));
    OK(dthrottle_client_counts(client, &counts));
    EQUAL(counts.answered + counts.failed_open + counts.failures, 0);
    /* Without a daemon, every check is allowed. */
    EQUAL(dthrottle_client_allow(client, NULL, 0), 1);
    dthrottle_client_close(client);
    dthrottle_client_close(NULL);
}

int main(void)
{
    bad_input_begin();
    cluster_calls_reject_invalid_arguments();
    busy_calls_reject_invalid_arguments();
    client_calls_reject_invalid_arguments();
    return bad_input_end("bad_network");
}
