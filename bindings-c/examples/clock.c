/*
 * How to test code that uses dthrottle: with a manual clock, no test has to wait.
 */
#include <dthrottle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

/* The code under test: returns whether the user may be sent another reminder. */
static bool may_remind(const dthrottle_domain_t *reminders, const char *user)
{
    /* Also true after an error: one reminder too many is better than none. */
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
        fprintf(stderr, "the throttle cannot be opened\n");
        return EXIT_FAILURE;
    }

    expect(may_remind(reminders, "alice"), "the first reminder is sent");
    expect(!may_remind(reminders, "alice"), "the second reminder is not sent at once");
    dthrottle_clock_advance(clock, 24 * 3600 * SECOND - 1);
    expect(!may_remind(reminders, "alice"), "no reminder is sent one nanosecond before the day is over");
    dthrottle_clock_advance(clock, 1);
    expect(may_remind(reminders, "alice"), "a reminder is sent after one day");
    expect(!may_remind(reminders, "alice"), "no further reminder is sent on that day");
    dthrottle_reset(reminders, "alice", strlen("alice"));
    expect(may_remind(reminders, "alice"), "a reminder is sent after dthrottle_reset()");

    /* Handles may be released in any order. */
    dthrottle_close(throttle);
    dthrottle_clock_free(clock);
    dthrottle_config_free(config);
    dthrottle_domain_free(reminders);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* prints:
ok: the first reminder is sent
ok: the second reminder is not sent at once
ok: no reminder is sent one nanosecond before the day is over
ok: a reminder is sent after one day
ok: no further reminder is sent on that day
ok: a reminder is sent after dthrottle_reset()
*/
