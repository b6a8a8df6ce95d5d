"""Servers as nodes of a cluster: one process exchanges, and another one can replace it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apache
import nginx
import pytest
from server import Server, free_port, open_files, wait_in_delay, wait_until

from dthrottle import Throttle

BURST = 1000
RULES = f"""
[domains.web]
rate = "1/day"
burst = {BURST}
[domains.hold]
rate = "10/minute"
burst = 2
"""


def run_nginx(here: int, there: int, processes: int) -> AbstractContextManager[Server]:
    http = (
        "dthrottle_zone $arg_key zone=web rate=1r/d;"
        "dthrottle_zone $arg_key zone=hold rate=10r/m;"
        f"dthrottle_cluster name=test listen=127.0.0.1:{here} peer=127.0.0.1:{there};"
    )
    uses = nginx.location("/web", f"dthrottle zone=web burst={BURST - 1} nodelay;")
    uses += nginx.location("/hold", "dthrottle zone=hold burst=1;")
    return nginx.nginx(http, uses, workers=str(processes))


def run_apache(here: int, there: int, processes: int) -> AbstractContextManager[Server]:
    on = ["DThrottle On", "DThrottleTag %{QUERY_STRING}"]
    lines = (
        f"DThrottleCluster name=test listen=127.0.0.1:{here} peer=127.0.0.1:{there}\n"
        f"DThrottleRule web 1/day burst={BURST}\nDThrottleRule hold 10/minute burst=2\n"
        f"StartServers {processes}\nMinSpareThreads 1\nDThrottleHeaders On\n"
        + apache.location("/web", *on, "DThrottleDomain web")
        + apache.location("/costly", *on, "DThrottleDomain web", f"DThrottleCost {2 * BURST}")
        + apache.location("/hold", *on, "DThrottleDomain hold", "DThrottleMaxDelay 10s")
    )
    return apache.apache(lines)


RUN: dict[str, Callable[[int, int, int], AbstractContextManager[Server]]] = {
    "nginx": run_nginx,
    "apache": run_apache,
}
AGAIN = {"nginx": signal.SIGHUP, "apache": signal.SIGUSR1}
kinds = pytest.mark.parametrize("kind", RUN)


@contextmanager
def node(kind: str, processes: int = 3) -> Iterator[tuple[Server, Throttle]]:
    """Run a server as a node, and another node."""
    here, there = free_port(), free_port()
    cluster = (
        f"[cluster]\nname = 'test'\nlisten = '127.0.0.1:{there}'\npeers = ['127.0.0.1:{here}']\n"
    )
    with RUN[kind](here, there, processes) as server:
        other = Throttle.from_toml(RULES + cluster)
        other.start()
        try:
            yield server, other
        finally:
            other.close()


def exchangers(server: Server) -> list[int]:
    """Return the processes that have a UDP socket."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    inodes = {f"socket:[{line.split()[9]}]" for line in lines}
    return [child for child in server.children() if inodes & open_files(child)]


def is_reported(server: Server, other: Throttle, key: str) -> bool:
    """Send a request, and return whether the other node has charged any request of the key."""
    assert server.get(f"/web?{query(server, key)}").status == 200
    return other.domain("web").peek(key).remaining < BURST


def query(server: Server, key: str) -> str:
    """Return the query of the URL for a key."""
    return f"key={key}" if (server.folder / "nginx.conf").exists() else key


@kinds
def test_another_process_takes_over_the_exchange_if_the_first_is_killed(kind: str) -> None:
    with node(kind) as (server, other):
        wait_until("a report of the server is charged", lambda: is_reported(server, other, "first"))
        (first,) = exchangers(server)
        assert len(list(Path(f"/proc/{server.process.pid}/task").iterdir())) == 1
        os.kill(first, signal.SIGKILL)
        wait_until("another process exchanges", lambda: exchangers(server) not in ([], [first]))
        wait_until(
            "another report of the server is charged", lambda: is_reported(server, other, "second")
        )
        assert len(exchangers(server)) == 1
        # Reports of the other node are charged here, too.
        path = f"/web?{query(server, 'third')}"

        def is_charged() -> bool:
            other.domain("web").allow("third")
            return int(server.get(path).headers["x-remaining"]) < BURST - 100

        wait_until("a report of the other node is charged", is_charged)


@kinds
def test_a_process_that_finishes_its_requests_leaves_the_exchange(kind: str) -> None:
    with node(kind, processes=1) as (server, other):
        wait_until("a report of the server is charged", lambda: is_reported(server, other, "first"))
        (old,) = exchangers(server)
        waiting = wait_until(
            "a request is delayed", lambda: wait_in_delay(server, f"/hold?{query(server, 'h')}")
        )
        server.process.send_signal(AGAIN[kind])
        wait_until(
            "a new process exchanges", lambda: exchangers(server) not in ([], [old], [old] * 2)
        )
        assert old not in exchangers(server)
        assert old in server.children(), "the old process still delays a request"
        wait_until(
            "another report of the server is charged", lambda: is_reported(server, other, "second")
        )
        waiting.close()
        wait_until("the old process has exited", lambda: old not in server.children())


def test_a_cost_above_the_burst_is_reported_in_full() -> None:
    with node("apache") as (server, other):
        wait_until("a report of the server is charged", lambda: is_reported(server, other, "first"))
        assert server.get("/costly?much").status == 200
        wait_until(
            "the other node has charged the whole cost",
            lambda: other.domain("web").peek("much").balance <= -BURST,
        )
