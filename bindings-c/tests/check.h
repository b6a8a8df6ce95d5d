/*
 * Macros for the test programs. A failed check is printed and counted, and the program continues.
 * The exit status of the program says whether a check failed.
 */
#ifndef CHECK_H
#define CHECK_H

#include <dthrottle.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks_passed, checks_failed;
/* The current case, for the messages of failed checks. */
static const char *check_context = "";

static inline int check_that(int right, const char *file, int line, const char *test,
                             const char *what)
{
    if (right) {
        checks_passed++;
    } else {
        checks_failed++;
        fprintf(stderr, "%s:%d: %s: %s must be true [%s]\n", file, line, test, what, check_context);
    }
    return right;
}

static inline int check_equal(int64_t got, int64_t want, const char *file, int line,
                              const char *test, const char *what)
{
    int right = check_that(got == want, file, line, test, what);
    if (!right)
        fprintf(stderr, "    got %" PRId64 ", expected %" PRId64 "\n", got, want);
    return right;
}

static inline int check_text(const char *got, const char *want, const char *file, int line,
                             const char *test, const char *what)
{
    int right = check_that(got && strcmp(got, want) == 0, file, line, test, what);
    if (!right)
        fprintf(stderr, "    got \"%s\", expected \"%s\"\n", got ? got : "(NULL)", want);
    return right;
}

#define CHECK(condition) check_that((condition) != 0, __FILE__, __LINE__, __func__, #condition)
#define EQUAL(got, want) \
    check_equal((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, __func__, #got " == " #want)
#define TEXT(got, want) check_text((got), (want), __FILE__, __LINE__, __func__, #got " == " #want)
#define OK(call) EQUAL(call, DTHROTTLE_OK)
#define BAD(call) EQUAL(call, DTHROTTLE_ERR_ARGUMENT)

/* Like CHECK, and ends the program after a failure. */
#define MUST(condition) \
    do { \
        if (!CHECK(condition)) \
            exit(EXIT_FAILURE); \
    } while (0)

static inline int check_report(const char *name)
{
    printf("%s: %d passed, %d failed\n", name, checks_passed, checks_failed);
    return checks_failed == 0 && checks_passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Opens a throttle with a configuration in TOML and, unless it is NULL, a manual clock. */
static inline dthrottle_t *open_on(const char *toml, const dthrottle_clock_t *clock)
{
    char error[256];
    dthrottle_config_t *config;
    dthrottle_t *throttle;

    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    if (!OK(dthrottle_config_toml(config, toml, strlen(toml), error, sizeof error)))
        fprintf(stderr, "    %s\n", error);
    if (clock)
        OK(dthrottle_config_set_clock(config, clock));
    MUST(dthrottle_open_config(config, &throttle, error, sizeof error) == DTHROTTLE_OK);
    dthrottle_config_free(config);
    return throttle;
}

static inline dthrottle_domain_t *domain_of(const dthrottle_t *throttle, const char *name)
{
    dthrottle_domain_t *domain;
    MUST(dthrottle_domain(throttle, name, name ? strlen(name) : 0, &domain) == DTHROTTLE_OK);
    return domain;
}

#endif
