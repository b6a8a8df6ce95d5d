/*
 * Tables: set by calls and in TOML, shared by throttles and processes through a name, warnings, and
 * many tags in one call. Named tables are in a new directory, which is removed at the end.
 */
#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#define RATE "1/100 years"
#define TAGS 300
#define CHILDREN 4

static char folder[] = "table-test-XXXXXX";

static dthrottle_table_t table_of(const char *name)
{
    dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    table.name = name;
    table.name_len = strlen(name);
    table.dir = folder;
    table.dir_len = strlen(folder);
    table.tags = 1000;
    return table;
}

static dthrottle_config_t *config_of(uint64_t burst, const dthrottle_table_t *table)
{
    dthrottle_config_t *config;
    dthrottle_rule_t rule = DTHROTTLE_RULE_INIT;
    rule.rate = RATE;
    rule.rate_len = strlen(RATE);
    rule.burst = burst;
    MUST(dthrottle_config_new(&config) == DTHROTTLE_OK);
    OK(dthrottle_config_add_rule(config, NULL, 0, &rule));
    OK(dthrottle_config_set_table(config, table));
    return config;
}

/* Opens a throttle, and returns its default domain. */
static dthrottle_domain_t *open_table(uint64_t burst, const dthrottle_table_t *table,
                                      dthrottle_t **out)
{
    char error[256];
    dthrottle_config_t *config = config_of(burst, table);
    if (!OK(dthrottle_open_config(config, out, error, sizeof error)))
        fprintf(stderr, "    %s\n", error);
    dthrottle_config_free(config);
    return domain_of(*out, NULL);
}

static void release(dthrottle_t *throttle, dthrottle_domain_t *domain)
{
    dthrottle_domain_free(domain);
    dthrottle_close(throttle);
}

static void throttles_with_the_same_table_name_share_buckets(void)
{
    dthrottle_table_t web = table_of("web"), api = table_of("api"), none = DTHROTTLE_TABLE_INIT;
    char toml[256];
    dthrottle_t *a, *b, *c, *d, *e;
    dthrottle_domain_t *in_a = open_table(10, &web, &a), *in_b = open_table(10, &web, &b);
    dthrottle_domain_t *in_c = open_table(10, &api, &c), *in_d = open_table(10, &none, &d);

    EQUAL(dthrottle_allow(in_a, "t", 1, 6), 1);
    EQUAL(dthrottle_allow(in_b, "t", 1, 6), 0);
    EQUAL(dthrottle_allow(in_c, "t", 1, 6), 1);
    EQUAL(dthrottle_allow(in_d, "t", 1, 6), 1);
    snprintf(toml, sizeof toml,
             "rate = \"" RATE "\"\nburst = 10\ntable = { name = \"web\", dir = \"%s\" }", folder);
    e = open_on(toml, NULL);
    dthrottle_domain_t *in_e = domain_of(e, NULL);
    EQUAL(dthrottle_allow(in_e, "t", 1, 4), 1);
    EQUAL(dthrottle_allow(in_a, "t", 1, 1), 0);
    CHECK(dthrottle_warning(a, 0) == NULL && dthrottle_warning(e, 0) == NULL);
    release(a, in_a);
    release(b, in_b);
    release(c, in_c);
    release(d, in_d);
    release(e, in_e);
}

static void an_invalid_table_is_an_error_that_names_the_field(void)
{
    static const char *const fields[] = {"`table.name` ", "`table.size` ", "`table.group` ",
                                         "`table.dir` ", "`table` "};
    for (int i = 0; i < 5; i++) {
        char error[256];
        dthrottle_t *out;
        dthrottle_clock_t *manual;
        dthrottle_table_t table = table_of(i == 0 ? "a/b" : "web");
        if (i == 1) {
            table.tags = 0;
            table.bytes = 1000;
        }
        if (i == 2) {
            table.group = "no such group";
            table.group_len = strlen(table.group);
        }
        if (i == 3)
            table.name = NULL, table.name_len = 0;
        dthrottle_config_t *config = config_of(1, &table);
        MUST(dthrottle_clock_new(&manual) == DTHROTTLE_OK);
        if (i == 4)
            OK(dthrottle_config_set_clock(config, manual));
        EQUAL(dthrottle_open_config(config, &out, error, sizeof error), DTHROTTLE_ERR_CONFIG);
        CHECK(out == NULL);
        if (!CHECK(strstr(error, fields[i]) == error))
            fprintf(stderr, "    %s\n", error);
        /* The TOML replaces everything, including the table. */
        OK(dthrottle_config_toml(config, "rate = 1", 8, NULL, 0));
        OK(dthrottle_open_config(config, &out, NULL, 0));
        dthrottle_close(out);
        dthrottle_clock_free(manual);
        dthrottle_config_free(config);
    }
}

/* The directory does not exist, or the size differs from that of the existing table. */
static void an_unusable_table_gives_one_warning_and_works(void)
{
    dthrottle_t *throttle;
    dthrottle_table_t table = table_of("lost");
    table.dir = "no/such/folder";
    table.dir_len = strlen(table.dir);
    dthrottle_domain_t *domain = open_table(1, &table, &throttle);
    const char *warning = dthrottle_warning(throttle, 0);
    CHECK(warning && strstr(warning, "no/such/folder") != NULL);
    CHECK(dthrottle_warning(throttle, 1) == NULL && dthrottle_warning(throttle, -1) == NULL);
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 1);
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 0);
    release(throttle, domain);

    table = table_of("web");
    table.tags = 1000000;
    domain = open_table(10, &table, &throttle);
    warning = dthrottle_warning(throttle, 0);
    CHECK(warning && strstr(warning, "exists with room for") != NULL);
    CHECK(dthrottle_warning(throttle, 1) == NULL);
    release(throttle, domain);
}

static void children_that_open_a_named_table_take_exactly_the_burst(void)
{
    int pipes[2], sum = 0;
    dthrottle_table_t table = table_of("crowd");
    MUST(pipe(pipes) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        MUST(child >= 0);
        if (child == 0) {
            dthrottle_t *throttle;
            dthrottle_domain_t *domain = open_table(1000, &table, &throttle);
            int taken = 0;
            for (int ask = 0; ask < 500; ask++)
                taken += dthrottle_allow(domain, "t", 1, 1) == 1;
            release(throttle, domain);
            _exit(write(pipes[1], &taken, sizeof taken) == sizeof taken ? 0 : 1);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        int taken = 0, status = 1;
        MUST(read(pipes[0], &taken, sizeof taken) == sizeof taken);
        MUST(wait(&status) > 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        sum += taken;
    }
    EQUAL(sum, 1000);
    close(pipes[0]);
    close(pipes[1]);
}

static void allow_many_returns_the_same_as_single_calls(void)
{
    char texts[TAGS][8];
    const void *tags[TAGS];
    size_t lens[TAGS];
    bool allowed[TAGS + 1];
    dthrottle_t *one, *many;
    dthrottle_table_t none = DTHROTTLE_TABLE_INIT;
    dthrottle_domain_t *by_one = open_table(3, &none, &one), *at_once = open_table(3, &none, &many);
    int passed = 0;

    for (int i = 0; i < TAGS; i++) {
        lens[i] = (size_t)snprintf(texts[i], sizeof texts[i], "%d", i % 70);
        tags[i] = texts[i];
    }
    allowed[TAGS] = false;
    OK(dthrottle_allow_many(at_once, tags, lens, TAGS, allowed));
    for (int i = 0; i < TAGS; i++) {
        EQUAL(allowed[i], dthrottle_allow(by_one, tags[i], lens[i], 1));
        passed += allowed[i];
    }
    EQUAL(passed, 3 * 70);
    CHECK(!allowed[TAGS]);
    release(one, by_one);
    release(many, at_once);
}

static void a_full_table_evicts_buckets_and_counts_them(void)
{
    dthrottle_t *throttle;
    dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;
    dthrottle_table_t table = DTHROTTLE_TABLE_INIT;
    table.is_private = true;
    table.tags = 1;
    dthrottle_domain_t *domain = open_table(1, &table, &throttle);
    for (int i = 0; i < TAGS; i++)
        EQUAL(dthrottle_allow(domain, &i, sizeof i, 1), 1);
    OK(dthrottle_stats(throttle, &stats));
    CHECK(stats.buckets < TAGS);
    EQUAL(stats.buckets + stats.evicted, TAGS);
    release(throttle, domain);
}

static void named_tables_are_listed_resized_and_removed(void)
{
    char error[256];
    size_t count = 77;
    uint64_t forgotten = 77;
    dthrottle_t *throttle;
    dthrottle_table_t table = table_of("listed"), where = DTHROTTLE_TABLE_INIT;
    dthrottle_table_info_t tables[8];
    dthrottle_domain_t *domain = open_table(1, &table, &throttle);
    for (int i = 0; i < TAGS; i++)
        EQUAL(dthrottle_allow(domain, &i, sizeof i, 1), 1);
    release(throttle, domain);
    where.dir = folder;
    where.dir_len = strlen(folder);
    tables[0].size = sizeof tables[0];
    OK(dthrottle_table_list(&where, tables, 8, &count, error, sizeof error));
    EQUAL(count, 4);
    for (size_t i = 0; i < count; i++) {
        EQUAL(tables[i].size, sizeof tables[i]);
        TEXT(tables[i].fault, "");
        CHECK(strstr(tables[i].path, tables[i].name) != NULL);
        if (strcmp(tables[i].name, "listed") == 0) {
            EQUAL(tables[i].buckets, TAGS);
            CHECK(tables[i].tags >= 1000 && tables[i].bytes > 16 * tables[i].tags);
        }
    }
    OK(dthrottle_table_list(&where, tables, 1, &count, NULL, 0));
    EQUAL(count, 4);
    OK(dthrottle_table_list(NULL, NULL, 0, &count, NULL, 0));

    table.tags = 1000000;
    OK(dthrottle_table_resize(&table, &forgotten, error, sizeof error));
    EQUAL(forgotten, 0);
    OK(dthrottle_table_list(&where, tables, 8, &count, NULL, 0));
    for (size_t i = 0; i < count; i++)
        if (strcmp(tables[i].name, "listed") == 0)
            CHECK(tables[i].tags >= 1000000 && tables[i].buckets == TAGS);
    table.tags = 0;
    table.bytes = 10000000;
    OK(dthrottle_table_resize(&table, NULL, NULL, 0));
    table.bytes = 10;
    EQUAL(dthrottle_table_resize(&table, NULL, error, sizeof error), DTHROTTLE_ERR_CONFIG);
    CHECK(strstr(error, "`table.size` ") == error);

    OK(dthrottle_table_remove(&table, error, sizeof error));
    EQUAL(dthrottle_table_remove(&table, error, sizeof error), DTHROTTLE_ERR_FILE);
    CHECK(strstr(error, "listed") != NULL);
    OK(dthrottle_table_list(&where, tables, 8, &count, NULL, 0));
    EQUAL(count, 3);
}

static void a_bucket_of_an_earlier_process_gives_one_warning(void)
{
    char text[512];
    dthrottle_t *throttle;
    dthrottle_table_t table = table_of("web");
    dthrottle_domain_t *domain = open_table(10, &table, &throttle);

    while (dthrottle_allow(domain, "earlier", 7, 1) == 1)
        ;
    EQUAL(dthrottle_earlier_process_warning(domain, "earlier", 7, text, sizeof text), 0);
    release(throttle, domain);
    domain = open_table(10, &table, &throttle);
    EQUAL(dthrottle_allow(domain, "earlier", 7, 1), 0);
    EQUAL(dthrottle_earlier_process_warning(domain, "new", 3, text, sizeof text), 0);
    TEXT(text, "");
    EQUAL(dthrottle_earlier_process_warning(domain, "earlier", 7, text, sizeof text), 1);
    CHECK(strstr(text, "`dthrottle table remove web --dir table-test-") != NULL);
    EQUAL(dthrottle_earlier_process_warning(domain, "earlier", 7, text, sizeof text), 0);
    release(throttle, domain);
}

static void fresh_tables_are_empty_and_make_no_file(void)
{
    dthrottle_t *first, *second;
    dthrottle_table_t table = table_of("web"), new = table_of("new");

    EQUAL(setenv("DTHROTTLE_FRESH_TABLES", "1", 1), 0);
    dthrottle_domain_t *domain = open_table(10, &table, &first);
    EQUAL(dthrottle_allow(domain, "earlier", 7, 10), 1);
    dthrottle_domain_t *same = open_table(10, &table, &second);
    EQUAL(dthrottle_allow(same, "earlier", 7, 1), 0);
    release(first, domain);
    release(second, same);
    domain = open_table(1, &new, &first);
    EQUAL(dthrottle_allow(domain, "t", 1, 1), 1);
    release(first, domain);
    /* clean_up() counts the files. */
    EQUAL(unsetenv("DTHROTTLE_FRESH_TABLES"), 0);
}

static void clean_up(void)
{
    char path[512];
    int files = 0;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    MUST(dir != NULL);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files += unlink(path) == 0;
    }
    closedir(dir);
    EQUAL(files, 3);
    EQUAL(rmdir(folder), 0);
}

int main(void)
{
    MUST(mkdtemp(folder) != NULL);
    throttles_with_the_same_table_name_share_buckets();
    an_invalid_table_is_an_error_that_names_the_field();
    an_unusable_table_gives_one_warning_and_works();
    a_bucket_of_an_earlier_process_gives_one_warning();
    fresh_tables_are_empty_and_make_no_file();
    children_that_open_a_named_table_take_exactly_the_burst();
    allow_many_returns_the_same_as_single_calls();
    a_full_table_evicts_buckets_and_counts_them();
    named_tables_are_listed_resized_and_removed();
    clean_up();
    return check_report("table");
}
