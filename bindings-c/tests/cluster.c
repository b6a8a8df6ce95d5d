/*
 * Clusters: two nodes on real sockets of this machine, their statistics, and forks of a node. The
 * tests poll for conditions without time limits that matter, and repeat hits, because late hits
 * are not charged.
 */
#define _POSIX_C_SOURCE 200809L

#include "process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BURST 100000
#define CAPACITY 64

static int ports[2];

/* Finds free ports. */
static void find_ports(void)
{
    int sockets[2];
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in address;
        socklen_t len = sizeof address;
        memset(&address, 0, sizeof address);
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        MUST(sockets[i] >= 0);
        MUST(bind(sockets[i], (struct sockaddr *)&address, sizeof address) == 0);
        MUST(getsockname(sockets[i], (struct sockaddr *)&address, &len) == 0);
        ports[i] = ntohs(address.sin_port);
    }
    close(sockets[0]);
    close(sockets[1]);
}

/* Opens a node with the address of the other one. */
static dthrottle_t *open_node(int own)
{
    char toml[256];
    snprintf(toml, sizeof toml,
             "rate = \"1/100 years\"\nburst = %d\n[cluster]\nname = \"test\"\n"
             "listen = \"127.0.0.1:%d\"\npeers = [\"127.0.0.1:%d\"]\n",
             BURST, ports[own], ports[1 - own]);
    return open_on(toml, NULL);
}

static dthrottle_cluster_stats_t stats_of(const dthrottle_t *throttle)
{
    dthrottle_cluster_stats_t stats = DTHROTTLE_CLUSTER_STATS_INIT;
    OK(dthrottle_cluster_stats(throttle, &stats));
    return stats;
}

static uint64_t count_of(const dthrottle_t *throttle, const char *name)
{
    uint64_t count;
    MUST(dthrottle_cluster_count(throttle, name, strlen(name), &count) == DTHROTTLE_OK);
    return count;
}

/* Returns true if the only peer of a node is in a state. */
static int sees(const dthrottle_t *throttle, const char *state)
{
    dthrottle_peer_t peer = DTHROTTLE_PEER_INIT;
    return dthrottle_cluster_peer(throttle, 0, &peer) == DTHROTTLE_OK &&
           strcmp(peer.state, state) == 0;
}

static int received(const dthrottle_t *throttle)
{
    dthrottle_peer_t peer = DTHROTTLE_PEER_INIT;
    return dthrottle_cluster_peer(throttle, 0, &peer) == DTHROTTLE_OK && peer.received > 0;
}

/* Returns the number of the first event of a kind, or 0. */
static uint64_t event_of(const dthrottle_t *throttle, const char *kind)
{
    dthrottle_event_t events[CAPACITY];
    size_t count;
    events[0].size = sizeof events[0];
    MUST(dthrottle_events(throttle, 0, events, CAPACITY, &count) == DTHROTTLE_OK);
    for (size_t i = 0; i < count; i++)
        if (strcmp(events[i].kind, kind) == 0)
            return events[i].number;
    return 0;
}

/* Returns true if the peer has left or is down. It may be down before its leave arrives. */
static int has_gone(const dthrottle_t *throttle)
{
    return event_of(throttle, "peer_left") > 0 || event_of(throttle, "peer_down") > 0;
}

/* Returns true if a unit of a tag was charged. */
static int is_charged(const dthrottle_domain_t *domain, const char *tag)
{
    dthrottle_decision_t decision = DTHROTTLE_DECISION_INIT;
    MUST(dthrottle_peek(domain, tag, strlen(tag), 1, &decision) == DTHROTTLE_OK);
    return decision.remaining < BURST;
}

static int hit(const dthrottle_domain_t *domain, const char *tag)
{
    return dthrottle_allow(domain, tag, strlen(tag), 1) == 1;
}

static void statistics_describe_both_nodes(const dthrottle_t *one, const dthrottle_t *two)
{
    const dthrottle_cluster_stats_t mine = stats_of(one), theirs = stats_of(two);
    char address[64];
    dthrottle_peer_t peer = DTHROTTLE_PEER_INIT;
    dthrottle_stats_t stats = DTHROTTLE_STATS_INIT;

    EQUAL(mine.size, sizeof mine);
    CHECK(mine.in_cluster && mine.node != 0 && mine.node != theirs.node);
    EQUAL(mine.pid, getpid());
    EQUAL(mine.peer_count, 1);
    OK(dthrottle_cluster_peer(one, 0, &peer));
    EQUAL(peer.size, sizeof peer);
    CHECK(peer.node == theirs.node && peer.incarnation == theirs.incarnation);
    snprintf(address, sizeof address, "127.0.0.1:%d", ports[1]);
    TEXT(peer.address, address);
    TEXT(peer.state, "up");
    EQUAL(peer.lost, 0);
    CHECK(peer.age_ns < UINT64_C(120000000000) && peer.delay_ns < UINT64_C(120000000000));
    BAD(dthrottle_cluster_peer(one, 1, &peer));
    EQUAL(count_of(one, "reports_lost"), 0);
    EQUAL(count_of(one, "dropped_malformed"), 0);
    OK(dthrottle_stats(one, &stats));
    EQUAL(stats.unreported, 0);
}

static void events_are_the_same_one_by_one_and_all_at_once(const dthrottle_t *one, uint64_t peer)
{
    dthrottle_event_t events[CAPACITY];
    size_t count, alone;
    events[0].size = sizeof events[0];
    OK(dthrottle_events(one, 0, events, CAPACITY, &count));
    MUST(count > 0 && count < CAPACITY);
    uint64_t after = 0;
    for (size_t i = 0; i < count; i++) {
        dthrottle_event_t event = DTHROTTLE_EVENT_INIT;
        EQUAL(events[i].size, sizeof event);
        OK(dthrottle_events(one, after, &event, 1, &alone));
        EQUAL(alone, 1);
        CHECK(event.number > after && event.number == events[i].number);
        TEXT(event.kind, events[i].kind);
        CHECK(event.node == peer && event.node == events[i].node);
        EQUAL(event.value, events[i].value);
        CHECK(event.age_ns >= events[i].age_ns && event.age_ns < UINT64_C(120000000000));
        after = event.number;
    }

    /* Structs of a later version, which are larger. */
    struct {
        dthrottle_event_t known;
        uint64_t unknown[3];
    } later[3];
    const uint64_t guard = UINT64_C(0xA5A5A5A5A5A5A5A5);
    memset(later, 0xA5, sizeof later);
    later[0].known.size = sizeof later[0];
    OK(dthrottle_events(one, 0, &later[0].known, 2, &alone));
    CHECK(alone == (count < 2 ? count : 2));
    for (size_t i = 0; i < alone; i++) {
        EQUAL(later[i].known.size, sizeof later[i]);
        EQUAL(later[i].known.number, events[i].number);
        CHECK(later[i].unknown[0] == guard && later[i].unknown[2] == guard);
    }
    CHECK(later[2].known.number == guard);
    alone = 77;
    OK(dthrottle_events(one, 0, NULL, 0, &alone));
    EQUAL(alone, 0);
}

static void two_nodes_share_one_bucket(void)
{
    dthrottle_t *one = open_node(0), *two = open_node(1);
    dthrottle_domain_t *in_one = domain_of(one, NULL), *in_two = domain_of(two, NULL);

    EQUAL(stats_of(one).pid, 0);
    EQUAL(other_threads(), 0);
    OK(dthrottle_start(one));
    OK(dthrottle_start(one));
    CHECK(hit(in_two, "first"));
    /* A thread sets its name after it has started. */
    UNTIL(other_threads() == 2);
    UNTIL(sees(one, "up") && sees(two, "up"));
    UNTIL(hit(in_one, "there") && is_charged(in_two, "there"));
    UNTIL(hit(in_two, "back") && is_charged(in_one, "back"));
    /* The counters are written at intervals. */
    UNTIL(received(one) && count_of(one, "reports_sent") > 0);
    CHECK(event_of(one, "peer_up") > 0);
    CHECK(!has_gone(one));
    statistics_describe_both_nodes(one, two);
    events_are_the_same_one_by_one_and_all_at_once(one, stats_of(two).node);

    dthrottle_domain_free(in_two);
    dthrottle_close(two);
    UNTIL(has_gone(one) && sees(one, "left"));
    dthrottle_close(one);
    UNTIL(other_threads() == 0);
    EQUAL(dthrottle_allow(in_one, "t", 1, 1), DTHROTTLE_ERR_CLOSED);
    dthrottle_domain_free(in_one);
}

static dthrottle_busy_t *open_busy(int own)
{
    char toml[200], error[256];
    dthrottle_busy_t *busy = NULL;
    snprintf(toml, sizeof toml,
             "[cluster]\nname = 'busy'\nlisten = '127.0.0.1:%d'\npeers = ['127.0.0.1:%d']",
             ports[own], ports[1 - own]);
    if (!OK(dthrottle_busy_open(toml, strlen(toml), NULL, &busy, error, sizeof error)))
        fprintf(stderr, "    %s\n", error);
    MUST(busy != NULL);
    return busy;
}

static dthrottle_busy_stats_t busy_stats_of(const dthrottle_busy_t *busy)
{
    dthrottle_busy_stats_t stats = DTHROTTLE_BUSY_STATS_INIT;
    OK(dthrottle_busy_stats(busy, &stats));
    return stats;
}

static double limit_of(const dthrottle_busy_t *busy)
{
    double limit = 0;
    OK(dthrottle_busy_limit(busy, "api", 3, &limit));
    return limit;
}

static void a_busy_response_to_one_node_slows_the_other(void)
{
    dthrottle_busy_t *one = open_busy(0), *two = open_busy(1);

    OK(dthrottle_busy_start(one));
    OK(dthrottle_busy_start(two));
    UNTIL(busy_stats_of(one).peers == 1 && busy_stats_of(two).peers == 1);
    EQUAL(dthrottle_busy_should_send(two, "api", 3, NULL), 1);
    CHECK(limit_of(two) < 0);
    OK(dthrottle_busy_on_busy(one, "api", 3, UINT64_C(600000000000)));
    UNTIL(limit_of(two) > 0);
    EQUAL(dthrottle_busy_should_send(two, "api", 3, NULL), 0);
    EQUAL(busy_stats_of(two).remote_busy, 1);
    EQUAL(busy_stats_of(two).busy, 0);
    EQUAL(busy_stats_of(one).remote_busy, 0);
    dthrottle_busy_close(one);
    dthrottle_busy_close(two);
    UNTIL(other_threads() == 0);
}

static void a_throttle_without_a_cluster_has_no_cluster_state(void)
{
    dthrottle_t *throttle = open_on("rate = 1", NULL);
    dthrottle_event_t event = DTHROTTLE_EVENT_INIT;
    dthrottle_peer_t peer = DTHROTTLE_PEER_INIT;
    size_t count = 77;
    uint64_t value = 77;

    OK(dthrottle_start(throttle));
    EQUAL(other_threads(), 0);
    const dthrottle_cluster_stats_t stats = stats_of(throttle);
    CHECK(!stats.in_cluster && !stats.node && !stats.incarnation && !stats.pid);
    EQUAL(stats.peer_count, 0);
    BAD(dthrottle_cluster_peer(throttle, 0, &peer));
    OK(dthrottle_events(throttle, 0, &event, 1, &count));
    EQUAL(count, 0);
    BAD(dthrottle_cluster_count(throttle, "reports_sent", 12, &value));
    EQUAL(value, 0);
    dthrottle_close(throttle);
}

/* The peer of the processes below. Reports when a hit of a tag has arrived. */
static void listener(dthrottle_t *peer, int to)
{
    static const char *const tags[] = {"child", "parent", "heir"};
    dthrottle_domain_t *domain = domain_of(peer, NULL);
    checks_failed = 0;
    OK(dthrottle_start(peer));
    for (int i = 0; i < 3; i++) {
        UNTIL(is_charged(domain, tags[i]));
        MUST(write(to, "!", 1) == 1);
    }
    dthrottle_domain_free(domain);
}

static int has_reported(int from)
{
    char byte;
    return read(from, &byte, 1) == 1;
}

/*
 * A process that only opens and forks has no thread. The hits of a child reach the peer, then
 * those of the parent, which the child sends. After the child is killed, the parent continues.
 */
static void the_exchange_moves_between_parent_and_child(void)
{
    dthrottle_t *shared = open_node(0), *peer = open_node(1);
    dthrottle_domain_t *domain = domain_of(shared, NULL);
    const pid_t parent = getpid();
    int pipes[2], status;
    MUST(pipe(pipes) == 0 && fcntl(pipes[0], F_SETFL, O_NONBLOCK) == 0);

    const pid_t listening = fork();
    MUST(listening >= 0);
    if (listening == 0) {
        listener(peer, pipes[1]);
        dthrottle_close(peer);
        dthrottle_close(shared);
        dthrottle_domain_free(domain);
        _exit(checks_failed ? 1 : 0);
    }
    const pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        while (getppid() == parent) {
            hit(domain, "child");
            sleep_briefly();
        }
        _exit(1);
    }
    UNTIL(has_reported(pipes[0]));
    EQUAL(other_threads(), 0);
    EQUAL(stats_of(shared).pid, child);
    UNTIL(hit(domain, "parent") && has_reported(pipes[0]));
    UNTIL(other_threads() == 1);
    EQUAL(stats_of(shared).pid, child);
    MUST(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    UNTIL(hit(domain, "heir") && has_reported(pipes[0]));
    EQUAL(stats_of(shared).pid, parent);
    dthrottle_close(shared);
    UNTIL(other_threads() == 0);
    MUST(waitpid(listening, &status, 0) == listening);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    dthrottle_close(peer);
    dthrottle_domain_free(domain);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    find_ports();
    a_throttle_without_a_cluster_has_no_cluster_state();
    two_nodes_share_one_bucket();
    a_busy_response_to_one_node_slows_the_other();
    the_exchange_moves_between_parent_and_child();
    return check_report("cluster");
}
