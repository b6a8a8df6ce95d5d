/*
 * A real dthrottled for tests, with its own directory and table. Needs POSIX.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include "process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define DAEMON_TOKEN "correct-horse-battery"

static struct {
    const char *binary;
    char folder[64], socket[80], config[80], tcp[64];
    pid_t pid;
} daemon_;

static inline void daemon_start(void)
{
    int log[2];
    char line[1024] = "";

    MUST(pipe(log) == 0);
    daemon_.pid = fork();
    MUST(daemon_.pid >= 0);
    if (daemon_.pid == 0) {
        /* The daemon must end with the test, however the test ends. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(log[1], 2);
        close(log[0]);
        close(log[1]);
        execl(daemon_.binary, daemon_.binary, "--config", daemon_.config, (char *)NULL);
        _exit(99);
    }
    close(log[1]);
    /* Kept open so that the daemon can write its log. */
    FILE *file = fdopen(log[0], "r");
    MUST(file != NULL);
    while (!strstr(line, "is ready"))
        MUST(fgets(line, sizeof line, file) != NULL);
    const char *tcp = strstr(line, " and 127.0.0.1:");
    MUST(tcp && sscanf(tcp, " and %63[0-9.:]", daemon_.tcp) == 1);
}

static inline void daemon_open(const char *binary, const char *rules)
{
    daemon_.binary = binary;
    strcpy(daemon_.folder, "/tmp/dthrottled-XXXXXX");
    MUST(mkdtemp(daemon_.folder) != NULL);
    snprintf(daemon_.socket, sizeof daemon_.socket, "%s/socket", daemon_.folder);
    snprintf(daemon_.config, sizeof daemon_.config, "%s/toml", daemon_.folder);
    FILE *file = fopen(daemon_.config, "w");
    MUST(file != NULL);
    fprintf(file, "table = { name = \"c\", dir = \"%s\" }\n%s\n[daemon]\nhttp = false\n"
                  "listen = [\"%s\", \"127.0.0.1:0\"]\n"
                  "token = \"" DAEMON_TOKEN "\"\nmax_delay = \"1 day\"\nmax_connections = 64\n",
            daemon_.folder, rules, daemon_.socket);
    fclose(file);
    daemon_start();
}

static inline void daemon_kill(void)
{
    kill(daemon_.pid, SIGKILL);
    waitpid(daemon_.pid, NULL, 0);
}

static inline void daemon_end(void)
{
    char command[128];
    daemon_kill();
    snprintf(command, sizeof command, "rm -r %s", daemon_.folder);
    EQUAL(system(command), 0);
}

#endif
