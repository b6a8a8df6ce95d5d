/*
 * The node of hammer.py in C: hammer CONFIG, with the configuration as TOML.
 */
#define _POSIX_C_SOURCE 200809L
#include <dthrottle.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TENTH_US = 100000 };

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t wait_until(int64_t due)
{
    struct timespec at = {due / 1000000, due % 1000000 * 1000};
    while (now_us() < due)
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL);
    return now_us();
}

static int64_t balance(const dthrottle_domain_t *domain, const char *tag)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    if (dthrottle_peek(domain, tag, strlen(tag), 1, &decision) != DTHROTTLE_OK)
        exit(EXIT_FAILURE);
    return decision.balance;
}

static void run(const dthrottle_domain_t *domain, int64_t start, int64_t rate, int64_t us,
                const char *tag)
{
    int64_t tenth = start / TENTH_US, end = start + us;
    int asked = 0, admitted = 0;
    for (int64_t number = 0;; number++) {
        int64_t due = start + number * 1000000 / rate;
        int64_t now = wait_until(due < end ? due : end);
        for (; tenth < (now < end ? now : end) / TENTH_US; tenth++) {
            printf("%" PRId64 " %d %d %" PRId64 "\n", tenth, asked, admitted, balance(domain, tag));
            asked = admitted = 0;
        }
        fflush(stdout);
        if (now >= end)
            break;
        asked++;
        admitted += dthrottle_allow(domain, tag, strlen(tag), 1) == 1;
    }
    puts("done");
}

static void answer(const dthrottle_domain_t *domain, const char *line)
{
    int64_t start, rate, ms;
    char tag[64];
    if (sscanf(line, "run %" SCNd64 " %" SCNd64 " %" SCNd64 " %63s", &start, &rate, &ms, tag) == 4) {
        run(domain, start * 1000, rate, ms * 1000, tag);
    } else if (sscanf(line, "balance %63s", tag) == 1) {
        printf("%" PRId64 "\n", balance(domain, tag));
    } else if (strcmp(line, "fork\n") == 0) {
        pid_t child = fork();
        while (child == 0)
            pause();
        printf("%d\n", (int)child);
    } else {
        fprintf(stderr, "cannot %s", line);
        exit(EXIT_FAILURE);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[256], error[256] = "";
    dthrottle_t *throttle;
    dthrottle_domain_t *domain;
    if (argc != 2)
        return EXIT_FAILURE;
    /* Let the system reap the children. */
    signal(SIGCHLD, SIG_IGN);
    if (dthrottle_open(argv[1], strlen(argv[1]), &throttle, error, sizeof error) != DTHROTTLE_OK ||
        dthrottle_domain(throttle, NULL, 0, &domain) != DTHROTTLE_OK) {
        fprintf(stderr, "%s\n", error);
        return EXIT_FAILURE;
    }
    dthrottle_allow(domain, "hello", 5, 1);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        answer(domain, line);
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
    return EXIT_SUCCESS;
}
