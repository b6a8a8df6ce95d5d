/*
 * A server with many processes, like Apache and nginx. The first process checks the configuration
 * and forks. Each child drops its privileges and opens the throttle. All share one table, and one
 * of them runs the exchange.
 */
#define _DEFAULT_SOURCE

#include "process.h"

#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CHILDREN 4
#define BURST 1000
#define NOBODY 65534

/* Memory that the processes share. */
static volatile struct {
    int opened, go, retired;
    int passed[CHILDREN];
    int runs_exchange[CHILDREN];
} *shared;

static char folder[] = "/tmp/dthrottle-prefork-XXXXXX";
static char secret[64];

static int files_in_folder(void)
{
    int count = 0;
    DIR *files = opendir(folder);
    MUST(files != NULL);
    for (const struct dirent *file; (file = readdir(files)) != NULL;)
        count += file->d_name[0] != '.';
    closedir(files);
    return count;
}

/* Makes a configuration with a secret that only this user can read, and a table without a name. */
static dthrottle_config_t *configuration(void)
{
    dthrottle_config_t *config;
    char toml[512], error[256];
    FILE *file = fopen(secret, "w");
    MUST(file != NULL && fchmod(fileno(file), 0600) == 0);
    fputs("a secret of the test\n", file);
    fclose(file);
    snprintf(toml, sizeof toml,
             "rate = '1 per 100 years'\nburst = %d\ntable = { size = 1000 }\n"
             "[cluster]\nname = 'test'\nlisten = '127.0.0.1:0'\nsecret = { file = '%s' }\n",
             BURST, secret);
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    MUST(dthrottle_config_toml(config, toml, strlen(toml), error, sizeof error) == DTHROTTLE_OK);
    return config;
}

static void a_configuration_is_checked_before_the_fork(void)
{
    dthrottle_config_t *config = configuration();
    char error[256];

    /* The first name is used, and checked. */
    OK(dthrottle_config_name_table(config, "a/b", 3));
    OK(dthrottle_config_name_table(config, "web", 3));
    EQUAL(dthrottle_config_check(config, error, sizeof error), DTHROTTLE_ERR_CONFIG);
    CHECK(strstr(error, "`table.name` ") == error && strstr(error, "a/b") != NULL);
    dthrottle_config_free(config);

    config = configuration();
    MUST(remove(secret) == 0);
    EQUAL(dthrottle_config_check(config, error, sizeof error), DTHROTTLE_ERR_FILE);
    CHECK(strstr(error, "`cluster.secret`: ") == error && strstr(error, secret) != NULL);
    dthrottle_config_free(config);
}

/*
 * dthrottle_config_check() reads the secret, and the throttle that is opened later has the warning.
 */
static void a_secret_that_all_users_can_read_is_warned_about(void)
{
    dthrottle_config_t *config = configuration();
    dthrottle_t *throttle;
    char error[256];
    MUST(chmod(secret, 0644) == 0);
    MUST(dthrottle_config_check(config, error, sizeof error) == DTHROTTLE_OK);
    MUST(remove(secret) == 0);
    MUST(dthrottle_open_config(config, &throttle, error, sizeof error) == DTHROTTLE_OK);
    const char *warning = dthrottle_warning(throttle, 0);
    CHECK(warning && strstr(warning, "every user of this machine can read") != NULL);
    CHECK(warning && strstr(warning, secret) != NULL);
    CHECK(dthrottle_warning(throttle, 1) == NULL);
    dthrottle_close(throttle);
    dthrottle_config_free(config);
}

static void a_default_table_name_is_changed_for_another_cluster(void)
{
    static const char cluster[] =
        "[cluster]\nname = 'test'\nlisten = '127.0.0.1:0'\nsecret = 'another one of the test'\n";
    char name[64], toml[512], error[256] = "";
    snprintf(name, sizeof name, "prefork-%d", (int)getpid());
    for (int is_clustered = 0; is_clustered <= 1; is_clustered++) {
        dthrottle_config_t *config;
        dthrottle_t *throttle;
        snprintf(toml, sizeof toml, "rate = '1/s'\ntable = { size = 1000 }\n%s",
                 is_clustered ? cluster : "");
        MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
        OK(dthrottle_config_toml(config, toml, strlen(toml), error, sizeof error));
        OK(dthrottle_config_name_table(config, name, strlen(name)));
        if (OK(dthrottle_open_config(config, &throttle, error, sizeof error)))
            dthrottle_close(throttle);
        else
            fprintf(stderr, "    %s\n", error);
        dthrottle_config_free(config);
    }
    dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    table.name = name;
    table.name_len = strlen(name);
    OK(dthrottle_table_remove(&table, error, sizeof error));
    strcat(name, "-2");
    table.name_len += 2;
    OK(dthrottle_table_remove(&table, error, sizeof error));
}

static int is_exchanger(const dthrottle_t *throttle)
{
    dthrottle_cluster_stats_t stats = DTHROTTLE_CLUSTER_STATS_INIT;
    return dthrottle_cluster_stats(throttle, &stats) == DTHROTTLE_OK &&
           stats.pid == (uint64_t)getpid();
}

static void drop_privileges(void)
{
    if (geteuid() != 0)
        return;
    MUST(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    CHECK(fopen(secret, "r") == NULL);
}

/* Runs a child until it is killed. */
static void child(int number, const dthrottle_config_t *config)
{
    dthrottle_t *throttle;
    char error[256];
    drop_privileges();
    if (!OK(dthrottle_open_config(config, &throttle, error, sizeof error))) {
        fprintf(stderr, "    %s\n", error);
        _exit(1);
    }
    CHECK(dthrottle_warning(throttle, 0) == NULL);
    dthrottle_domain_t *domain = domain_of(throttle, NULL);
    __sync_fetch_and_add(&shared->opened, 1);
    while (!shared->go)
        sleep_briefly();
    for (int i = 0; i < BURST; i++)
        shared->passed[number] += dthrottle_allow(domain, "t", 1, 1) == 1;
    for (int has_stopped = 0;; sleep_briefly()) {
        shared->runs_exchange[number] = is_exchanger(throttle);
        if (shared->retired == number + 1 && !has_stopped) {
            has_stopped = 1;
            OK(dthrottle_stop(throttle));
            /* The child still checks, and must not start the exchange again. */
            EQUAL(dthrottle_allow(domain, "t", 1, 1), 0);
            EQUAL(dthrottle_allow(domain, "another", 7, 1), 1);
            UNTIL(other_threads() == 0);
            EQUAL(dthrottle_allow(domain, "another", 7, 1), 1);
            EQUAL(other_threads(), 0);
        }
        if (checks_failed)
            _exit(1);
    }
}

/* Returns the child that runs the exchange, or -1 unless it is exactly one. */
static int exchanging_child(void)
{
    int found = -1, count = 0;
    for (int i = 0; i < CHILDREN; i++) {
        if (shared->runs_exchange[i]) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : -1;
}

static void one_child_at_a_time_runs_the_exchange(void)
{
    dthrottle_config_t *config = configuration();
    dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    char error[256];
    pid_t children[CHILDREN];
    int first, second, third, status;

    table.name = "prefork";
    table.name_len = strlen(table.name);
    table.dir = folder;
    table.dir_len = strlen(folder);
    OK(dthrottle_config_set_table(config, &table));
    OK(dthrottle_config_check(config, error, sizeof error));
    OK(dthrottle_config_check(config, error, sizeof error));
    EQUAL(files_in_folder(), 1); /* the secret */
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        MUST(children[i] >= 0);
        if (children[i] == 0)
            child(i, config);
    }
    EQUAL(other_threads(), 0);
    UNTIL(shared->opened == CHILDREN);
    EQUAL(files_in_folder(), 2);
    shared->go = 1;
    UNTIL((first = exchanging_child()) >= 0);
    UNTIL(shared->passed[0] + shared->passed[1] + shared->passed[2] + shared->passed[3] >= BURST);

    /* Another child continues the exchange if its child stops it or is killed. */
    shared->retired = first + 1;
    UNTIL((second = exchanging_child()) >= 0 && second != first);
    MUST(kill(children[second], SIGKILL) == 0);
    MUST(waitpid(children[second], &status, 0) == children[second] && WIFSIGNALED(status));
    shared->runs_exchange[second] = 0;
    UNTIL((third = exchanging_child()) >= 0 && third != second);
    CHECK(third != first);

    for (int i = 0; i < CHILDREN; i++) {
        if (i == second)
            continue;
        CHECK(kill(children[i], SIGTERM) == 0);
        MUST(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
    int passed = 0;
    for (int i = 0; i < CHILDREN; i++)
        passed += shared->passed[i];
    EQUAL(passed, BURST);
    EQUAL(other_threads(), 0);
    dthrottle_config_free(config);
}

int main(void)
{
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
    MUST(memory != MAP_FAILED);
    shared = memory;
    MUST(mkdtemp(folder) != NULL && chmod(folder, 0777) == 0);
    snprintf(secret, sizeof secret, "%s/secret", folder);
    a_configuration_is_checked_before_the_fork();
    a_secret_that_all_users_can_read_is_warned_about();
    a_default_table_name_is_changed_for_another_cluster();
    one_child_at_a_time_runs_the_exchange();

    char path[128];
    snprintf(path, sizeof path, "%s/dthrottle-%d-prefork", folder,
             geteuid() == 0 ? NOBODY : (int)geteuid());
    CHECK(remove(path) == 0);
    CHECK(remove(secret) == 0);
    CHECK(rmdir(folder) == 0);
    munmap(memory, sizeof *shared);
    return check_report("prefork");
}
