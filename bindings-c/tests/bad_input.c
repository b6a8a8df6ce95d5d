/*
 * Every export with NULL for each of its pointers, with lengths that cannot be, and with text that
 * is not UTF-8: each is an error, none a crash, and every decision is left open.
 */
#include "check.h"

#define TOO_LONG ((size_t)PTRDIFF_MAX + 1)

static const char RATE[] = "rate = \"1/s\"\nburst = 3\n";
static const size_t RATE_LEN = sizeof RATE - 1;
static const char NOT_UTF8[] = "\xff\xfe";

static dthrottle_t *throttle;
static dthrottle_domain_t *domain;
static dthrottle_config_t *config;
static dthrottle_clock_t *clock_;

/* What a decision must say after an error, whatever it said before. */
static dthrottle_decision_t refused(void)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    decision.allowed = false;
    decision.rule = 5;
    decision.retry_after_ns = 99;
    return decision;
}

static void check_open(const dthrottle_decision_t *decision, uint64_t granted)
{
    EQUAL(decision->size, sizeof *decision);
    CHECK(decision->allowed && !decision->dry_run);
    EQUAL(decision->rule, -1);
    EQUAL(decision->granted, granted);
    CHECK(decision->limit == DTHROTTLE_UNLIMITED && decision->remaining == DTHROTTLE_UNLIMITED);
    EQUAL(decision->balance, INT64_MAX);
    CHECK(!decision->wait_ns && !decision->retry_after_ns && !decision->reset_after_ns);
    EQUAL(decision->deciding, -1);
}

static void test_open(void)
{
    dthrottle_t *out = throttle;
    char error[64] = "old";

    BAD(dthrottle_open(RATE, RATE_LEN, NULL, error, sizeof error));
    CHECK(strlen(error) > 0);
    BAD(dthrottle_open(NULL, 5, &out, error, sizeof error));
    CHECK(out == NULL);
    BAD(dthrottle_open(RATE, TOO_LONG, &out, NULL, 0));
    BAD(dthrottle_open(RATE, SIZE_MAX, &out, NULL, 5));
    BAD(dthrottle_open(NOT_UTF8, 2, &out, error, sizeof error));
    CHECK(strstr(error, "UTF-8") != NULL);
    EQUAL(dthrottle_open("rate = 1\nx = 2\n", 15, &out, NULL, 0), DTHROTTLE_ERR_CONFIG);
    CHECK(out == NULL);
    OK(dthrottle_open(NULL, 0, &out, error, sizeof error));
    TEXT(error, "");
    dthrottle_close(out);
    OK(dthrottle_open(RATE, RATE_LEN, &out, NULL, 0));
    dthrottle_close(out);

    out = throttle;
    BAD(dthrottle_open_file("x", 1, NULL, error, sizeof error));
    BAD(dthrottle_open_file(NULL, 1, &out, error, sizeof error));
    CHECK(out == NULL);
    BAD(dthrottle_open_file("x", TOO_LONG, &out, NULL, 0));
    EQUAL(dthrottle_open_file(NULL, 0, &out, NULL, 0), DTHROTTLE_ERR_FILE);
    EQUAL(dthrottle_open_file("/no/such", 8, &out, error, sizeof error), DTHROTTLE_ERR_FILE);
    CHECK(strstr(error, "/no/such") != NULL);
    EQUAL(dthrottle_open_file("/a\0b", 4, &out, NULL, 0), DTHROTTLE_ERR_FILE);
    EQUAL(dthrottle_open_file("/\xff", 2, &out, NULL, 0), DTHROTTLE_ERR_FILE);

    out = throttle;
    BAD(dthrottle_open_config(NULL, &out, error, sizeof error));
    CHECK(out == NULL);
    BAD(dthrottle_open_config(config, NULL, error, sizeof error));
    BAD(dthrottle_open_config(NULL, NULL, NULL, 0));
}

static void test_domain(void)
{
    dthrottle_domain_t *out = domain;

    BAD(dthrottle_domain(NULL, NULL, 0, &out));
    CHECK(out == NULL);
    BAD(dthrottle_domain(throttle, NULL, 0, NULL));
    BAD(dthrottle_domain(throttle, NULL, 3, &out));
    BAD(dthrottle_domain(throttle, "api", TOO_LONG, &out));
    BAD(dthrottle_domain(throttle, NOT_UTF8, 2, &out));
    EQUAL(dthrottle_domain(throttle, "", 0, &out), DTHROTTLE_ERR_DOMAIN);
    EQUAL(dthrottle_domain(throttle, "nope", 4, &out), DTHROTTLE_ERR_DOMAIN);
    CHECK(out == NULL);

    CHECK(dthrottle_domain_name(NULL) == NULL);
    BAD(dthrottle_domain_is_dry_run(NULL));
    BAD(dthrottle_rule_count(NULL));
    CHECK(dthrottle_rule_name(NULL, 0) == NULL);
    EQUAL(dthrottle_rule_limit(NULL, 0), 0);
    EQUAL(dthrottle_rule_window(NULL, 0), 0);
    EQUAL(dthrottle_rule_count(domain), 1);
    const int32_t no_rules[] = {-1, 1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof no_rules / sizeof no_rules[0]; i++) {
        CHECK(dthrottle_rule_name(domain, no_rules[i]) == NULL);
        EQUAL(dthrottle_rule_limit(domain, no_rules[i]), 0);
        EQUAL(dthrottle_rule_window(domain, no_rules[i]), 0);
    }
}

/* A decision is left open by every error, for check, check_with, peek and peek_with alike. */
static void test_one_check(int call, const dthrottle_domain_t *of, const void *tag, size_t len,
                           uint64_t cost, int32_t status)
{
    dthrottle_decision_t decision = refused();
    dthrottle_ask_t ask = DTHROTTLE_ASK_INIT;
    int32_t got = 0;

    ask.cost = cost;
    switch (call) {
    case 0: got = dthrottle_check(of, tag, len, cost, &decision); break;
    case 1: got = dthrottle_check_with(of, tag, len, &ask, &decision); break;
    case 2: got = dthrottle_peek(of, tag, len, cost, &decision); break;
    case 3: got = dthrottle_peek_with(of, tag, len, &ask, &decision); break;
    }
    EQUAL(got, status);
    check_open(&decision, cost);
}

static void test_checks(void)
{
    dthrottle_decision_t decision = refused();
    dthrottle_ask_t ask = DTHROTTLE_ASK_INIT;

    for (int call = 0; call < 4; call++) {
        test_one_check(call, NULL, "t", 1, 2, DTHROTTLE_ERR_ARGUMENT);
        test_one_check(call, domain, NULL, 1, 2, DTHROTTLE_ERR_ARGUMENT);
        test_one_check(call, domain, "t", TOO_LONG, 2, DTHROTTLE_ERR_ARGUMENT);
        test_one_check(call, domain, "t", SIZE_MAX, 2, DTHROTTLE_ERR_ARGUMENT);
        test_one_check(call, domain, "t", 1, 4, DTHROTTLE_ERR_COST);
        test_one_check(call, domain, "t", 1, UINT64_MAX, DTHROTTLE_ERR_COST);
    }
    BAD(dthrottle_check(domain, "t", 1, 1, NULL));
    BAD(dthrottle_check(NULL, NULL, 1, 1, NULL));
    BAD(dthrottle_check_with(domain, "t", 1, &ask, NULL));
    BAD(dthrottle_check_with(domain, "t", 1, NULL, &decision));
    check_open(&decision, 0);
    BAD(dthrottle_peek(domain, "t", 1, 1, NULL));
    BAD(dthrottle_peek_with(domain, "t", 1, &ask, NULL));
    decision = refused();
    BAD(dthrottle_peek_with(domain, "t", 1, NULL, &decision));
    check_open(&decision, 0);

    /* None of that took anything. */
    OK(dthrottle_check(domain, "t", 1, 3, &decision));
    CHECK(decision.allowed && decision.remaining == 0);

    BAD(dthrottle_allow(NULL, "t", 1, 1));
    BAD(dthrottle_allow(domain, NULL, 1, 1));
    BAD(dthrottle_allow(domain, "t", TOO_LONG, 1));
    EQUAL(dthrottle_allow(domain, "t", 1, 4), DTHROTTLE_ERR_COST);
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 0);

    BAD(dthrottle_refund(NULL, "t", 1, 1));
    BAD(dthrottle_refund(domain, NULL, 1, 1));
    BAD(dthrottle_refund(domain, "t", TOO_LONG, 1));
    OK(dthrottle_refund(domain, "t", 1, UINT64_MAX));
    EQUAL(dthrottle_allow(domain, "t", 1, 3), 1);

    BAD(dthrottle_reset(NULL, "t", 1));
    BAD(dthrottle_reset(domain, NULL, 1));
    BAD(dthrottle_reset(domain, "t", TOO_LONG));
    OK(dthrottle_reset(domain, "t", 1));

    BAD(dthrottle_debit(NULL, "t", 1, 1, 0));
    BAD(dthrottle_debit(domain, NULL, 1, 1, 0));
    BAD(dthrottle_debit(domain, "t", TOO_LONG, 1, 0));
    OK(dthrottle_debit(domain, "t", 1, UINT64_MAX, UINT64_MAX));

    BAD(dthrottle_charge(NULL, "t", 1, 1, NULL));
    BAD(dthrottle_charge(domain, NULL, 1, 1, NULL));
    BAD(dthrottle_charge(domain, "t", TOO_LONG, 1, NULL));
    OK(dthrottle_charge(domain, "t", 1, UINT64_MAX, NULL));
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 0);
}

/* A batch with one bad pointer takes nothing, and its answers are yes. */
static void test_many(void)
{
    const void *tags[] = {"many", NULL, "many"};
    size_t lens[] = {4, 0, 4};
    bool allowed[4] = {false, false, false, false};

    BAD(dthrottle_allow_many(NULL, tags, lens, 3, allowed));
    CHECK(allowed[0] && allowed[1] && allowed[2] && !allowed[3]);
    BAD(dthrottle_allow_many(domain, NULL, lens, 3, allowed));
    BAD(dthrottle_allow_many(domain, tags, NULL, 3, allowed));
    BAD(dthrottle_allow_many(domain, tags, lens, 3, NULL));
    BAD(dthrottle_allow_many(domain, tags, lens, SIZE_MAX, NULL));
    BAD(dthrottle_allow_many(NULL, NULL, NULL, 0, NULL));
    lens[2] = TOO_LONG;
    BAD(dthrottle_allow_many(domain, tags, lens, 3, allowed));
    lens[2] = 4;
    lens[1] = 1;
    memset(allowed, 0, sizeof allowed);
    BAD(dthrottle_allow_many(domain, tags, lens, 3, allowed));
    CHECK(allowed[0] && allowed[1] && allowed[2] && !allowed[3]);
    EQUAL(dthrottle_allow(domain, "many", 4, 3), 1);
    OK(dthrottle_allow_many(domain, NULL, NULL, 0, NULL));
    lens[1] = 0;
    OK(dthrottle_allow_many(domain, tags, lens, 2, allowed));
    CHECK(!allowed[0] && allowed[1]);
    OK(dthrottle_reset(domain, NULL, 0));
}

/* Tags are any bytes; NULL without a length is the empty one. */
static void test_tags(void)
{
    EQUAL(dthrottle_allow(domain, "", 0, 3), 1);
    EQUAL(dthrottle_allow(domain, NULL, 0, 1), 0);
    EQUAL(dthrottle_allow(domain, "a\0b", 3, 3), 1);
    EQUAL(dthrottle_allow(domain, "a\0c", 3, 3), 1);
    EQUAL(dthrottle_allow(domain, "a\0b", 3, 1), 0);
    EQUAL(dthrottle_allow(domain, NOT_UTF8, 2, 3), 1);
    EQUAL(dthrottle_allow(domain, NOT_UTF8, 2, 1), 0);
}

static void test_config(void)
{
    dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;
    char error[64];

    rule.rate = "1/s";
    rule.rate_len = 3;
    BAD(dthrottle_config_new(NULL));
    BAD(dthrottle_config_toml(NULL, RATE, RATE_LEN, error, sizeof error));
    BAD(dthrottle_config_toml(config, NULL, 1, error, sizeof error));
    BAD(dthrottle_config_toml(config, RATE, TOO_LONG, error, sizeof error));
    BAD(dthrottle_config_toml(config, NOT_UTF8, 2, NULL, 0));
    BAD(dthrottle_config_file(NULL, "x", 1, error, sizeof error));
    BAD(dthrottle_config_file(config, NULL, 1, error, sizeof error));
    BAD(dthrottle_config_file(config, "x", TOO_LONG, NULL, 0));
    EQUAL(dthrottle_config_file(config, "/no/such", 8, NULL, 0), DTHROTTLE_ERR_FILE);

    BAD(dthrottle_config_add_rule(NULL, NULL, 0, &rule));
    BAD(dthrottle_config_add_rule(config, NULL, 0, NULL));
    BAD(dthrottle_config_add_rule(config, NULL, 1, &rule));
    BAD(dthrottle_config_add_rule(config, "d", TOO_LONG, &rule));
    BAD(dthrottle_config_add_rule(config, NOT_UTF8, 2, &rule));
    rule.rate = NOT_UTF8;
    rule.rate_len = 2;
    BAD(dthrottle_config_add_rule(config, NULL, 0, &rule));
    rule.rate = NULL;
    BAD(dthrottle_config_add_rule(config, NULL, 0, &rule));
    rule.rate = "1/s";
    rule.rate_len = TOO_LONG;
    BAD(dthrottle_config_add_rule(config, NULL, 0, &rule));
    rule.rate_len = 3;
    rule.name = NOT_UTF8;
    rule.name_len = 2;
    BAD(dthrottle_config_add_rule(config, NULL, 0, &rule));
    rule.name = NULL;
    BAD(dthrottle_config_add_rule(config, NULL, 0, &rule));
    rule.name_len = 0;
    rule.burst = 1;
    rule.burst_time_ns = 1;
    BAD(dthrottle_config_add_rule(config, NULL, 0, &rule));

    BAD(dthrottle_config_set_dry_run(NULL, NULL, 0, true));
    BAD(dthrottle_config_set_dry_run(config, NULL, 1, true));
    BAD(dthrottle_config_set_dry_run(config, "d", TOO_LONG, true));
    BAD(dthrottle_config_set_dry_run(config, NOT_UTF8, 2, true));

    dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    BAD(dthrottle_config_set_table(NULL, &table));
    BAD(dthrottle_config_set_table(config, NULL));
    table.name = NOT_UTF8;
    table.name_len = 2;
    BAD(dthrottle_config_set_table(config, &table));
    table.name = NULL;
    BAD(dthrottle_config_set_table(config, &table));
    table.name = "web";
    table.name_len = TOO_LONG;
    BAD(dthrottle_config_set_table(config, &table));
    table.name_len = 3;
    table.is_private = true;
    BAD(dthrottle_config_set_table(config, &table));
    table.is_private = false;
    table.group_len = 1;
    BAD(dthrottle_config_set_table(config, &table));
    table.group_len = 0;
    table.dir = NOT_UTF8;
    table.dir_len = 2;
    BAD(dthrottle_config_set_table(config, &table));
    table.dir = NULL;
    table.dir_len = 0;
    table.tags = 1;
    table.bytes = 1;
    BAD(dthrottle_config_set_table(config, &table));

    BAD(dthrottle_config_name_table(NULL, "web", 3));
    BAD(dthrottle_config_name_table(config, NULL, 3));
    BAD(dthrottle_config_name_table(config, NOT_UTF8, 2));
    BAD(dthrottle_config_name_table(config, "web", TOO_LONG));
    BAD(dthrottle_config_check(NULL, NULL, 0));
    BAD(dthrottle_config_rule_count(NULL, NULL, 0));
    BAD(dthrottle_config_rule_count(config, NULL, 3));
    BAD(dthrottle_config_rule_count(config, NOT_UTF8, 2));
    EQUAL(dthrottle_config_rule_count(config, "zzz", 3), DTHROTTLE_ERR_DOMAIN);
    EQUAL(dthrottle_config_rule_count(config, NULL, 0), 0);

    BAD(dthrottle_config_set_clock(NULL, clock_));
    BAD(dthrottle_config_set_clock(config, NULL));

    /* None of that changed the configuration: it is still without rules. */
    dthrottle_t *free_for_all;
    MUST(dthrottle_open_config(config, &free_for_all, NULL, 0) == DTHROTTLE_OK);
    dthrottle_domain_t *all = domain_of(free_for_all, NULL);
    EQUAL(dthrottle_rule_count(all), 0);
    dthrottle_domain_free(all);
    dthrottle_close(free_for_all);
}

static void test_cluster(void)
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

static void test_busy(void)
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

static void test_client(void)
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
    CHECK(strstr(error, "address: \"nonsense\" is neither a path nor a host") == error);
    options.timeout_ns = 0;
    BAD(dthrottle_client_open("/x", 2, &options, &client, error, sizeof error));
    CHECK(strstr(error, "timeout_ns: 0; ") == error);
    options.timeout_ns = options.max_backoff_ns = 1;
    BAD(dthrottle_client_open("/x", 2, &options, &client, error, sizeof error));
    CHECK(strstr(error, "max_backoff_ns: 1; ") == error);
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
    dthrottle_ask_t ask = DTHROTTLE_ASK_INIT;
    ask.size--;
    BAD(dthrottle_client_check(client, NULL, 0, "a", 1, &ask, &decision, NULL, 0));
    decision.size--;
    BAD(dthrottle_client_peek(client, NULL, 0, "a", 1, NULL, &decision, NULL, 0));
    BAD(dthrottle_client_refund(NULL, NULL, 0, "a", 1, 1, NULL, 0));
    BAD(dthrottle_client_refund(client, NULL, 0, NULL, 1, 1, NULL, 0));
    BAD(dthrottle_client_reset(NULL, NULL, 0, "a", 1, NULL, 0));
    BAD(dthrottle_client_reset(client, NULL, 1, "a", 1, NULL, 0));
    BAD(dthrottle_client_counts(NULL, &counts));
    BAD(dthrottle_client_counts(client, NULL));
    OK(dthrottle_client_counts(client, &counts));
    EQUAL(counts.asked + counts.failed_open + counts.failures, 0);
    /* There is no daemon: yes. */
    EQUAL(dthrottle_client_allow(client, NULL, 0), 1);
    dthrottle_client_close(client);
    dthrottle_client_close(NULL);
}

static void test_look(void)
{
    size_t count = 77;
    uint64_t number = 77;
    dthrottle_t *out = throttle;
    dthrottle_bucket_t bucket = DTHROTTLE_BUCKET_INIT;
    dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    dthrottle_table_info_t info = DTHROTTLE_TABLE_INFO_INIT;
    char error[64] = "old";

    const int32_t no_domains[] = {1, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof no_domains / sizeof no_domains[0]; i++) {
        CHECK(dthrottle_domain_list(throttle, no_domains[i]) == NULL);
        CHECK(dthrottle_domain_list(NULL, no_domains[i]) == NULL);
    }
    BAD(dthrottle_decisions(NULL, &number, &number));
    BAD(dthrottle_decisions(throttle, NULL, &number));
    BAD(dthrottle_decisions(throttle, &number, NULL));

    BAD(dthrottle_top(NULL, &bucket, 1, &count));
    EQUAL(count, 0);
    BAD(dthrottle_top(throttle, NULL, 1, &count));
    BAD(dthrottle_top(throttle, &bucket, 1, NULL));
    BAD(dthrottle_top(throttle, &bucket, SIZE_MAX, &count));
    bucket.size--;
    BAD(dthrottle_top(throttle, &bucket, 1, &count));

    BAD(dthrottle_reload(NULL, config, &out, error, sizeof error));
    CHECK(out == NULL && strlen(error) > 0);
    BAD(dthrottle_reload(throttle, NULL, &out, NULL, 0));
    BAD(dthrottle_reload(throttle, config, NULL, NULL, 0));

    BAD(dthrottle_table_list(&table, NULL, 1, &count, NULL, 0));
    BAD(dthrottle_table_list(&table, &info, 1, NULL, NULL, 0));
    BAD(dthrottle_table_list(&table, &info, SIZE_MAX, &count, NULL, 0));
    BAD(dthrottle_table_remove(NULL, error, sizeof error));
    BAD(dthrottle_table_resize(NULL, &number, error, sizeof error));
    table.group_len = 3;
    BAD(dthrottle_table_list(&table, &info, 1, &count, NULL, 0));
    BAD(dthrottle_table_remove(&table, NULL, 0));
    BAD(dthrottle_table_resize(&table, NULL, NULL, 0));
    table.group_len = 0;
    table.dir = NOT_UTF8;
    table.dir_len = 2;
    BAD(dthrottle_table_list(&table, &info, 1, &count, NULL, 0));
    table.dir = NULL;
    table.dir_len = 0;
    table.name_len = TOO_LONG;
    BAD(dthrottle_table_remove(&table, NULL, 0));
    BAD(dthrottle_table_resize(&table, NULL, NULL, 0));
    table.size = 1;
    BAD(dthrottle_table_list(&table, &info, 1, &count, NULL, 0));
}

static void test_rest(void)
{
    uint64_t now = 7;
    dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;

    BAD(dthrottle_clock_new(NULL));
    BAD(dthrottle_clock_advance(NULL, 1));
    BAD(dthrottle_clock_set(NULL, 1));
    BAD(dthrottle_clock_now(NULL, &now));
    BAD(dthrottle_clock_now(clock_, NULL));
    OK(dthrottle_clock_set(clock_, 5));
    BAD(dthrottle_clock_set(clock_, 4));
    OK(dthrottle_clock_now(clock_, &now));
    EQUAL(now, 5);

    BAD(dthrottle_stats(NULL, &stats));
    BAD(dthrottle_stats(throttle, NULL));

    const int32_t no_warnings[] = {0, 1, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof no_warnings / sizeof no_warnings[0]; i++) {
        CHECK(dthrottle_warning(throttle, no_warnings[i]) == NULL);
        CHECK(dthrottle_warning(NULL, no_warnings[i]) == NULL);
    }

    const int32_t statuses[] = {1, -8, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        TEXT(dthrottle_status_text(statuses[i]), "not a status of dthrottle");
    TEXT(dthrottle_status_text(DTHROTTLE_OK), "ok");
    TEXT(dthrottle_version(), DTHROTTLE_VERSION);

    dthrottle_close(NULL);
    dthrottle_domain_free(NULL);
    dthrottle_config_free(NULL);
    dthrottle_clock_free(NULL);
}

int main(void)
{
    MUST(dthrottle_clock_new(&clock_) == DTHROTTLE_OK);
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    throttle = open_on(RATE, clock_);
    domain = domain_of(throttle, NULL);
    test_open();
    test_domain();
    test_checks();
    test_many();
    test_tags();
    test_config();
    test_cluster();
    test_busy();
    test_client();
    test_look();
    test_rest();
    dthrottle_close(throttle);
    dthrottle_domain_free(domain);
    dthrottle_config_free(config);
    dthrottle_clock_free(clock_);
    return check_report("bad_input");
}
