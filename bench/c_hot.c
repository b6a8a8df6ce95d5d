/*
 * Prints the nanoseconds of one dthrottle_allow() in C for one tag: the median of seven rounds of a
 * million calls, or of ten thousand calls if BENCH_SMALL is set. This includes the loop and the test
 * of the result.
 */
#define _POSIX_C_SOURCE 200809L

#include <dthrottle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 7

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int order(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Returns nanoseconds per call. Exits if a call is refused, because that is another code path. */
static double round_ns(const dthrottle_domain_t *domain, const char *tag, size_t len, int calls)
{
    int admitted = 0;
    double start = now_ns();
    for (int i = 0; i < calls; i++)
        admitted += dthrottle_allow(domain, tag, len, 1) == 1;
    double time = now_ns() - start;
    if (admitted != calls) {
        fprintf(stderr, "only %d of %d checks were admitted\n", admitted, calls);
        exit(EXIT_FAILURE);
    }
    return time / calls;
}

int main(void)
{
    const char *toml = "rate = \"1000000/s\"\nburst = 100_000_000\n";
    const char *tag = "203.0.113.7";
    int calls = getenv("BENCH_SMALL") ? 10000 : 1000000;
    char error[256];
    double times[ROUNDS];
    dthrottle_t *throttle;
    dthrottle_domain_t *domain;

    if (dthrottle_open(toml, strlen(toml), &throttle, error, sizeof error) != DTHROTTLE_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    if (dthrottle_domain(throttle, NULL, 0, &domain) != DTHROTTLE_OK)
        return EXIT_FAILURE;
    round_ns(domain, tag, strlen(tag), calls);
    for (int i = 0; i < ROUNDS; i++)
        times[i] = round_ns(domain, tag, strlen(tag), calls);
    qsort(times, ROUNDS, sizeof times[0], order);
    printf("%.1f\n", times[ROUNDS / 2]);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    return EXIT_SUCCESS;
}
