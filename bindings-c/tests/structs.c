/*
 * Structs of earlier and later versions, and buffers for error messages. The library must not write
 * beyond the size that the caller states.
 */
#include "check.h"

#define GUARD 0xA5

/* A struct of a later version of the header. */
typedef struct {
    dthrottle_decision_t known;
    uint64_t unknown[4];
} later_decision_t;

static dthrottle_domain_t *domain;

static void check_bytes(const void *at, size_t len, unsigned char byte)
{
    const unsigned char *bytes = (const unsigned char *)at;
    size_t same = 0;
    while (same < len && bytes[same] == byte)
        same++;
    EQUAL(same, len);
}

static void structs_of_a_later_version_are_accepted(void)
{
    later_decision_t later;
    memset(&later, GUARD, sizeof later);
    later.known.size = sizeof later;
    OK(dthrottle_check(domain, "larger", 6, 1, &later.known));
    EQUAL(later.known.size, sizeof later);
    CHECK(later.known.allowed);
    EQUAL(later.known.remaining, 2);
    check_bytes(later.unknown, sizeof later.unknown, GUARD);

    /* Check options of a later version. The library must not read its further fields. */
    struct {
        dthrottle_check_options_t known;
        uint64_t unknown[4];
    } options = {DTHROTTLE_CHECK_OPTIONS_INIT, {1, 2, 3, 4}};
    options.known.size = SIZE_MAX;
    options.known.cost = 2;
    OK(dthrottle_check_with(domain, "larger", 6, &options.known, &later.known));
    EQUAL(later.known.remaining, 0);

    /* Also after an error only the known fields are written. */
    memset(&later, GUARD, sizeof later);
    later.known.size = sizeof later;
    BAD(dthrottle_check(NULL, "larger", 6, 1, &later.known));
    CHECK(later.known.allowed);
    check_bytes(later.unknown, sizeof later.unknown, GUARD);
}

static void structs_of_an_earlier_version_are_accepted(dthrottle_t *throttle,
                                                       dthrottle_config_t *config)
{
    /* The first version did not have deciding. */
    const size_t before = offsetof(dthrottle_decision_t, deciding), below = before - 1;
    const size_t sizes[] = {0, 1, sizeof(size_t), below};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        dthrottle_decision_t decision;
        memset(&decision, GUARD, sizeof decision);
        decision.size = sizes[i];
        BAD(dthrottle_check(domain, "smaller", 7, 1, &decision));
        BAD(dthrottle_peek(domain, "smaller", 7, 1, &decision));
        BAD(dthrottle_check(NULL, "smaller", 7, 1, &decision));
        EQUAL(decision.size, sizes[i]);
        check_bytes((char *)&decision + sizeof(size_t), sizeof decision - sizeof(size_t), GUARD);
    }
    /* No unit was taken, because the decision could not be written. */
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    OK(dthrottle_peek(domain, "smaller", 7, 1, &decision));
    EQUAL(decision.remaining, 3);
    EQUAL(decision.deciding, 0);
    memset(&decision, GUARD, sizeof decision);
    decision.size = before;
    OK(dthrottle_peek(domain, "smaller", 7, 1, &decision));
    EQUAL(decision.remaining, 3);
    check_bytes(&decision.deciding, sizeof decision.deciding, GUARD);
    decision.size = sizeof decision;

    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    options.size = offsetof(dthrottle_check_options_t, allow_debt) - 1;
    BAD(dthrottle_check_with(domain, "smaller", 7, &options, &decision));
    CHECK(decision.allowed);
    options.size = 0;
    BAD(dthrottle_peek_with(domain, "smaller", 7, &options, &decision));

    dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;
    rule.size = sizeof rule - 1;
    BAD(dthrottle_config_add_rule(config, NULL, 0, &rule));

    dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    table.size = sizeof table - 1;
    BAD(dthrottle_config_set_table(config, &table));

    /* The first version of the statistics did not have evicted. */
    const size_t first = offsetof(dthrottle_stats_t, evicted);
    dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;
    stats.size = first - 1;
    stats.allowed = 77;
    BAD(dthrottle_stats(throttle, &stats));
    EQUAL(stats.allowed, 77);
    memset(&stats, GUARD, sizeof stats);
    stats.size = first;
    OK(dthrottle_stats(throttle, &stats));
    EQUAL(stats.size, first);
    CHECK(stats.allowed > 0 && stats.allowed < 77);
    check_bytes((char *)&stats + first, sizeof stats - first, GUARD);
    /* The second version did not have unreported. */
    const size_t second = offsetof(dthrottle_stats_t, unreported);
    memset(&stats, GUARD, sizeof stats);
    stats.size = second;
    OK(dthrottle_stats(throttle, &stats));
    EQUAL(stats.evicted, 0);
    check_bytes(&stats.unreported, sizeof stats.unreported, GUARD);
    stats.size = sizeof stats;
    OK(dthrottle_stats(throttle, &stats));
    EQUAL(stats.unreported, 0);
}

static void cluster_structs_of_an_earlier_version_are_accepted(const dthrottle_t *throttle)
{
    dthrottle_cluster_stats_t stats = DTHROTTLE_CLUSTER_STATS_INIT;
    stats.size = sizeof stats - 1;
    stats.pid = 77;
    BAD(dthrottle_cluster_stats(throttle, &stats));
    EQUAL(stats.pid, 77);
    dthrottle_peer_t peer = DTHROTTLE_PEER_INIT;
    peer.size = sizeof peer - 1;
    BAD(dthrottle_cluster_peer(throttle, 0, &peer));
    dthrottle_event_t event = DTHROTTLE_EVENT_INIT;
    size_t count = 77;
    event.size = sizeof event - 1;
    BAD(dthrottle_events(throttle, 0, &event, 1, &count));
    EQUAL(count, 0);
}

static void check_options_without_allow_debt_are_accepted(void)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    options.cost = 99;
    options.allow_debt = 1;
    OK(dthrottle_check_with(domain, "debt", 4, &options, &decision));
    EQUAL(decision.granted, 99);
    CHECK(decision.balance < 0);
    options.size = offsetof(dthrottle_check_options_t, allow_debt);
    EQUAL(dthrottle_check_with(domain, "first", 5, &options, &decision), DTHROTTLE_ERR_COST);
}

static void a_bool_other_than_0_and_1_is_true(void)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    memset(&options.partial, 0x55, 1);
    options.cost = 99;
    OK(dthrottle_check_with(domain, "odd", 3, &options, &decision));
    EQUAL(decision.granted, 3);
}

static void init_macros_set_the_defaults(void)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    EQUAL(decision.size, sizeof decision);
    CHECK(decision.allowed && !decision.dry_run && decision.rule == -1);

    /* Same as dthrottle_check() with a cost of 1. */
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    dthrottle_decision_t other = DTHROTTLE_DECISION_INIT;
    OK(dthrottle_check_with(domain, "init a", 6, &options, &decision));
    OK(dthrottle_check(domain, "init b", 6, 1, &other));
    EQUAL(decision.granted, other.granted);
    EQUAL(decision.remaining, other.remaining);
    EQUAL(decision.delay_ns, other.delay_ns);
}

static void error_messages_are_cut_to_the_buffer(void)
{
    /* The message quotes the text, whose characters take two bytes each. */
    const char *toml = "rate = \"\xc3\xa9\xc3\xa9\xc3\xa9\"";
    char whole[512], cut[512];
    dthrottle_t *out;

    EQUAL(dthrottle_open(toml, strlen(toml), &out, whole, sizeof whole), DTHROTTLE_ERR_CONFIG);
    const size_t len = strlen(whole);
    MUST(len > 40 && len < sizeof whole - 1);
    CHECK(strstr(whole, "line 1: `rate` ") == whole);
    for (size_t size = 0; size <= len + 2; size++) {
        memset(cut, GUARD, sizeof cut);
        EQUAL(dthrottle_open(toml, strlen(toml), &out, cut, size), DTHROTTLE_ERR_CONFIG);
        check_bytes(cut + size, sizeof cut - size, GUARD);
        if (size == 0)
            continue;
        const size_t cut_len = strlen(cut);
        const size_t want = size - 1 < len ? size - 1 : len;
        CHECK(strncmp(cut, whole, cut_len) == 0);
        /* One byte less if a character would be cut. */
        CHECK(cut_len == want || (cut_len + 1 == want && (whole[cut_len] & 0xC0) == 0xC0));
        CHECK((whole[cut_len] & 0xC0) != 0x80);
    }
    OK(dthrottle_open("rate = 1", 8, &out, cut, 1));
    TEXT(cut, "");
    dthrottle_close(out);
}

int main(void)
{
    dthrottle_clock_t *manual;
    dthrottle_config_t *config;
    MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    dthrottle_t *throttle = open_on("rate = 1\nburst = 3", manual);
    domain = domain_of(throttle, NULL);
    structs_of_a_later_version_are_accepted();
    structs_of_an_earlier_version_are_accepted(throttle, config);
    cluster_structs_of_an_earlier_version_are_accepted(throttle);
    check_options_without_allow_debt_are_accepted();
    a_bool_other_than_0_and_1_is_true();
    init_macros_set_the_defaults();
    error_messages_are_cut_to_the_buffer();
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    dthrottle_config_free(config);
    dthrottle_clock_free(manual);
    return check_report("structs");
}
