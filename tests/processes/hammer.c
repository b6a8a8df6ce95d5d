/*
 * Like hammer.py: hammer FOLDER TAGS CHECKS.
 */
#include <dthrottle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passes(const dthrottle_domain_t *domain, const char *name, size_t len, int check)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    if (check % 2)
        return dthrottle_allow(domain, name, len, 1) == 1;
    return dthrottle_check(domain, name, len, 1, &decision) == DTHROTTLE_OK && decision.allowed;
}

static void run_round(const dthrottle_domain_t *domain, const char *round, int tags, int checks)
{
    char name[128];
    int *passed = calloc((size_t)tags, sizeof *passed);
    if (!passed)
        exit(EXIT_FAILURE);
    for (int check = 0; check < checks; check++) {
        for (int tag = 0; tag < tags; tag++) {
            int len = snprintf(name, sizeof name, "%s %d", round, tag);
            passed[tag] += passes(domain, name, (size_t)len, check);
        }
    }
    for (int tag = 0; tag < tags; tag++)
        printf("%d ", passed[tag]);
    puts("");
    fflush(stdout);
    free(passed);
}

int main(int argc, char **argv)
{
    char line[64], toml[1024], error[256];
    dthrottle_t *throttle;
    dthrottle_domain_t *domain;
    if (argc != 4)
        return EXIT_FAILURE;
    int len = snprintf(toml, sizeof toml,
                       "rate = '1 per 100 years'\nburst = 1000\n"
                       "table = { name = 'hammer', dir = '%s', size = 1000 }\n",
                       argv[1]);
    if (dthrottle_open(toml, (size_t)len, &throttle, error, sizeof error) != DTHROTTLE_OK ||
        dthrottle_domain(throttle, NULL, 0, &domain) != DTHROTTLE_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        run_round(domain, line, atoi(argv[2]), atoi(argv[3]));
    }
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    return EXIT_SUCCESS;
}
