/*
 * Invalid arguments of configurations, clocks and the calls that open a throttle, as in
 * bad_calls.c.
 */
#include "bad_input.h"

static void open_calls_reject_invalid_arguments(void)
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
    EQUAL(dthrottle_open(NULL, 0, &out, error, sizeof error), DTHROTTLE_ERR_CONFIG);
    CHECK(strstr(error, "`rate` is missing: without a rule") == error);
    OK(dthrottle_open(RATE, RATE_LEN, &out, error, sizeof error));
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

static void configuration_calls_reject_invalid_arguments(void)
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
    const char *settings[] = { "name=web", "period=never" };
    const char *not_utf8[] = { NOT_UTF8 };
    size_t lens[] = { 8, 12 }, too_long[] = { TOO_LONG }, two[] = { 2 };
    BAD(dthrottle_config_set_cluster(NULL, settings, lens, 1, NULL, 0));
    BAD(dthrottle_config_set_cluster(config, NULL, lens, 1, NULL, 0));
    BAD(dthrottle_config_set_cluster(config, settings, NULL, 1, NULL, 0));
    BAD(dthrottle_config_set_cluster(config, settings, too_long, 1, NULL, 0));
    BAD(dthrottle_config_set_cluster(config, not_utf8, two, 1, NULL, 0));
    EQUAL(dthrottle_config_set_cluster(config, settings, lens, 2, error, sizeof error),
          DTHROTTLE_ERR_CONFIG);
    MUST(strncmp(error, "`cluster.period` ", 17) == 0);

    BAD(dthrottle_config_check(NULL, NULL, 0));
    BAD(dthrottle_config_rule_count(NULL, NULL, 0));
    BAD(dthrottle_config_rule_count(config, NULL, 3));
    BAD(dthrottle_config_rule_count(config, NOT_UTF8, 2));
    EQUAL(dthrottle_config_rule_count(config, "zzz", 3), DTHROTTLE_ERR_DOMAIN);
    EQUAL(dthrottle_config_rule_count(config, NULL, 0), 0);

    BAD(dthrottle_config_set_clock(NULL, clock_));
    BAD(dthrottle_config_set_clock(config, NULL));

    /* None of these calls changed the configuration, which still has no rules. */
    dthrottle_t *free_for_all;
    dthrottle_rule_t unlimited = DTHROTTLE_RULE_INIT;
    EQUAL(dthrottle_config_check(config, NULL, 0), DTHROTTLE_ERR_CONFIG);
    EQUAL(dthrottle_open_config(config, &free_for_all, NULL, 0), DTHROTTLE_ERR_CONFIG);
    unlimited.rate = "unlimited";
    unlimited.rate_len = strlen(unlimited.rate);
    OK(dthrottle_config_add_rule(config, NULL, 0, &unlimited));
    MUST(dthrottle_open_config(config, &free_for_all, NULL, 0) == DTHROTTLE_OK);
    dthrottle_domain_t *all = domain_of(free_for_all, NULL);
    EQUAL(dthrottle_rule_count(all), 0);
    dthrottle_domain_free(all);
    dthrottle_close(free_for_all);
}

static void clock_and_status_calls_reject_invalid_arguments(void)
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
    bad_input_begin();
    open_calls_reject_invalid_arguments();
    configuration_calls_reject_invalid_arguments();
    clock_and_status_calls_reject_invalid_arguments();
    return bad_input_end("bad_config");
}
