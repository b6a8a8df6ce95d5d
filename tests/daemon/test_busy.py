"""A daemon reports busy responses of the processes of its table to other hosts."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from daemons import LONG, Daemon

from dthrottle.busy import BusyThrottle


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < end, f"the condition did not hold within {LONG} s"
        time.sleep(0.01)


def free_ports() -> list[int]:
    with socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in (one, two)]


Callers = tuple[BusyThrottle, BusyThrottle]


@pytest.fixture
def callers(request: pytest.FixtureRequest) -> Iterator[Callers]:
    """One on the table of a daemon in a cluster, and one that is another node of it."""
    own, other = (f"127.0.0.1:{port}" for port in free_ports())
    keys = f'name = "calls"\nlisten = "{own}"\npeers = ["{other}"]\n{request.param}'
    there: Any = {"name": "calls", "listen": other, "peers": [own]}
    with (
        Daemon(f'rate = "1/s"\n[cluster]\n{keys}') as daemon,
        BusyThrottle(table={"name": "daemon-test", "dir": str(daemon.dir)}) as beside,
        BusyThrottle(cluster=there) as elsewhere,
    ):
        elsewhere.start()
        until(lambda: beside.stats().peers == elsewhere.stats().peers == 1)
        for caller in (beside, elsewhere):
            assert caller.should_send("api")
            assert caller.should_send("search")
        yield beside, elsewhere


@pytest.mark.parametrize("callers", ["busy = true"], indirect=True)
def test_a_busy_response_reaches_other_hosts_through_the_daemon(callers: Callers) -> None:
    beside, elsewhere = callers
    beside.on_busy("api", 60)
    until(lambda: not elsewhere.should_send("api"))
    elsewhere.on_busy("search", 60)
    until(lambda: not beside.should_send("search"))
    assert [caller.stats().remote_busy for caller in callers] == [1, 1]
    assert [caller.stats().busy for caller in callers] == [1, 1]
    assert beside.turn("search").wait == pytest.approx(60, abs=30)


@pytest.mark.parametrize("callers", [""], indirect=True)
def test_a_daemon_without_the_key_busy_does_not_report_busy_responses(callers: Callers) -> None:
    beside, elsewhere = callers
    beside.on_busy("api", 60)
    elsewhere.on_busy("search", 60)
    time.sleep(0.5)
    assert beside.should_send("search")
    assert elsewhere.should_send("api")
