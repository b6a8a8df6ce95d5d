/*
 * Busy answers: a client that is told busy sends less, and comes back.
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

static void test_live(void)
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

static void test_document(void)
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

static void test_settings(void)
{
    char error[256];
    dthrottle_busy_t *busy;
    const char *wrong = "mode = 'live'\nflor = 2";

    EQUAL(dthrottle_busy_open(wrong, strlen(wrong), NULL, &busy, error, sizeof error),
          DTHROTTLE_ERR_CONFIG);
    TEXT(error, "line 2: flor: unknown key; did you mean floor?");
    CHECK(busy == NULL);
    busy = busy_on("floor = 2", NULL);
    EQUAL(sent(busy, "a", 10), 10);
    dthrottle_busy_close(busy);
}

int main(void)
{
    test_live();
    test_document();
    test_settings();
    return check_report("busy");
}
