"""Clusters: nodes on real sockets of this machine, and nodes whose process forks."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import pytest
from test_processes import run

from dthrottle import ArgumentError, ClosedError, ClusterConfig, ClusterStats, ManualClock, Throttle

RATE = "1/100 years"
BURST = 100_000


def ports(count: int) -> list[int]:
    """Return ports that were free a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def config(own: int, peer: int) -> ClusterConfig:
    """Return the configuration of a node with one peer."""
    return {"name": "test", "listen": f"127.0.0.1:{own}", "peers": [f"127.0.0.1:{peer}"]}


def until(done: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after a minute."""
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def stats(throttle: Throttle) -> ClusterStats:
    """Return the cluster statistics of a node."""
    found = throttle.cluster_stats()
    assert found is not None
    return found


def sees(throttle: Throttle, state: str) -> Callable[[], bool]:
    """Return a function that says whether a node sees its only peer in a state."""
    return lambda: [peer.state for peer in stats(throttle).peers] == [state]


def kinds(throttle: Throttle, after: int = 0) -> list[str]:
    """Return the kinds of the events after a number."""
    return [event.kind for event in throttle.events(after)]


def test_nodes_with_different_rules_record_an_event() -> None:
    own, other = ports(2)
    one = Throttle(RATE, burst=BURST, cluster=config(own, other))
    two = Throttle(RATE, burst=BURST // 2, cluster=config(other, own))
    with closing(one), closing(two):
        for node, peer in ((one, two), (two, one)):
            node.start()
            peer.start()
            until(lambda node=node: "rules_differ" in kinds(node))  # type: ignore[misc]
            (differs,) = [event for event in node.events() if event.kind == "rules_differ"]
            assert differs.node == stats(peer).node
        # Each node counts the hits of the other one by its own rules.
        until(lambda: one.allow("tag") and two.peek("tag").remaining < BURST // 2)
        assert (one.peek("tag").limit, two.peek("tag").limit) == (BURST, BURST // 2)


def test_nodes_count_a_tag_in_one_bucket() -> None:
    own, other = ports(2)
    one = Throttle(RATE, burst=BURST, cluster=config(own, other))
    two = Throttle(RATE, burst=BURST, cluster=config(other, own))
    with closing(one), closing(two):
        one.start()
        # The first check starts the exchange.
        two.allow("first")
        until(sees(one, "up"))
        until(sees(two, "up"))
        # Repeated, because reports that arrive too late are not charged.
        until(lambda: one.allow("tag") and two.peek("tag").remaining < BURST)
        until(lambda: two.allow("back") and one.peek("back").remaining < BURST)
        assert one.stats().unreported == 0
        # Counters are written to the table at intervals.
        until(lambda: stats(one).peers[0].received > 0)
        until(lambda: stats(one).counts["reports_sent"] > 0)

        mine, (peer,) = stats(one), stats(one).peers
        assert mine.pid == os.getpid()
        assert mine.node != stats(two).node
        assert (peer.node, peer.incarnation) == (stats(two).node, stats(two).incarnation)
        assert peer.address == f"127.0.0.1:{other}"
        assert (peer.lost, mine.counts["reports_lost"]) == (0, 0)
        assert isinstance(peer.age, float)
        assert isinstance(peer.delay, float)
        assert 0 <= peer.age < 60
        assert 0 <= peer.delay < 60
        assert mine.counts["reports_received"] > 0
        assert mine.counts["dropped_malformed"] == 0
        assert repr(peer).startswith(
            f"PeerStats(node={peer.node}, incarnation={peer.incarnation}, "
            f"address='127.0.0.1:{other}', state='up', age="
        )
        assert repr(mine).startswith(f"ClusterStats(node={mine.node}, incarnation=")
        assert repr(mine).endswith(f", counts={mine.counts})")

        up, *rest = [event for event in one.events() if event.kind == "peer_up"]
        assert (up.node, up.value, rest) == (peer.node, 0, [])
        assert repr(up).startswith(f"ClusterEvent(number={up.number}, age=")
        last = one.events()[-1].number
        assert one.events(last) == []
        assert one.events(after=up.number - 1)[0].number == up.number

        two.close()
        # The message that the node left may be lost; then it is first seen as down.
        until(lambda: not {"peer_left", "peer_down"}.isdisjoint(kinds(one, last)))
        until(sees(one, "left"))


def test_cluster_stats_cannot_be_changed() -> None:
    own, other = ports(2)
    with Throttle("1/s", cluster=config(own, other)) as throttle:
        seen = stats(throttle)
        for name in ["node", "incarnation", "pid", "peers", "counts"]:
            with pytest.raises(AttributeError):
                setattr(seen, name, 0)
        seen.counts.clear()
        assert "reports_sent" in seen.counts
        assert seen == seen
        assert {seen} == {seen}
        # Without a check no exchange has started.
        assert (seen.incarnation, seen.pid, seen.peers) == (0, 0, [])
        assert set(seen.counts.values()) == {0}


def test_throttle_without_a_cluster_has_no_cluster_stats() -> None:
    with Throttle("1/s") as throttle:
        throttle.start()
        assert throttle.cluster_stats() is None
        assert throttle.events() == []
        assert throttle.stats().unreported == 0


def test_throttle_with_a_manual_clock_starts_no_exchange(clock: ManualClock) -> None:
    own, other = ports(2)
    throttle = Throttle("1/s", cluster=config(own, other), clock=clock)
    throttle.start()
    assert throttle.allow("tag")
    assert stats(throttle).pid == 0


def test_closed_throttle_starts_no_exchange() -> None:
    own, other = ports(2)
    throttle = Throttle("1/s", cluster=config(own, other))
    throttle.close()
    with pytest.raises(ClosedError):
        throttle.start()
    assert stats(throttle).pid == 0
    assert throttle.events() == []


@pytest.mark.parametrize("after", [-1, 2**64, 1.0, "1", None])
def test_invalid_event_number_is_an_error(throttle: Throttle, after: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^`after` must be an int from 0 to 2\*\*64 - 1, got"):
        throttle.events(after)


def other_thread_runs_during(work: Callable[[], object]) -> bool:
    """Return whether another thread runs during a call.

    The switch interval is so long that it runs only if the call releases the GIL.
    """
    held, ran = threading.Lock(), []

    def wait() -> None:
        with held:
            ran.append(True)

    thread = threading.Thread(target=wait)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        with held:
            thread.start()
        work()
        return bool(ran)
    finally:
        sys.setswitchinterval(before)
        thread.join()


def other_threads_run_while(make: Callable[..., Any], end: Callable[[list[Any]], object]) -> bool:
    """Return whether other threads run while throttles are closed, in any of 20 rounds.

    Closing takes a millisecond, and a busy machine may wake the other thread later.
    """
    own, other = ports(2)

    def start() -> Any:
        throttle = make(cluster=config(own, other))
        throttle.start()
        return throttle

    def do_round() -> bool:
        throttles = [start() for _ in range(5)]
        return other_thread_runs_during(lambda: end(throttles))

    return any(do_round() for _ in range(20))


def close(throttles: list[Any]) -> None:
    for throttle in throttles:
        throttle.close()


def test_other_threads_run_while_a_throttle_closes() -> None:
    assert other_threads_run_while(partial(Throttle, "1/s"), close)


FORK = """
import os, signal, sys, time
from contextlib import suppress
from pathlib import Path
from dthrottle import Throttle

BURST = 100_000

def node(own, peer):
    cluster = {"name": "test", "listen": "127.0.0.1:" + own, "peers": ["127.0.0.1:" + peer]}
    return Throttle("1/100 years", burst=BURST, cluster=cluster)

def threads():
    # The main thread has the program's name.
    tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != str(os.getpid())]
    names = []
    for task in tasks:
        # A thread may end while it is inspected.
        with suppress(FileNotFoundError, ProcessLookupError):
            names.append((task / "comm").read_text().strip())
    return names

def until(done):
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)

def fork(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child

shared, peer = node(*sys.argv[1:3]), node(*sys.argv[2:0:-1])
heard, tell = os.pipe()
os.set_blocking(heard, False)

def listen():
    peer.start()
    for tag in ["child", "parent", "heir"]:
        until(lambda: peer.peek(tag).remaining < BURST)
        os.write(tell, b"!")

def is_heard():
    try:
        return os.read(heard, 1) == b"!"
    except BlockingIOError:
        return False

def worker():
    until(lambda: shared.allow("child") and os.getppid() != parent)

parent = os.getpid()
listener = fork(listen)
child = fork(worker)
until(is_heard)
# This process has made no check yet.
assert threads() == [], threads()
assert shared.cluster_stats().pid == child
# Its hits are in the same table, and the child still runs the exchange.
until(lambda: shared.allow("parent") and is_heard())
until(lambda: threads() == ["dthrottle"])
assert shared.cluster_stats().pid == child
# Another process takes over from one that was killed.
os.kill(child, signal.SIGKILL)
assert os.waitpid(child, 0)[1] == signal.SIGKILL
until(lambda: shared.allow("heir") and is_heard())
assert shared.cluster_stats().pid == parent
shared.close()
until(lambda: threads() == [])
assert os.waitpid(listener, 0)[1] == 0
"""


def test_forked_processes_form_one_node() -> None:
    run(FORK, *map(str, ports(2)))


# The fork follows right after start(), before the thread has done anything.
FORK_AT_ONCE = """
import os, sys, time
from dthrottle import Throttle

cluster = {"name": "at once", "listen": f"127.0.0.1:{sys.argv[1]}"}
throttle = Throttle("1/s", burst=1000, cluster=cluster)
throttle.start()
child = os.fork()
if child == 0:
    end = time.monotonic() + 60
    while len(os.listdir("/proc/self/task")) < 2:
        throttle.allow("tag")
        if time.monotonic() > end:
            os._exit(1)
        time.sleep(0.01)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
throttle.close()
"""


def test_child_forked_right_after_start_has_its_own_thread() -> None:
    run(FORK_AT_ONCE, *map(str, ports(1)))
