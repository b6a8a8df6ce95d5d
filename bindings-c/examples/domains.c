/*
 * Domains: a set of rules for each part of a service, built up by calls instead of TOML. A check
 * passes when it passes under every rule of its domain; the decision names the rule that refused.
 */
#include <dthrottle.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For a program that cannot go on without its throttle. */
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

static void ask(const dthrottle_domain_t *domain, const char *tag, uint64_t cost)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    must(dthrottle_check(domain, tag, strlen(tag), cost, &decision));
    printf("%s, %s, cost %" PRIu64 ": ", dthrottle_domain_name(domain), tag, cost);
    if (decision.dry_run)
        printf("allowed, but only for now: %s would refuse\n",
               dthrottle_rule_name(domain, decision.rule));
    else if (decision.allowed)
        printf("allowed\n");
    else
        printf("refused by %s, which holds %" PRIu64 "\n",
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
    /* No more than 2 in a row, and no more than 5 in a day. */
    add_rule(config, "login", "in a row", "2/hour", 0);
    add_rule(config, "login", "daily", "5/day", 0);
    /* A rule on trial: it is counted and told, but refuses nobody. */
    add_rule(config, "api", "hourly", "100/hour", 10);
    must(dthrottle_config_set_dry_run(config, "api", strlen("api"), true));

    /* Here a bad rate would be told, with its place and what would be right. */
    if (dthrottle_open_config(config, &throttle, error, sizeof error) != DTHROTTLE_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    dthrottle_config_free(config);
    must(dthrottle_domain(throttle, "login", strlen("login"), &login));
    must(dthrottle_domain(throttle, "api", strlen("api"), &api));

    for (int i = 0; i < 3; i++)
        ask(login, "alice", 1);
    ask(login, "bob", 1);
    ask(api, "alice", 10);
    ask(api, "alice", 4);

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
login, alice, cost 1: refused by in a row, which holds 2
login, bob, cost 1: allowed
api, alice, cost 10: allowed
api, alice, cost 4: allowed, but only for now: hourly would refuse
allowed 5, of these 1 by dry run; refused 1
*/
