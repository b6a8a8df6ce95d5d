/*
 * The client with a real daemon, with a daemon that is killed and restarted, and with servers that
 * are not a daemon. The argument is the binary of the daemon.
 */
#define _POSIX_C_SOURCE 200809L
#include "daemon.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define THREADS 8

/*
 * A long timeout, because a loaded machine answers late. Only tests of the timeout use a short one.
 */
static const dthrottle_client_options_t LONG_TIMEOUT = {
    sizeof(dthrottle_client_options_t), UINT64_C(30000000000), 1000000, 20000000, NULL, 0};

static dthrottle_client_t *client_of(const char *address, const dthrottle_client_options_t *options)
{
    char error[256];
    dthrottle_client_t *client;
    if (!OK(dthrottle_client_open(address, strlen(address), options, &client, error, sizeof error)))
        fprintf(stderr, "    %s\n", error);
    MUST(client != NULL);
    return client;
}

static int32_t allow(const dthrottle_client_t *client, const char *tag)
{
    return dthrottle_client_allow(client, tag, strlen(tag));
}

static dthrottle_client_counts_t counts_of(const dthrottle_client_t *client)
{
    dthrottle_client_counts_t counts = DTHROTTLE_CLIENT_COUNTS_INIT;
    OK(dthrottle_client_counts(client, &counts));
    return counts;
}

static void a_client_allows_the_burst_and_then_refuses(const char *address)
{
    dthrottle_client_t *client = client_of(address, &LONG_TIMEOUT);
    check_context = address;
    for (int i = 0; i < 10; i++)
        EQUAL(allow(client, address), 1);
    EQUAL(allow(client, address), 0);
    EQUAL(counts_of(client).answered, 11);
    EQUAL(counts_of(client).failures, 0);
    dthrottle_client_close(client);
    check_context = "";
}

static void allow_many_returns_the_result_of_each_tag(const dthrottle_client_t *client)
{
    enum { COUNT = 2000 };
    static char names[100][16];
    static const void *tags[COUNT];
    static size_t lens[COUNT];
    static bool allowed[COUNT];

    for (int i = 0; i < 100; i++)
        snprintf(names[i], sizeof names[i], "many-%d", i);
    for (int i = 0; i < COUNT; i++) {
        tags[i] = names[i % 100];
        lens[i] = strlen(names[i % 100]);
    }
    OK(dthrottle_client_allow_many(client, tags, lens, COUNT, allowed));
    int right = 0;
    for (int i = 0; i < COUNT; i++)
        right += allowed[i] == (i < COUNT / 2);
    EQUAL(right, COUNT);
    /* One invalid tag, so no request is sent. */
    const uint64_t before = counts_of(client).answered;
    tags[7] = "a\nb";
    lens[7] = 3;
    BAD(dthrottle_client_allow_many(client, tags, lens, COUNT, allowed));
    CHECK(allowed[0] && allowed[COUNT - 1]);
    EQUAL(counts_of(client).answered, before);
}

static void check_and_peek_return_full_decisions(const dthrottle_client_t *client)
{
    dthrottle_client_decision_t decision = DTHROTTLE_CLIENT_DECISION_INIT;
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    char error[256] = "old";

    options.cost = 3;
    OK(dthrottle_client_check(client, "log in", 6, "a b", 3, &options, &decision, error,
                              sizeof error));
    TEXT(error, "");
    CHECK(decision.allowed && !decision.failed_open && !decision.dry_run);
    CHECK(decision.granted == 3 && decision.limit == 5 && decision.remaining == 2);
    CHECK(decision.reset_after_ns / 1000000000 / 60 == 3 * 86400 / 5 / 60 - 1 ||
          decision.reset_after_ns / 1000000000 / 60 == 3 * 86400 / 5 / 60);
    TEXT(decision.rule, "");
    OK(dthrottle_client_check(client, "log in", 6, "a b", 3, &options, &decision, NULL, 0));
    CHECK(!decision.allowed && decision.granted == 0 && decision.retry_after_ns > 0);
    TEXT(decision.rule, "the rule");
    options.partial = true;
    OK(dthrottle_client_check(client, "log in", 6, "a b", 3, &options, &decision, NULL, 0));
    CHECK(decision.allowed && decision.granted == 2 && decision.remaining == 0);
    options.partial = false;
    options.cost = 1;
    options.max_delay_ns = UINT64_C(20000000000000);
    OK(dthrottle_client_check(client, "log in", 6, "a b", 3, &options, &decision, NULL, 0));
    CHECK(decision.allowed && decision.delay_ns > UINT64_C(10000000000000));
    OK(dthrottle_client_peek(client, "log in", 6, "a b", 3, NULL, &decision, NULL, 0));
    EQUAL(decision.balance, -1);
    EQUAL(dthrottle_client_refund(client, "log in", 6, "a b", 3, 2, NULL, 0), 1);
    OK(dthrottle_client_peek(client, "log in", 6, "a b", 3, NULL, &decision, NULL, 0));
    EQUAL(decision.balance, 1);
    EQUAL(dthrottle_client_reset(client, "log in", 6, "a b", 3, NULL, 0), 1);
    OK(dthrottle_client_peek(client, "log in", 6, "a b", 3, NULL, &decision, NULL, 0));
    EQUAL(decision.remaining, 5);
    OK(dthrottle_client_check(client, "free", 4, "x", 1, NULL, &decision, NULL, 0));
    CHECK(decision.allowed && decision.limit == DTHROTTLE_UNLIMITED);
    OK(dthrottle_client_check(client, NULL, 0, "default", 7, NULL, &decision, NULL, 0));
    EQUAL(decision.limit, 10);
}

static void tags_with_special_bytes_are_checked(const dthrottle_client_t *client)
{
    const struct { const char *bytes; size_t len; } tags[] = {
        {"\0check", 6}, {"ends with\r", 10}, {"\xff\0", 2}, {"", 0}, {"gr\xc3\xbcn", 5}};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        for (int n = 0; n < 10; n++)
            EQUAL(dthrottle_client_allow(client, tags[i].bytes, tags[i].len), 1);
        EQUAL(dthrottle_client_allow(client, tags[i].bytes, tags[i].len), 0);
    }
}

/* The daemon closes TCP connections that begin like HTTP or TLS. */
static void tags_that_look_like_another_protocol_are_checked(void)
{
    static const char *const tags[] = {"\x16\x03\x01", "GET / HTTP/1.1\r", "GET / HTTP/1.1"};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        for (int n = 0; n < 11; n++) {
            dthrottle_client_t *client = client_of(daemon_.tcp, &LONG_TIMEOUT);
            EQUAL(allow(client, tags[i]), n < 10);
            EQUAL(counts_of(client).failed_open, 0);
            dthrottle_client_close(client);
        }
    }
}

static void refund_and_reset_over_tcp_need_the_token(void)
{
    static const char *const wrong[] = {NULL, "another-horse-battery"};
    dthrottle_client_decision_t decision = DTHROTTLE_CLIENT_DECISION_INIT;
    dthrottle_client_options_t options = LONG_TIMEOUT;
    dthrottle_client_t *client;
    dthrottle_check_options_t check = DTHROTTLE_CHECK_OPTIONS_INIT;
    char error[256];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        options.token = wrong[i];
        options.token_len = wrong[i] ? strlen(wrong[i]) : 0;
        client = client_of(daemon_.tcp, &options);
        check.cost = 5;
        OK(dthrottle_client_check(client, NULL, 0, "token", 5, &check, &decision, NULL, 0));
        CHECK(decision.allowed);
        BAD(dthrottle_client_reset(client, NULL, 0, "token", 5, error, sizeof error));
        CHECK(strstr(error, "reset needs the daemon's Unix socket, or") == error);
        BAD(dthrottle_client_refund(client, NULL, 0, "token", 5, 1, error, sizeof error));
        dthrottle_client_close(client);
    }
    options.token = DAEMON_TOKEN;
    options.token_len = strlen(DAEMON_TOKEN);
    client = client_of(daemon_.tcp, &options);
    EQUAL(dthrottle_client_refund(client, NULL, 0, "token", 5, 2, NULL, 0), 1);
    OK(dthrottle_client_peek(client, NULL, 0, "token", 5, NULL, &decision, NULL, 0));
    EQUAL(decision.remaining, 2);
    EQUAL(dthrottle_client_reset(client, NULL, 0, "token", 5, NULL, 0), 1);
    OK(dthrottle_client_peek(client, NULL, 0, "token", 5, NULL, &decision, NULL, 0));
    EQUAL(decision.remaining, 10);
    dthrottle_client_close(client);
    options.token = "a b";
    options.token_len = 3;
    BAD(dthrottle_client_open(daemon_.tcp, strlen(daemon_.tcp), &options, &client, error,
                              sizeof error));
    CHECK(strstr(error, "`token` ") == error);
}

/* The daemon closes the longest idle connection if a listener has its most connections, here 64. */
static void a_connection_closed_while_idle_is_reopened(void)
{
    enum { OTHERS = 64 };
    static dthrottle_client_t *others[OTHERS];
    dthrottle_client_options_t options = LONG_TIMEOUT;
    options.backoff_ns = options.max_backoff_ns = UINT64_C(60000000000);
    dthrottle_client_t *client = client_of(daemon_.tcp, &options);

    for (int i = 0; i < 11; i++)
        EQUAL(allow(client, "idle"), i < 10);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = client_of(daemon_.tcp, &LONG_TIMEOUT);
        EQUAL(allow(others[i], "idle"), 0);
    }
    EQUAL(allow(client, "idle"), 0);
    CHECK(counts_of(client).failed_open == 0 && counts_of(client).failures == 0);
    for (int i = 0; i < OTHERS; i++)
        dthrottle_client_close(others[i]);
    dthrottle_client_close(client);
}

static void invalid_requests_return_the_errors_of_the_daemon(const dthrottle_client_t *client)
{
    dthrottle_client_decision_t decision = DTHROTTLE_CLIENT_DECISION_INIT;
    dthrottle_check_options_t options = DTHROTTLE_CHECK_OPTIONS_INIT;
    char error[256];

    BAD(dthrottle_client_allow(client, "a\nb", 3));
    decision.allowed = false;
    EQUAL(dthrottle_client_check(client, "none", 4, "a", 1, NULL, &decision, error, sizeof error),
          DTHROTTLE_ERR_DOMAIN);
    CHECK(strstr(error, "unknown domain \"none\"") != NULL);
    CHECK(decision.allowed && !decision.failed_open && decision.granted == 1);
    options.cost = 11;
    EQUAL(dthrottle_client_peek(client, NULL, 0, "a", 1, &options, &decision, error, sizeof error),
          DTHROTTLE_ERR_COST);
    CHECK(strstr(error, "can never pass") != NULL);
    BAD(dthrottle_client_check(client, "a\0b", 3, "a", 1, NULL, &decision, error, sizeof error));
    CHECK(strstr(error, "`domain` ") == error);
    BAD(dthrottle_client_reset(client, NULL, 0, "a\nb", 3, error, sizeof error));
    CHECK(strstr(error, "`tag` ") == error);
    /* The connection still works. */
    EQUAL(counts_of(client).failures, 0);
}

static void *ask_ten(void *client)
{
    intptr_t passed = 0;
    for (int i = 0; i < 10; i++)
        passed += dthrottle_client_allow(client, "threads", 7);
    return (void *)passed;
}

static void threads_and_children_get_their_own_answers(dthrottle_client_t *client)
{
    pthread_t threads[THREADS];
    intptr_t passed = 0;

    for (int i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, ask_ten, client) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *some;
        pthread_join(threads[i], &some);
        passed += (intptr_t)some;
    }
    EQUAL(passed, 10);

    /* The child opens its own connections, so each process gets its own answers. */
    pid_t child = fork();
    MUST(child >= 0);
    for (int i = 0; i < 200; i++) {
        char tag[32];
        snprintf(tag, sizeof tag, "fork-%d-%d", child == 0, i / 20);
        EQUAL(allow(client, tag), i % 20 < 10);
    }
    if (child == 0)
        _exit(checks_failed > 0);
    int status;
    waitpid(child, &status, 0);
    EQUAL(status, 0);
    EQUAL(counts_of(client).failed_open, 0);
}

static void a_client_fails_open_until_the_daemon_restarts(void)
{
    dthrottle_client_decision_t decision = DTHROTTLE_CLIENT_DECISION_INIT;
    dthrottle_client_t *client = client_of(daemon_.socket, &LONG_TIMEOUT);

    while (allow(client, "killed"))
        MUST(counts_of(client).failed_open == 0);
    daemon_kill();
    /* The kept connection is a broken pipe, and SIGPIPE must not end the program. */
    for (int i = 0; i < 1000; i++)
        EQUAL(allow(client, "killed"), 1);
    OK(dthrottle_client_check(client, NULL, 0, "killed", 6, NULL, &decision, NULL, 0));
    CHECK(decision.allowed && decision.failed_open && decision.granted == 1);
    CHECK(decision.limit == DTHROTTLE_UNLIMITED);
    EQUAL(dthrottle_client_reset(client, NULL, 0, "killed", 6, NULL, 0), 0);
    dthrottle_client_counts_t counts = counts_of(client);
    EQUAL(counts.failed_open, 1002);
    CHECK(counts.failures > 0 && counts.failures < 900);
    daemon_start();
    UNTIL(allow(client, "killed") == 0);
    counts = counts_of(client);
    CHECK(counts.answered > 11);
    dthrottle_client_close(client);
}

/* A listener that accepts connections and sends given answers. */
static int listen_at(const char *path)
{
    struct sockaddr_un socket_address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(socket_address.sun_path, path);
    MUST(listener >= 0 && bind(listener, (struct sockaddr *)&socket_address, sizeof socket_address) == 0);
    MUST(listen(listener, 10) == 0);
    return listener;
}

static void *answer_next(void *listener)
{
    char line[16];
    int second = accept(*(int *)listener, NULL, NULL);
    MUST(second >= 0 && read(second, line, sizeof line) > 0 && write(second, "OK\n", 3) == 3);
    return (void *)(intptr_t)second;
}

static void a_silent_daemon_is_asked_once_and_late_answers_are_dropped(void)
{
    char path[100], line[16];
    dthrottle_client_options_t options = DTHROTTLE_CLIENT_OPTIONS_INIT;
    snprintf(path, sizeof path, "%s/mute", daemon_.folder);
    int listener = listen_at(path);

    /* The first request waits 50 ms, and the others do not wait. */
    options.backoff_ns = options.max_backoff_ns = UINT64_C(60000000000);
    dthrottle_client_t *client = client_of(path, &options);
    const time_t start = time(NULL);
    for (int i = 0; i < 100; i++)
        EQUAL(allow(client, "x"), 1);
    CHECK(time(NULL) - start < 15);
    dthrottle_client_counts_t counts = counts_of(client);
    CHECK(counts.answered == 0 && counts.failed_open == 100 && counts.failures == 1);
    dthrottle_client_close(client);
    int first = accept(listener, NULL, NULL);
    close(first);

    /* A late answer must not be taken for the answer to another request. */
    options.timeout_ns = 1000000000;
    options.backoff_ns = options.max_backoff_ns = 1;
    client = client_of(path, &options);
    EQUAL(allow(client, "late"), 1);
    first = accept(listener, NULL, NULL);
    EQUAL(read(first, line, sizeof line), 5);
    EQUAL(counts_of(client).failures, 1);
    /* The client has closed the connection. */
    (void)send(first, "NO\n", 3, MSG_NOSIGNAL);
    pthread_t answering;
    void *second;
    MUST(pthread_create(&answering, NULL, answer_next, &listener) == 0);
    EQUAL(allow(client, "next"), 1);
    EQUAL(counts_of(client).answered, 1);
    pthread_join(answering, &second);
    dthrottle_client_close(client);
    close((int)(intptr_t)second);
    close(first);
    close(listener);
}

static void *speak_http(void *listener)
{
    char line[64];
    int other = accept(*(int *)listener, NULL, NULL);
    MUST(other >= 0 && read(other, line, sizeof line) > 0);
    MUST(write(other, "HTTP/1.1 400 Bad Request\n", 25) == 25);
    return (void *)(intptr_t)other;
}

static void an_answer_of_another_protocol_fails_open(void)
{
    char path[100];
    dthrottle_client_decision_t decision = DTHROTTLE_CLIENT_DECISION_INIT;
    snprintf(path, sizeof path, "%s/other", daemon_.folder);
    int listener = listen_at(path);
    dthrottle_client_t *client = client_of(path, &LONG_TIMEOUT);
    pthread_t other;
    void *connection;

    MUST(pthread_create(&other, NULL, speak_http, &listener) == 0);
    OK(dthrottle_client_check(client, NULL, 0, "x", 1, NULL, &decision, NULL, 0));
    CHECK(decision.allowed && decision.failed_open);
    dthrottle_client_counts_t counts = counts_of(client);
    CHECK(counts.answered == 0 && counts.failed_open == 1 && counts.failures == 1);
    pthread_join(other, &connection);
    close((int)(intptr_t)connection);
    dthrottle_client_close(client);

    /* A new client, which is not in a pause after a failure. */
    client = client_of(path, &LONG_TIMEOUT);
    MUST(pthread_create(&other, NULL, speak_http, &listener) == 0);
    EQUAL(allow(client, "x"), 1);
    counts = counts_of(client);
    CHECK(counts.answered == 0 && counts.failed_open == 1 && counts.failures == 1);
    pthread_join(other, &connection);
    close((int)(intptr_t)connection);
    dthrottle_client_close(client);
    close(listener);
}

int main(int argc, char **argv)
{
    MUST(argc == 2);
    daemon_open(argv[1], "rate = \"10 per day\"\n[domains.free]\n[domains.\"log in\"]\n"
                         "rules = [{ rate = \"5 per day\", name = \"the rule\" }]\n");
    a_client_allows_the_burst_and_then_refuses(daemon_.socket);
    a_client_allows_the_burst_and_then_refuses(daemon_.tcp);
    dthrottle_client_t *client = client_of(daemon_.socket, &LONG_TIMEOUT);
    allow_many_returns_the_result_of_each_tag(client);
    check_and_peek_return_full_decisions(client);
    tags_with_special_bytes_are_checked(client);
    tags_that_look_like_another_protocol_are_checked();
    refund_and_reset_over_tcp_need_the_token();
    a_connection_closed_while_idle_is_reopened();
    invalid_requests_return_the_errors_of_the_daemon(client);
    threads_and_children_get_their_own_answers(client);
    dthrottle_client_close(client);
    a_client_fails_open_until_the_daemon_restarts();
    a_silent_daemon_is_asked_once_and_late_answers_are_dropped();
    an_answer_of_another_protocol_fails_open();
    daemon_end();
    return check_report("client");
}
