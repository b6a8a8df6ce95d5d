/*
 * Invalid arguments of the calls about tags and domains, and of those that inspect tables: NULL
 * for each pointer, impossible lengths, text that is not UTF-8. Each must return an error without
 * a crash, and leave an allowed decision. bad_config.c, bad_network.c and bad_web.c test the other
 * exports.
 */
#include "bad_input.h"

/* A refused decision, which a failed call must overwrite. */
static dthrottle_decision_t refused(void)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    decision.allowed = false;
    decision.rule = 5;
    decision.retry_after_ns = 99;
    return decision;
}

static void check_allowed_without_figures(const dthrottle_decision_t *decision, uint64_t granted)
{
    EQUAL(decision->size, sizeof *decision);
    CHECK(decision->allowed && !decision->dry_run);
    EQUAL(decision->rule, -1);
    EQUAL(decision->granted, granted);
    CHECK(decision->limit == DTHROTTLE_UNLIMITED && decision->remaining == DTHROTTLE_UNLIMITED);
    EQUAL(decision->balance, INT64_MAX);
    CHECK(!decision->delay_ns && !decision->retry_after_ns && !decision->reset_after_ns);
    EQUAL(decision->deciding, -1);
}

static void domain_calls_reject_invalid_arguments(void)
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

/* Calls check, check_with, peek or peek_with, which must fail and leave an allowed decision. */
static void check_fails_open(int call, const dthrottle_domain_t *of, const void *tag, size_t len,
                           uint64_t cost, int32_t status)
{
    dthrottle_decision_t decision = refused();
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    int32_t got = 0;

    options.cost = cost;
    switch (call) {
    case 0: got = dthrottle_check(of, tag, len, cost, &decision); break;
    case 1: got = dthrottle_check_with(of, tag, len, &options, &decision); break;
    case 2: got = dthrottle_peek(of, tag, len, cost, &decision); break;
    case 3: got = dthrottle_peek_with(of, tag, len, &options, &decision); break;
    }
    EQUAL(got, status);
    check_allowed_without_figures(&decision, cost);
}

static void checks_reject_invalid_arguments(void)
{
    dthrottle_decision_t decision = refused();
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;

    for (int call = 0; call < 4; call++) {
        check_fails_open(call, NULL, "t", 1, 2, DTHROTTLE_ERR_ARGUMENT);
        check_fails_open(call, domain, NULL, 1, 2, DTHROTTLE_ERR_ARGUMENT);
        check_fails_open(call, domain, "t", TOO_LONG, 2, DTHROTTLE_ERR_ARGUMENT);
        check_fails_open(call, domain, "t", SIZE_MAX, 2, DTHROTTLE_ERR_ARGUMENT);
        check_fails_open(call, domain, "t", 1, 4, DTHROTTLE_ERR_COST);
        check_fails_open(call, domain, "t", 1, UINT64_MAX, DTHROTTLE_ERR_COST);
    }
    BAD(dthrottle_check(domain, "t", 1, 1, NULL));
    BAD(dthrottle_check(NULL, NULL, 1, 1, NULL));
    BAD(dthrottle_check_with(domain, "t", 1, &options, NULL));
    BAD(dthrottle_check_with(domain, "t", 1, NULL, &decision));
    check_allowed_without_figures(&decision, 0);
    BAD(dthrottle_peek(domain, "t", 1, 1, NULL));
    BAD(dthrottle_peek_with(domain, "t", 1, &options, NULL));
    decision = refused();
    BAD(dthrottle_peek_with(domain, "t", 1, NULL, &decision));
    check_allowed_without_figures(&decision, 0);

    /* None of these calls took a unit. */
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

    char text[8] = "unset";
    BAD(dthrottle_earlier_process_warning(NULL, "t", 1, text, sizeof text));
    BAD(dthrottle_earlier_process_warning(domain, NULL, 1, text, sizeof text));
    BAD(dthrottle_earlier_process_warning(domain, "t", TOO_LONG, text, sizeof text));
    EQUAL(dthrottle_earlier_process_warning(domain, "t", 1, NULL, 0), 0);
    EQUAL(dthrottle_earlier_process_warning(domain, "t", 1, text, sizeof text), 0);
    TEXT(text, "");

    BAD(dthrottle_reset(NULL, "t", 1));
    BAD(dthrottle_reset(domain, NULL, 1));
    BAD(dthrottle_reset(domain, "t", TOO_LONG));
    OK(dthrottle_reset(domain, "t", 1));

    BAD(dthrottle_charge_local(NULL, "t", 1, 1, 0));
    BAD(dthrottle_charge_local(domain, NULL, 1, 1, 0));
    BAD(dthrottle_charge_local(domain, "t", TOO_LONG, 1, 0));
    OK(dthrottle_charge_local(domain, "t", 1, UINT64_MAX, UINT64_MAX));

    BAD(dthrottle_charge(NULL, "t", 1, 1, NULL));
    BAD(dthrottle_charge(domain, NULL, 1, 1, NULL));
    BAD(dthrottle_charge(domain, "t", TOO_LONG, 1, NULL));
    OK(dthrottle_charge(domain, "t", 1, UINT64_MAX, NULL));
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 0);
}

static void allow_many_with_an_invalid_pointer_takes_no_units(void)
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

static void tags_may_be_any_bytes_and_null_without_length_is_empty(void)
{
    EQUAL(dthrottle_allow(domain, "", 0, 3), 1);
    EQUAL(dthrottle_allow(domain, NULL, 0, 1), 0);
    EQUAL(dthrottle_allow(domain, "a\0b", 3, 3), 1);
    EQUAL(dthrottle_allow(domain, "a\0c", 3, 3), 1);
    EQUAL(dthrottle_allow(domain, "a\0b", 3, 1), 0);
    EQUAL(dthrottle_allow(domain, NOT_UTF8, 2, 3), 1);
    EQUAL(dthrottle_allow(domain, NOT_UTF8, 2, 1), 0);
}

static void inspection_calls_reject_invalid_arguments(void)
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

int main(void)
{
    bad_input_begin();
    domain_calls_reject_invalid_arguments();
    checks_reject_invalid_arguments();
    allow_many_with_an_invalid_pointer_takes_no_units();
    tags_may_be_any_bytes_and_null_without_length_is_empty();
    inspection_calls_reject_invalid_arguments();
    return bad_input_end("bad_calls");
}
