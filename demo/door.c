/* The questions of the demonstration, asked in C. */
#include <dthrottle.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    const char *rule = "rate = \"5/s\"\nburst = 8\n";
    char error[256];
    dthrottle_clock_t *clock = NULL;
    dthrottle_config_t *config = NULL;
    dthrottle_t *throttle = NULL;
    dthrottle_domain_t *domain = NULL;
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    int second, i;

    dthrottle_clock_new(&clock);
    dthrottle_config_new(&config);
    dthrottle_config_toml(config, rule, strlen(rule), error, sizeof error);
    dthrottle_config_set_clock(config, clock);
    if (dthrottle_open_config(config, &throttle, error, sizeof error) != DTHROTTLE_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    dthrottle_domain(throttle, NULL, 0, &domain);

    for (second = 0; second < 3; second++) {
        for (i = 0; i < 10; i++)
            putchar(dthrottle_allow(domain, "alice", 5, 1) == 1 ? '+' : '-');
        putchar(' ');
        dthrottle_clock_advance(clock, 1000000000u);
    }
    dthrottle_check(domain, "alice", 5, 1, &decision);
    printf("%llu\n", (unsigned long long)decision.remaining);

    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    dthrottle_config_free(config);
    dthrottle_clock_free(clock);
    return 0;
}
