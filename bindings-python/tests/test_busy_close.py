"""Closing a busy throttle: later calls, its cluster, other threads, forked children."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_busy_calls import Maker, Server, each, server
from test_cluster import close, config, other_threads_run_while, ports, until
from test_processes import run

from dthrottle import ClosedError
from dthrottle.busy import BusyThrottle

__all__ = ["server"]


@pytest.mark.parametrize(
    "call",
    [
        lambda busy: busy.should_send("a"),
        lambda busy: busy.turn("a", now=1),
        lambda busy: busy.on_busy("a", 1),
        lambda busy: busy.on_ok("a"),
        lambda busy: busy.limit("a"),
        lambda busy: busy.rate("a"),
        lambda busy: busy.forget("a"),
        lambda busy: busy.start(),
    ],
)
def test_call_after_close_raises_closed_error(call: Callable[[BusyThrottle], object]) -> None:
    with BusyThrottle() as busy:
        assert busy.should_send("a")
        call(busy)
    with pytest.raises(ClosedError, match=r"^the throttle is closed; open a new one$"):
        call(busy)
    busy.close()
    assert busy.stats().sent >= 1
    assert busy.now() > 0


def test_close_leaves_the_cluster() -> None:
    one, two = ports(2)
    with BusyThrottle(cluster=config(one, two)) as here:
        there = BusyThrottle(cluster=config(two, one))
        for node in (here, there):
            node.start()
        until(lambda: here.stats().peers == there.stats().peers == 1)
        there.close()
        until(lambda: here.stats().peers == 0)
        assert here.should_send("a")


@each
def test_requests_pass_after_the_throttle_is_closed(
    server: Server, make: Maker, error: type[Exception]
) -> None:
    busy = BusyThrottle()
    get = make(busy)
    server.answers = [(503, {"Retry-After": "60"}), (503, {})]
    assert get(server.url) == 503
    with pytest.raises(error):
        get(server.url)
    busy.close()
    assert [get(server.url) for _ in range(3)] == [503, 200, 200]
    assert busy.stats().busy == 1


def drop(throttles: list[BusyThrottle]) -> None:
    while throttles:
        throttles.pop()


@pytest.mark.parametrize("end", [close, drop])
def test_other_threads_run_while_a_busy_throttle_closes(
    end: Callable[[list[BusyThrottle]], None],
) -> None:
    assert other_threads_run_while(BusyThrottle, end)


# The child has the throttle of its parent, but not the thread of the exchange.
FORK = """
import os, sys, time
from dthrottle.busy import BusyThrottle

def node(own, peer):
    cluster = {"name": "test", "listen": "127.0.0.1:" + own, "peers": ["127.0.0.1:" + peer]}
    return BusyThrottle(cluster=cluster)

def until(done):
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)

kept, peer = node(*sys.argv[1:3]), node(*sys.argv[2:0:-1])
kept.start()
peer.start()
until(lambda: kept.stats().peers == peer.stats().peers == 1)
child = os.fork()
if child == 0:
    try:
        if sys.argv[3] == "close":
            kept.close()
            kept.close()
        del kept, peer
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
# A node that leaves reports it immediately, so a wrong report would arrive within this time.
for _ in range(50):
    assert kept.stats().peers == peer.stats().peers == 1
    time.sleep(0.01)
kept.on_busy("a", 60)
until(lambda: not peer.should_send("a"))
kept.close()
until(lambda: peer.stats().peers == 0)
"""


@pytest.mark.parametrize("end", ["close", "drop"])
def test_close_in_a_forked_child_leaves_the_parent_in_the_cluster(end: Any) -> None:
    run(FORK, *map(str, ports(2)), end)
