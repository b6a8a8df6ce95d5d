/*
 * How to test code that throttles: give it a clock that is moved by hand, and no test has to wait.
 */
#include <dthrottle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* The code under test: may this user be sent another reminder? */
static bool may_remind(const dthrottle_domain_t *reminders, const char *user)
{
    /* Not zero also after an error: then rather once too often than never. */
    return dthrottle_allow(reminders, user, strlen(user), 1) != 0;
}

static int failures;

static void expect(bool right, const char *what)
{
    printf("%s: %s\n", right ? "ok" : "FAILED", what);
    failures += !right;
}

int main(void)
{
    const char *toml = "[domains.reminders]\nrate = \"1/day\"\n";
    dthrottle_clock_t *clock = NULL;
    dthrottle_config_t *config = NULL;
    dthrottle_t *throttle = NULL;
    dthrottle_domain_t *reminders = NULL;

    if (dthrottle_clock_new(&clock) || dthrottle_config_new(&config) ||
        dthrottle_config_toml(config, toml, strlen(toml), NULL, 0) ||
        dthrottle_config_set_clock(config, clock) ||
        dthrottle_open_config(config, &throttle, NULL, 0) ||
        dthrottle_domain(throttle, "reminders", strlen("reminders"), &reminders)) {
        fprintf(stderr, "the throttle does not open\n");
        return EXIT_FAILURE;
    }

    expect(may_remind(reminders, "alice"), "the first reminder is sent");
    expect(!may_remind(reminders, "alice"), "the second is not");
    dthrottle_clock_advance(clock, 24 * 3600 * SECOND - 1);
    expect(!may_remind(reminders, "alice"), "nor a nanosecond before the day is over");
    dthrottle_clock_advance(clock, 1);
    expect(may_remind(reminders, "alice"), "after a day it is");
    expect(!may_remind(reminders, "alice"), "and then not again");
    dthrottle_reset(reminders, "alice", strlen("alice"));
    expect(may_remind(reminders, "alice"), "unless someone resets it");

    /* Any order will do. */
    dthrottle_close(throttle);
    dthrottle_clock_free(clock);
    dthrottle_config_free(config);
    dthrottle_domain_free(reminders);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* prints:
ok: the first reminder is sent
ok: the second is not
ok: nor a nanosecond before the day is over
ok: after a day it is
ok: and then not again
ok: unless someone resets it
*/
