"""A server as a node of a cluster: one of its processes exchanges, and another one goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apache
import nginx
import pytest
from server import Server, delayed, files_of, free_port, until

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
    """Give a server as a node, and another node."""
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
    """Give the processes that have a socket for datagrams."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    inodes = {f"socket:[{line.split()[9]}]" for line in lines}
    return [child for child in server.children() if inodes & files_of(child)]


def is_heard(server: Server, other: Throttle, key: str) -> bool:
    """Whether what the server lets pass is charged at the other node. Asks again and again."""
    assert server.get(f"/web?{query(server, key)}").status == 200
    return other.domain("web").peek(key).remaining < BURST


def query(server: Server, key: str) -> str:
    """Give the part of an address that has this key."""
    return f"key={key}" if (server.folder / "nginx.conf").exists() else key


@kinds
def test_one_process_exchanges_and_another_goes_on_when_it_is_killed(kind: str) -> None:
    with node(kind) as (server, other):
        until("the server is heard", lambda: is_heard(server, other, "first"))
        (first,) = exchangers(server)
        assert len(list(Path(f"/proc/{server.process.pid}/task").iterdir())) == 1
        os.kill(first, signal.SIGKILL)
        until("another one exchanges", lambda: exchangers(server) not in ([], [first]))
        until("the server is heard again", lambda: is_heard(server, other, "second"))
        assert len(exchangers(server)) == 1
        # And the other way round.
        path = f"/web?{query(server, 'third')}"

        def is_charged() -> bool:
            other.domain("web").allow("third")
            return int(server.get(path).headers["x-remaining"]) < BURST - 100

        until("the other node is heard", is_charged)


@kinds
def test_an_old_process_leaves_the_exchange_to_new_ones(kind: str) -> None:
    with node(kind, processes=1) as (server, other):
        until("the server is heard", lambda: is_heard(server, other, "first"))
        (old,) = exchangers(server)
        waiting = until("a request waits", lambda: delayed(server, f"/hold?{query(server, 'h')}"))
        server.process.send_signal(AGAIN[kind])
        until("a new one exchanges", lambda: exchangers(server) not in ([], [old], [old] * 2))
        assert old not in exchangers(server)
        assert old in server.children(), "it still has a request"
        until("the server is heard again", lambda: is_heard(server, other, "second"))
        waiting.close()
        until("the old one ends", lambda: old not in server.children())


def test_a_cost_above_the_burst_is_told_as_a_whole() -> None:
    with node("apache") as (server, other):
        until("the server is heard", lambda: is_heard(server, other, "first"))
        assert server.get("/costly?much").status == 200
        until("all is charged", lambda: other.domain("web").peek("much").balance <= -BURST)
