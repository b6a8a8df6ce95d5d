/*
 * Delays instead of refusals: with max_delay_ns, a check takes its units at once and returns how
 * long to wait, so that the callers are spaced. A caller that does not wait refunds its units.
 * With partial, a batch takes the units that there are.
 *
 * The clock is manual, so that the example takes no time. A real program sleeps.
 */
#include <dthrottle.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)

static void must(int32_t status)
{
    if (status != DTHROTTLE_OK) {
        fprintf(stderr, "dthrottle: %s\n", dthrottle_status_text(status));
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    const char *toml = "rate = \"10/s\"\nburst = 2\n";
    const char *tag = "mail";
    const size_t tag_len = strlen(tag);
    dthrottle_clock_t *clock;
    dthrottle_config_t *config;
    dthrottle_t *throttle;
    dthrottle_domain_t *domain;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;

    must(dthrottle_clock_new(&clock));
    must(dthrottle_config_new(&config));
    must(dthrottle_config_toml(config, toml, strlen(toml), NULL, 0));
    must(dthrottle_config_set_clock(config, clock));
    must(dthrottle_open_config(config, &throttle, NULL, 0));
    must(dthrottle_domain(throttle, NULL, 0, &domain));

    /* Five workers at the same time. Each waits at most a quarter of a second. */
    dthrottle_check_options_t with_delay = DTHROTTLE_CHECK_OPTIONS_INIT;
    with_delay.max_delay_ns = 250 * MS;
    for (int worker = 1; worker <= 5; worker++) {
        must(dthrottle_check_with(domain, tag, tag_len, &with_delay, &decision));
        if (decision.allowed)
            printf("worker %d: proceed after %" PRIu64 " ms\n", worker, decision.delay_ns / MS);
        else
            printf("worker %d: retry in %" PRIu64 " ms\n", worker,
                   decision.retry_after_ns / MS);
    }

    /* The last worker does not wait, and refunds its unit. */
    must(dthrottle_refund(domain, tag, tag_len, 1));
    must(dthrottle_check_with(domain, tag, tag_len, &with_delay, &decision));
    printf("worker 6: proceed after %" PRIu64 " ms\n", decision.delay_ns / MS);

    /* Later, a batch of 50 takes the units that there are. */
    must(dthrottle_clock_advance(clock, 1000 * MS));
    dthrottle_check_options_t batch = DTHROTTLE_CHECK_OPTIONS_INIT;
    batch.cost = 50;
    batch.partial = true;
    must(dthrottle_check_with(domain, tag, tag_len, &batch, &decision));
    printf("batch: %" PRIu64 " of %" PRIu64 "\n", decision.granted, batch.cost);

    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    dthrottle_config_free(config);
    dthrottle_clock_free(clock);
    return EXIT_SUCCESS;
}

/* prints:
worker 1: proceed after 0 ms
worker 2: proceed after 0 ms
worker 3: proceed after 100 ms
worker 4: proceed after 200 ms
worker 5: retry in 300 ms
worker 6: proceed after 200 ms
batch: 2 of 50
*/
