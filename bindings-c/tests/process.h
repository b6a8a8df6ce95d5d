/*
 * Helpers for tests with processes and threads. Needs POSIX.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include "check.h"

#include <dirent.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_S 120

static inline void sleep_briefly(void)
{
    const struct timespec time = {0, 10000000};
    nanosleep(&time, NULL);
}

#define UNTIL(condition) \
    do { \
        const time_t until_end = time(NULL) + TIMEOUT_S; \
        int until_done; \
        while (!(until_done = (condition)) && time(NULL) < until_end) \
            sleep_briefly(); \
        check_context = #condition; \
        MUST(until_done); \
    } while (0)

/* Returns the number of further threads of this process, or -1 if one is not of the library. */
static inline int other_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    MUST(tasks != NULL);
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], name[32] = "";
        if (task->d_name[0] == '.' || atoi(task->d_name) == (int)getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        /* The thread may have ended meanwhile. */
        if (!file)
            continue;
        if (fgets(name, sizeof name, file) && count >= 0)
            count = strcmp(name, "dthrottle\n") == 0 ? count + 1 : -1;
        fclose(file);
    }
    closedir(tasks);
    return count;
}

#endif
