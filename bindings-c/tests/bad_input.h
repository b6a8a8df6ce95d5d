/*
 * Valid handles and strings for the tests of invalid arguments, which combine them with invalid
 * ones.
 */
#ifndef BAD_INPUT_H
#define BAD_INPUT_H

#include "check.h"

#define TOO_LONG ((size_t)PTRDIFF_MAX + 1)

static const char RATE[] = "rate = \"1/s\"\nburst = 3\n";
static const size_t RATE_LEN = sizeof RATE - 1;
static const char NOT_UTF8[] = "\xff\xfe";

static dthrottle_t *throttle;
static dthrottle_domain_t *domain;
static dthrottle_config_t *config;
static dthrottle_clock_t *clock_;

static inline void bad_input_begin(void)
{
    MUST(dthrottle_clock_new(&clock_) == DTHROTTLE_OK);
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    throttle = open_on(RATE, clock_);
    domain = domain_of(throttle, NULL);
}

static inline int bad_input_end(const char *name)
{
    dthrottle_close(throttle);
    dthrottle_domain_free(domain);
    dthrottle_config_free(config);
    dthrottle_clock_free(clock_);
    return check_report(name);
}

#endif
