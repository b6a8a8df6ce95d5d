/*
 * Threads that check one tag admit exactly its burst, also while other threads make and release
 * handles, and while the throttle is closed.
 */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 4
#define BURST 1000

static dthrottle_t *throttle;
static dthrottle_domain_t *domain;
static dthrottle_config_t *config;
static atomic_int admitted, refused, closed, wrong;

/* Each thread checks more often than the burst allows. */
static void *check_tag_repeatedly(void *unused)
{
    (void)unused;
    for (int i = 0; i < BURST; i++) {
        dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
        if (i % 2)
            decision.allowed = dthrottle_allow(domain, "t", 1, 1) == 1;
        else if (dthrottle_check(domain, "t", 1, 1, &decision) != DTHROTTLE_OK)
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(decision.allowed ? &admitted : &refused, 1);
    }
    return NULL;
}

static void *make_handles(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        dthrottle_domain_t *own = NULL;
        dthrottle_t *other = NULL;
        dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;
        dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;
        int32_t bad = dthrottle_domain(throttle, NULL, 0, &own);
        rule.rate = "1/s";
        rule.rate_len = 3;
        bad |= dthrottle_allow(own, "u", 1, 0) < 0;
        bad |= dthrottle_config_set_dry_run(config, NULL, 0, i % 2);
        bad |= dthrottle_config_toml(config, "rate = 1", 8, NULL, 0);
        bad |= dthrottle_config_add_rule(config, "d", 1, &rule);
        /* Another thread may replace the TOML, so each thread has added at most one rule. */
        bad |= dthrottle_open_config(config, &other, NULL, 0);
        bad |= dthrottle_stats(throttle, &stats);
        dthrottle_close(other);
        dthrottle_domain_free(own);
        if (bad)
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static void *check_until_closed(void *unused)
{
    (void)unused;
    int32_t answer;
    while ((answer = dthrottle_allow(domain, "v", 1, 1)) >= 0)
        ;
    atomic_fetch_add(answer == DTHROTTLE_ERR_CLOSED ? &closed : &wrong, 1);
    return NULL;
}

static void run(void *(*first)(void *), void *(*rest)(void *), int close_meanwhile)
{
    pthread_t threads[2 * THREADS];
    for (int i = 0; i < 2 * THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, i < THREADS ? first : rest, NULL) == 0);
    if (close_meanwhile)
        dthrottle_close(throttle);
    for (int i = 0; i < 2 * THREADS; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    throttle = open_on("rate = \"1/year\"\nburst = 1000", NULL);
    domain = domain_of(throttle, NULL);
    run(check_tag_repeatedly, make_handles, 0);
    EQUAL(admitted, BURST);
    EQUAL(refused, (THREADS - 1) * BURST);

    dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;
    OK(dthrottle_stats(throttle, &stats));
    EQUAL(stats.refused, (THREADS - 1) * BURST);

    run(check_until_closed, check_until_closed, 1);
    EQUAL(closed, 2 * THREADS);
    EQUAL(wrong, 0);
    dthrottle_domain_free(domain);
    dthrottle_config_free(config);
    return check_report("threads");
}
