/*
 * How long handles are valid, which can be used again, and handles after a fork. Also the calls
 * that no vector tests: setters, files, statistics.
 */
#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static dthrottle_rule_t rule_of(const char *rate)
{
    dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;
    rule.rate = rate;
    rule.rate_len = strlen(rate);
    return rule;
}

static void calls_on_a_domain_of_a_closed_throttle_return_closed(void)
{
    dthrottle_t *throttle = open_on("rate = 1\nburst = 2\n[domains.api]\nrate = 1", NULL);
    dthrottle_domain_t *all = domain_of(throttle, NULL), *api = domain_of(throttle, "api");
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;

    OK(dthrottle_check(api, "t", 1, 1, &decision));
    dthrottle_close(throttle);
    decision.allowed = false;
    EQUAL(dthrottle_check(api, "t", 1, 1, &decision), DTHROTTLE_ERR_CLOSED);
    CHECK(decision.allowed && decision.granted == 1 && decision.limit == DTHROTTLE_UNLIMITED);
    EQUAL(dthrottle_check_with(api, "t", 1, &options, &decision), DTHROTTLE_ERR_CLOSED);
    EQUAL(dthrottle_peek(all, "t", 1, 1, &decision), DTHROTTLE_ERR_CLOSED);
    EQUAL(dthrottle_peek_with(all, "t", 1, &options, &decision), DTHROTTLE_ERR_CLOSED);
    EQUAL(dthrottle_allow(all, "t", 1, 1), DTHROTTLE_ERR_CLOSED);
    const void *tags[] = {"t"};
    const size_t lens[] = {1};
    bool allowed[] = {false};
    EQUAL(dthrottle_allow_many(all, tags, lens, 1, allowed), DTHROTTLE_ERR_CLOSED);
    CHECK(allowed[0]);
    EQUAL(dthrottle_allow_many(all, NULL, NULL, 0, NULL), DTHROTTLE_ERR_CLOSED);
    EQUAL(dthrottle_refund(all, "t", 1, 1), DTHROTTLE_ERR_CLOSED);
    EQUAL(dthrottle_reset(all, "t", 1), DTHROTTLE_ERR_CLOSED);
    EQUAL(dthrottle_charge_local(all, "t", 1, 1, 0), DTHROTTLE_ERR_CLOSED);
    TEXT(dthrottle_domain_name(api), "api");
    TEXT(dthrottle_domain_name(all), "default");
    TEXT(dthrottle_rule_name(api, 0), "rule1");
    EQUAL(dthrottle_rule_limit(all, 0), 2);
    dthrottle_domain_free(api);
    dthrottle_domain_free(all);
}

static void two_handles_of_a_domain_share_its_buckets(void)
{
    dthrottle_t *throttle = open_on("rate = \"1/day\"", NULL);
    dthrottle_domain_t *one = domain_of(throttle, NULL), *two = domain_of(throttle, "default");
    EQUAL(dthrottle_allow(one, "t", 1, 1), 1);
    dthrottle_domain_free(one);
    EQUAL(dthrottle_allow(two, "t", 1, 1), 0);
    dthrottle_domain_free(two);
    dthrottle_close(throttle);
}

static void setters_define_domains_rules_and_dry_run(void)
{
    dthrottle_config_t *config;
    dthrottle_t *throttle, *again;
    dthrottle_domain_t *api, *all;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_rule_t rule = rule_of("10/minute");
    char error[256];

    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    OK(dthrottle_config_add_rule(config, "api", 3, &rule));
    rule = rule_of("2/hour");
    rule.name = "hourly";
    rule.name_len = 6;
    rule.charge_refused = true;
    OK(dthrottle_config_add_rule(config, "api", 3, &rule));
    rule = rule_of("5 per 2 minutes");
    rule.burst_time_ns = 3600 * UINT64_C(1000000000);
    OK(dthrottle_config_add_rule(config, NULL, 0, &rule));
    rule = rule_of("1/s");
    rule.burst = 7;
    OK(dthrottle_config_add_rule(config, "default", 7, &rule));
    OK(dthrottle_config_set_dry_run(config, NULL, 0, true));
    OK(dthrottle_config_set_dry_run(config, "api", 3, false));

    /* A configuration can be opened more than once, and freed before its throttles. */
    MUST(dthrottle_open_config(config, &throttle, error, sizeof error) == DTHROTTLE_OK);
    TEXT(error, "");
    MUST(dthrottle_open_config(config, &again, NULL, 0) == DTHROTTLE_OK);
    dthrottle_close(again);

    /* Opening the configuration reports an invalid rate by its path. */
    rule = rule_of("10/fortnight");
    OK(dthrottle_config_add_rule(config, "api", 3, &rule));
    EQUAL(dthrottle_open_config(config, &again, error, sizeof error), DTHROTTLE_ERR_CONFIG);
    CHECK(strstr(error, "`domains.api.rules[2].rate` ") == error);
    CHECK(strstr(error, "\"10/fortnight\"") != NULL);

    /* Invalid TOML changes nothing, and valid TOML replaces everything. */
    EQUAL(dthrottle_config_toml(config, "x", 1, error, sizeof error), DTHROTTLE_ERR_CONFIG);
    EQUAL(dthrottle_open_config(config, &again, NULL, 0), DTHROTTLE_ERR_CONFIG);
    OK(dthrottle_config_toml(config, "rate = 4", 8, error, sizeof error));
    MUST(dthrottle_open_config(config, &again, error, sizeof error) == DTHROTTLE_OK);
    dthrottle_config_free(config);
    all = domain_of(again, NULL);
    EQUAL(dthrottle_rule_limit(all, 0), 4);
    EQUAL(dthrottle_domain(again, "api", 3, &api), DTHROTTLE_ERR_DOMAIN);
    dthrottle_domain_free(all);
    dthrottle_close(again);

    api = domain_of(throttle, "api");
    all = domain_of(throttle, NULL);
    EQUAL(dthrottle_rule_count(api), 2);
    TEXT(dthrottle_rule_name(api, 0), "rule1");
    TEXT(dthrottle_rule_name(api, 1), "hourly");
    EQUAL(dthrottle_rule_limit(api, 0), 10);
    EQUAL(dthrottle_rule_limit(api, 1), 2);
    EQUAL(dthrottle_rule_limit(all, 0), 150);
    EQUAL(dthrottle_rule_limit(all, 1), 7);

    OK(dthrottle_check(api, "t", 1, 2, &decision));
    CHECK(decision.allowed && decision.rule == -1);
    EQUAL(decision.deciding, 1);
    OK(dthrottle_check(api, "t", 1, 1, &decision));
    CHECK(!decision.allowed && !decision.dry_run);
    TEXT(dthrottle_rule_name(api, decision.rule), "hourly");
    EQUAL(decision.balance, -1); /* charge_refused: the refused check is charged */
    OK(dthrottle_check(all, "t", 1, 7, &decision));
    OK(dthrottle_check(all, "t", 1, 7, &decision));
    CHECK(decision.allowed && decision.dry_run && decision.granted == 0);
    EQUAL(dthrottle_domain_is_dry_run(all), 1);
    EQUAL(dthrottle_domain_is_dry_run(api), 0);

    dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;
    OK(dthrottle_stats(throttle, &stats));
    EQUAL(stats.size, sizeof stats);
    EQUAL(stats.allowed, 3);
    EQUAL(stats.refused, 1);
    EQUAL(stats.dry_run, 1);
    EQUAL(stats.failed_open, 0);
    EQUAL(stats.evicted, 0);
    EQUAL(stats.buckets, 4);
    dthrottle_domain_free(all);
    dthrottle_domain_free(api);
    dthrottle_close(throttle);
}

static void two_throttles_share_a_manual_clock(void)
{
    dthrottle_clock_t *manual;
    uint64_t now;
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    dthrottle_t *a = open_on("rate = 1", manual), *b = open_on("rate = 1", manual);
    dthrottle_domain_t *in_a = domain_of(a, NULL), *in_b = domain_of(b, NULL);
    EQUAL(dthrottle_allow(in_a, "t", 1, 1), 1);
    EQUAL(dthrottle_allow(in_b, "t", 1, 1), 1);
    OK(dthrottle_clock_advance(manual, 999999999));
    EQUAL(dthrottle_allow(in_a, "t", 1, 1), 0);
    OK(dthrottle_clock_set(manual, 1000000000));
    EQUAL(dthrottle_allow(in_a, "t", 1, 1), 1);
    OK(dthrottle_clock_now(manual, &now));
    EQUAL(now, 1000000000);
    dthrottle_clock_free(manual);
    EQUAL(dthrottle_allow(in_b, "t", 1, 1), 1);
    EQUAL(dthrottle_allow(in_b, "t", 1, 1), 0);
    dthrottle_domain_free(in_a);
    dthrottle_domain_free(in_b);
    dthrottle_close(a);
    dthrottle_close(b);

    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    OK(dthrottle_clock_advance(manual, 1));
    OK(dthrottle_clock_advance(manual, UINT64_MAX));
    OK(dthrottle_clock_now(manual, &now));
    CHECK(now == UINT64_MAX);
    dthrottle_clock_free(manual);
}

static void a_throttle_opens_from_a_file(void)
{
    const char *path = "life-test.toml";
    char error[256];
    dthrottle_t *throttle;
    FILE *file = fopen(path, "w");
    MUST(file != NULL);
    fputs("rate = \"5/s\"\n", file);
    fclose(file);
    MUST(dthrottle_open_file(path, strlen(path), &throttle, error, sizeof error) == DTHROTTLE_OK);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    EQUAL(dthrottle_rule_limit(domain, 0), 5);
    EQUAL(dthrottle_rule_window(domain, 0), 1000000000);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    remove(path);
    EQUAL(dthrottle_open_file(path, strlen(path), &throttle, error, sizeof error),
          DTHROTTLE_ERR_FILE);
    CHECK(strstr(error, path) != NULL);
}

static void inspection_calls_list_domains_decisions_and_top_buckets(void)
{
    dthrottle_clock_t *manual;
    dthrottle_bucket_t buckets[4];
    size_t count = 77;
    uint64_t allowed = 0, refused = 0, debt = 7;
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    dthrottle_t *throttle = open_on("rate = 1\nburst = 10\n[domains.api]\nrate = 2\n"
                                    "[domains.\"long \u00e9\"]\nrate = 3\n", manual);
    dthrottle_domain_t *all = domain_of(throttle, NULL), *api = domain_of(throttle, "api");
    TEXT(dthrottle_domain_list(throttle, 0), "default");
    TEXT(dthrottle_domain_list(throttle, 1), "api");
    TEXT(dthrottle_domain_list(throttle, 2), "long \u00e9");
    CHECK(dthrottle_domain_list(throttle, 3) == NULL);

    EQUAL(dthrottle_allow(all, "t", 1, 3), 1);
    EQUAL(dthrottle_allow(api, "t", 1, 1), 1);
    EQUAL(dthrottle_allow(api, "t", 1, 2), 0);
    OK(dthrottle_decisions(throttle, &allowed, &refused));
    EQUAL(allowed, 2);
    EQUAL(refused, 1);

    /* Charged without a check. The burst is 2, and a unit refills in half a second. */
    OK(dthrottle_charge(api, "t", 1, 1, &debt));
    EQUAL(debt, 0);
    OK(dthrottle_charge(api, "t", 1, 3, &debt));
    EQUAL(debt, 1500000000);
    OK(dthrottle_charge(all, "u", 1, 1, NULL));

    buckets[0].size = sizeof buckets[0];
    OK(dthrottle_top(throttle, buckets, 4, &count));
    EQUAL(count, 3);
    TEXT(buckets[0].domain, "api");
    TEXT(buckets[0].rule, "rule1");
    EQUAL(buckets[0].limit, 2);
    EQUAL(buckets[0].balance, -3);
    EQUAL(buckets[0].reset_after_ns, 2500000000);
    TEXT(buckets[1].domain, "default");
    EQUAL(buckets[1].balance, 7);
    EQUAL(buckets[2].balance, 9);
    CHECK(buckets[1].fingerprint != buckets[2].fingerprint);
    EQUAL(buckets[2].size, sizeof buckets[2]);
    OK(dthrottle_top(throttle, buckets, 1, &count));
    EQUAL(count, 1);
    OK(dthrottle_top(throttle, NULL, 0, &count));
    EQUAL(count, 0);
    dthrottle_domain_free(all);
    dthrottle_domain_free(api);
    dthrottle_close(throttle);
    dthrottle_clock_free(manual);
}

#define CLUSTER "rate = 1\n[cluster]\nname = \"web\"\n"

/* The new rules are read from a file. Releasing the old throttle does not close the table. */
static void a_reload_keeps_buckets_and_changes_rules(void)
{
    const char *path = "reload-test.toml";
    char error[256];
    dthrottle_config_t *config;
    dthrottle_t *old = open_on("rate = \"1/day\"\nburst = 10", NULL), *new;
    dthrottle_domain_t *before = domain_of(old, NULL), *after;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    FILE *file = fopen(path, "w");
    MUST(file != NULL);
    fputs("rate = \"1/day\"\nburst = 20\n[domains.more]\nrate = 1\n", file);
    fclose(file);
    EQUAL(dthrottle_allow(before, "t", 1, 4), 1);
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    OK(dthrottle_config_file(config, path, strlen(path), error, sizeof error));
    EQUAL(dthrottle_config_rule_count(config, "more", 4), 1);
    MUST(dthrottle_reload(old, config, &new, error, sizeof error) == DTHROTTLE_OK);
    TEXT(dthrottle_domain_list(new, 1), "more");
    after = domain_of(new, NULL);
    OK(dthrottle_peek(after, "t", 1, 1, &decision));
    EQUAL(decision.limit, 20);
    EQUAL(decision.remaining, 6);
    dthrottle_close(old);
    EQUAL(dthrottle_allow(after, "t", 1, 6), 1);
    EQUAL(dthrottle_allow(after, "t", 1, 1), 0);
    EQUAL(dthrottle_allow(before, "other", 5, 10), 1);
    EQUAL(dthrottle_allow(before, "other", 5, 1), 0);

    /* A reload without any rule fails, and the old rules remain. */
    OK(dthrottle_config_toml(config, "", 0, error, sizeof error));
    EQUAL(dthrottle_reload(new, config, &old, error, sizeof error), DTHROTTLE_ERR_CONFIG);
    CHECK(old == NULL && strstr(error, "`rate` is missing: without a rule") == error);
    EQUAL(dthrottle_allow(after, "t", 1, 1), 0);

    /* A failed reload changes nothing. */
    OK(dthrottle_config_toml(config, CLUSTER, strlen(CLUSTER), error, sizeof error));
    EQUAL(dthrottle_reload(new, config, &old, error, sizeof error), DTHROTTLE_ERR_CONFIG);
    CHECK(old == NULL && strstr(error, "`cluster` ") == error);
    remove(path);
    EQUAL(dthrottle_config_file(config, path, strlen(path), error, sizeof error),
          DTHROTTLE_ERR_FILE);
    CHECK(strstr(error, path) != NULL);
    dthrottle_close(new);
    EQUAL(dthrottle_allow(after, "t", 1, 1), DTHROTTLE_ERR_CLOSED);
    dthrottle_domain_free(before);
    dthrottle_domain_free(after);
    dthrottle_config_free(config);
}

/* After a fork, parent and child share the buckets, or have separate copies of a private table. */
static void a_fork_shares_buckets_unless_the_table_is_private(const char *toml, int shared)
{
    dthrottle_t *throttle = open_on(toml, NULL);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 1);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        int right = dthrottle_allow(domain, "t", 1, 1) == 1;
        right = right && dthrottle_allow(domain, "t", 1, 1) == 0;
        dthrottle_domain_free(domain);
        dthrottle_close(throttle);
        _exit(right ? 0 : 1);
    }
    int status = 1;
    MUST(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EQUAL(dthrottle_allow(domain, "t", 1, 1), shared ? 0 : 1);
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 0);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

int main(void)
{
    calls_on_a_domain_of_a_closed_throttle_return_closed();
    two_handles_of_a_domain_share_its_buckets();
    setters_define_domains_rules_and_dry_run();
    two_throttles_share_a_manual_clock();
    a_throttle_opens_from_a_file();
    inspection_calls_list_domains_decisions_and_top_buckets();
    a_reload_keeps_buckets_and_changes_rules();
    a_fork_shares_buckets_unless_the_table_is_private("rate = \"1/day\"\nburst = 2", 1);
    a_fork_shares_buckets_unless_the_table_is_private(
        "rate = \"1/day\"\nburst = 2\ntable = { private = true }", 0);
    return check_report("life");
}
