/*
 * The few macros that the test programs are made of. A check that fails is printed and counted; the
 * program goes on, and its status tells.
 */
#ifndef CHECK_H
#define CHECK_H

#include <dthrottle.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checks_passed, checks_failed;
/* What is being tested, for the message. */
static const char *check_about = "";

static inline int check_that(int right, const char *file, int line, const char *what)
{
    if (right) {
        checks_passed++;
    } else {
        checks_failed++;
        fprintf(stderr, "%s:%d: %s [%s]\n", file, line, what, check_about);
    }
    return right;
}

static inline int check_equal(int64_t got, int64_t want, const char *file, int line,
                              const char *what)
{
    int right = check_that(got == want, file, line, what);
    if (!right)
        fprintf(stderr, "    got %" PRId64 ", not %" PRId64 "\n", got, want);
    return right;
}

static inline int check_text(const char *got, const char *want, const char *file, int line,
                             const char *what)
{
    int right = check_that(got && strcmp(got, want) == 0, file, line, what);
    if (!right)
        fprintf(stderr, "    got \"%s\", not \"%s\"\n", got ? got : "(NULL)", want);
    return right;
}

#define CHECK(condition) check_that((condition) != 0, __FILE__, __LINE__, #condition)
#define EQUAL(got, want) \
    check_equal((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, #got " == " #want)
#define TEXT(got, want) check_text((got), (want), __FILE__, __LINE__, #got)
#define OK(call) EQUAL(call, DTHROTTLE_OK)
#define BAD(call) EQUAL(call, DTHROTTLE_ERR_ARGUMENT)

/* Stops a test program that cannot go on. */
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

/* A throttle of a configuration, on a clock if one is given. */
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
