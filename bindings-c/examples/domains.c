/*
 * Domains: a set of rules for each part of a service, made by calls instead of TOML. A check is
 * allowed if every rule of its domain allows it. Otherwise the decision has the rule that refused
 * it.
 */
#include <dthrottle.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program after an error. */
static void must(int32_t status)
{
    if (status != DTHROTTLE_OK) {
        fprintf(stderr, "dthrottle: %s\n", dthrottle_status_text(status));
        exit(EXIT_FAILURE);
    }
}

static void add_rule(dthrottle_config_t *config, const char *domain, const char *name,
                     const char *rate, uint64_t burst)
{
    dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;
    rule.name = name;
    rule.name_len = strlen(name);
    rule.rate = rate;
    rule.rate_len = strlen(rate);
    rule.burst = burst;
    must(dthrottle_config_add_rule(config, domain, strlen(domain), &rule));
}

static void check(const dthrottle_domain_t *domain, const char *tag, uint64_t cost)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    must(dthrottle_check(domain, tag, strlen(tag), cost, &decision));
    printf("%s, %s, cost %" PRIu64 ": ", dthrottle_domain_name(domain), tag, cost);
    if (decision.dry_run)
        printf("allowed by dry run, refused by %s\n",
               dthrottle_rule_name(domain, decision.rule));
    else if (decision.allowed)
        printf("allowed\n");
    else
        printf("refused by %s, whose burst is %" PRIu64 "\n",
               dthrottle_rule_name(domain, decision.rule),
               dthrottle_rule_limit(domain, decision.rule));
}

int main(void)
{
    dthrottle_config_t *config;
    dthrottle_t *throttle;
    dthrottle_domain_t *login, *api;
    char error[256];

    must(dthrottle_config_new(&config));
    /* At most 2 at once, and at most 5 per day. */
    add_rule(config, "login", "in a row", "2/hour", 0);
    add_rule(config, "login", "daily", "5/day", 0);
    /* Dry run: refusals are counted and shown, but every check is allowed. */
    add_rule(config, "api", "hourly", "100/hour", 10);
    must(dthrottle_config_set_dry_run(config, "api", strlen("api"), true));

    /* This call reports an invalid rate: its path, and what would be right. */
    if (dthrottle_open_config(config, &throttle, error, sizeof error) != DTHROTTLE_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    dthrottle_config_free(config);
    must(dthrottle_domain(throttle, "login", strlen("login"), &login));
    must(dthrottle_domain(throttle, "api", strlen("api"), &api));

    for (int i = 0; i < 3; i++)
        check(login, "alice", 1);
    check(login, "bob", 1);
    check(api, "alice", 10);
    check(api, "alice", 4);

    dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;
    must(dthrottle_stats(throttle, &stats));
    printf("allowed %" PRIu64 ", of these %" PRIu64 " by dry run; refused %" PRIu64 "\n",
           stats.allowed, stats.dry_run, stats.refused);

    dthrottle_domain_free(login);
    dthrottle_domain_free(api);
    dthrottle_close(throttle);
    return EXIT_SUCCESS;
}

/* prints:
login, alice, cost 1: allowed
login, alice, cost 1: allowed
login, alice, cost 1: refused by in a row, whose burst is 2
login, bob, cost 1: allowed
api, alice, cost 10: allowed
api, alice, cost 4: allowed by dry run, refused by hourly
allowed 5, of these 1 by dry run; refused 1
*/
