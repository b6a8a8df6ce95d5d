/*
 * Busy throttles: busy responses lower the limit of a service, and it recovers.
 */
#include "check.h"

static dthrottle_busy_t *busy_on(const char *toml, const dthrottle_clock_t *clock)
{
    char error[256];
    dthrottle_busy_t *busy;

    if (!OK(dthrottle_busy_open(toml, strlen(toml), clock, &busy, error, sizeof error)))
        fprintf(stderr, "    %s\n", error);
    MUST(busy != NULL);
    return busy;
}

static int sent(const dthrottle_busy_t *busy, const char *service, int requests)
{
    int passed = 0;
    for (int i = 0; i < requests; i++)
        passed += dthrottle_busy_should_send(busy, service, strlen(service), NULL);
    return passed;
}

static void live_mode_cuts_the_limit_and_recovers(void)
{
    dthrottle_clock_t *clock;
    double limit = 0;
    uint64_t wait = 1;

    MUST(dthrottle_clock_new(&clock) == DTHROTTLE_OK);
    dthrottle_busy_t *busy = busy_on("", clock);
    EQUAL(sent(busy, "a", 100), 100);
    OK(dthrottle_busy_limit(busy, "a", 1, &limit));
    CHECK(limit < 0);
    OK(dthrottle_busy_on_ok(busy, "a", 1));
    OK(dthrottle_busy_on_busy(busy, "a", 1, 0));
    OK(dthrottle_busy_limit(busy, "a", 1, &limit));
    EQUAL(limit, 50);
    CHECK(sent(busy, "a", 100) < 5);
    EQUAL(sent(busy, "b", 100), 100);

    OK(dthrottle_busy_on_busy(busy, "c", 1, 2500000000));
    EQUAL(dthrottle_busy_should_send(busy, "c", 1, &wait), 0);
    EQUAL(wait, 2500000000);
    OK(dthrottle_clock_advance(clock, wait));
    EQUAL(dthrottle_busy_should_send(busy, "c", 1, &wait), 1);
    EQUAL(wait, 0);
    dthrottle_busy_close(busy);
    dthrottle_clock_free(clock);
}

static void document_mode_halves_the_limit_each_second(void)
{
    dthrottle_clock_t *clock;

    MUST(dthrottle_clock_new(&clock) == DTHROTTLE_OK);
    dthrottle_busy_t *busy = busy_on("mode = 'document'", clock);
    EQUAL(sent(busy, "b", 5000), 5000);
    for (int i = 0; i < 3000; i++)
        OK(dthrottle_busy_on_busy(busy, "b", 1, 0));
    OK(dthrottle_clock_advance(clock, 1000000000));
    EQUAL(sent(busy, "b", 5000), 38);
    dthrottle_busy_close(busy);
    dthrottle_clock_free(clock);
}

static void invalid_settings_are_errors(void)
{
    char error[256];
    dthrottle_busy_t *busy;
    const char *wrong = "mode = 'live'\nflor = 2";

    EQUAL(dthrottle_busy_open(wrong, strlen(wrong), NULL, &busy, error, sizeof error),
          DTHROTTLE_ERR_CONFIG);
    TEXT(error, "line 2: `flor` is an unknown key; did you mean `floor`?");
    CHECK(busy == NULL);
    busy = busy_on("floor = 2", NULL);
    EQUAL(sent(busy, "a", 10), 10);
    dthrottle_busy_close(busy);
}

static void calls_with_a_time_use_that_time(void)
{
    const uint64_t second = 1000000000;
    dthrottle_busy_stats_t stats = DTHROTTLE_BUSY_STATS_INIT;
    double limit = 0, rate = 0;
    uint64_t now = 0, wait = 0;
    dthrottle_clock_t *clock;

    MUST(dthrottle_clock_new(&clock) == DTHROTTLE_OK);
    dthrottle_busy_t *busy = busy_on("", clock);
    OK(dthrottle_clock_advance(clock, 7));
    OK(dthrottle_busy_now(busy, &now));
    EQUAL(now, 7);
    for (int i = 0; i < 100; i++) {
        EQUAL(dthrottle_busy_should_send_at(busy, "a", 1, 5 * second, NULL), 1);
        OK(dthrottle_busy_on_ok_at(busy, "a", 1, 5 * second));
    }
    OK(dthrottle_busy_rate_at(busy, "a", 1, 5 * second, &rate));
    EQUAL(rate, 100);
    OK(dthrottle_busy_rate(busy, "a", 1, &rate));
    OK(dthrottle_busy_on_busy_at(busy, "a", 1, 5 * second, 3 * second));
    OK(dthrottle_busy_limit_at(busy, "a", 1, 5 * second, &limit));
    EQUAL(limit, 50);
    EQUAL(dthrottle_busy_should_send_at(busy, "a", 1, 6 * second, &wait), 0);
    EQUAL(wait, 2 * second);
    EQUAL(dthrottle_busy_should_send_at(busy, "a", 1, 8 * second, &wait), 1);
    OK(dthrottle_busy_stats(busy, &stats));
    EQUAL(stats.sent, 101);
    EQUAL(stats.refused, 1);
    EQUAL(stats.good, 100);
    EQUAL(stats.busy, 1);
    EQUAL(stats.cuts, 1);
    EQUAL(stats.services, 1);
    EQUAL(stats.remote_busy + stats.forgotten + stats.peers, 0);
    OK(dthrottle_busy_forget(busy, "a", 1));
    OK(dthrottle_busy_limit_at(busy, "a", 1, 8 * second, &limit));
    CHECK(limit < 0);
    OK(dthrottle_busy_start(busy));
    dthrottle_busy_close(busy);
    dthrottle_clock_free(clock);
}

int main(void)
{
    live_mode_cuts_the_limit_and_recovers();
    calls_with_a_time_use_that_time();
    document_mode_halves_the_limit_each_second();
    invalid_settings_are_errors();
    return check_report("busy");
}
