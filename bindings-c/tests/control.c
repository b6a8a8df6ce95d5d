/*
 * Makes a mistake on purpose, to test that valgrind and AddressSanitizer would find it in the other
 * programs.  control none | leak | overflow
 */
#include "check.h"

int main(int argc, char **argv)
{
    MUST(argc == 2);
    dthrottle_t *throttle = open_on("rate = 1", NULL);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    OK(dthrottle_check(domain, "t", 1, 1, &decision));
    if (strcmp(argv[1], "overflow") == 0) {
        /* The buffer is smaller than the size that is passed. */
        dthrottle_t *none;
        char *error = (char *)malloc(8);
        MUST(error != NULL);
        EQUAL(dthrottle_open("x", 1, &none, error, 12), DTHROTTLE_ERR_CONFIG);
        free(error);
    }
    dthrottle_domain_free(domain);
    if (strcmp(argv[1], "leak") != 0)
        dthrottle_close(throttle);
    throttle = NULL;
    return checks_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
