/*
 * The smallest program: one rate for all clients, and a decision for each request.
 *
 *     cc quickstart.c $(pkg-config --cflags --libs dthrottle) -o quickstart && ./quickstart
 */
#include <dthrottle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void serve(const dthrottle_domain_t *domain, const char *client)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;

    /* The status need not be checked, because the decision is allowed after an error. */
    dthrottle_check(domain, client, strlen(client), 1, &decision);
    if (decision.allowed) {
        printf("%s: 200, %u left\n", client, (unsigned)decision.remaining);
    } else {
        /* Rounded up, because a client that returns a moment too early is refused again. */
        unsigned seconds = (unsigned)((decision.retry_after_ns + 999999999) / 1000000000);
        printf("%s: 429, retry after %u s\n", client, seconds);
    }
}

int main(void)
{
    /* Three requests at once, then one every 20 seconds. */
    const char *config = "rate = \"3 per minute\"\n";
    char error[256];
    dthrottle_t *throttle;
    dthrottle_domain_t *domain;

    if (dthrottle_open(config, strlen(config), &throttle, error, sizeof error) != DTHROTTLE_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    /* Look up the domain once, and keep the handle. NULL is the default domain. */
    if (dthrottle_domain(throttle, NULL, 0, &domain) != DTHROTTLE_OK) {
        dthrottle_close(throttle);
        return EXIT_FAILURE;
    }

    for (int request = 0; request < 4; request++)
        serve(domain, "203.0.113.7");
    serve(domain, "198.51.100.1");

    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    return EXIT_SUCCESS;
}

/* prints:
203.0.113.7: 200, 2 left
203.0.113.7: 200, 1 left
203.0.113.7: 200, 0 left
203.0.113.7: 429, retry after 20 s
198.51.100.1: 200, 2 left
*/
