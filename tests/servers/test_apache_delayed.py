"""How many requests Apache's module lets wait: they keep threads or processes from others."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import apache
from apache import location
from server import Server, delayed, files_of, side_by_side, until

# Nobody's turn comes during a test.
LINES = 'DThrottleRule default "1/hour" burst=1\nDThrottleRule soon "2/s" burst=1\n' + "".join(
    location(path, "DThrottle On", "DThrottleTag %{REQUEST_URI}", "DThrottleMaxDelay 1h")
    for path in ("/wait", "/other")
)
LINES += location("/soon", "DThrottle On", "DThrottleDomain soon", "DThrottleMaxDelay 5s")


@contextmanager
def apache_with(lines: str, mpm: str = "event") -> Iterator[tuple[Server, ExitStack]]:
    """Run Apache, and end it although requests wait; and what has to be closed before."""
    with apache.apache(LINES + lines, mpm=mpm) as server:
        try:
            with ExitStack() as stack:
                yield server, stack
        finally:
            children = server.children()
            server.process.send_signal(signal.SIGTERM)
            for child in children:
                kill(child)


def kill(child: int) -> None:
    """Kill a child, unless it has ended by itself."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def waits(server: Server, stack: ExitStack, path: str) -> bool:
    """Whether a request waits: its bucket is empty for an hour."""
    if server.get(path).status != 200:
        return False
    client = delayed(server, path)
    if client:
        stack.enter_context(client)
    return client is not None


def is_full(server: Server, path: str) -> None:
    """Whoever would have to wait is refused, and pays nothing."""
    assert server.get(path).status == 200
    for _ in range(3):
        answer = server.get(path)
        assert answer.status == 429
        assert answer.seconds < 30
        # If it had been charged for, it would have to wait longer.
        assert 3590 < int(answer.headers["retry-after"]) <= 3600
    assert "too many delayed requests (DThrottleMaxDelayed)" in server.log()


def bounded(mpm: str) -> None:
    with apache_with("DThrottleMaxDelayed 3\n", mpm) as (server, stack):
        assert all(waits(server, stack, f"/wait/{number}") for number in range(3))
        is_full(server, "/other/full")
        assert server.get("/free").status == 200, "there is a thread for who need not wait"
        # The places of those that are killed are taken by the next that start.
        for child in server.children():
            kill(child)
        numbers = itertools.count()

        def has_room() -> bool:
            try:
                return waits(server, stack, f"/wait/again/{next(numbers)}")
            except OSError:
                return False

        for _ in range(3):
            until("there is room again", has_room)
        is_full(server, "/other/again")


def test_no_more_wait_than_may() -> None:
    side_by_side(bounded, apache.MPMS)


def child_of(server: Server, client: socket.socket) -> int:
    """Find the child that has the other end of a connection."""
    port = f":{client.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(port)}
    (child,) = (child for child in server.children() if sockets & files_of(child))
    return child


def test_who_is_killed_makes_room_though_no_child_starts() -> None:
    lines = "StartServers 5\nMinSpareServers 1\nDThrottleMaxDelayed 1\n"
    with apache_with(lines, "prefork") as (server, stack):
        assert server.get("/wait/killed").status == 200
        client = delayed(server, "/wait/killed")
        assert client
        is_full(server, "/other/full")
        with client:
            before = server.children()
            killed = child_of(server, client)
            kill(killed)
            until("it is gone", lambda: killed not in server.children())
        assert waits(server, stack, "/wait/again")
        assert set(server.children()) == set(before) - {killed}
        is_full(server, "/other/again")


def test_who_has_waited_makes_room() -> None:
    with apache_with("DThrottleMaxDelayed 1\n") as (server, _):
        answers = [server.get("/soon") for _ in range(4)]
        statuses = [(answer.status, answer.headers["x-status"]) for answer in answers]
        assert statuses == [(200, "passed")] + [(200, "delayed")] * 3


def test_a_graceful_restart_forgets_nobody() -> None:
    with apache_with("DThrottleMaxDelayed 2\n") as (server, stack):
        assert all(waits(server, stack, f"/wait/{number}") for number in range(2))
        before = server.children()
        server.process.send_signal(signal.SIGUSR1)
        until("other children", lambda: set(server.children()) - set(before))
        until("a child", lambda: server.get("/free").status == 200)
        is_full(server, "/other/full")


def by_default(mpm: str) -> None:
    with apache_with("", mpm) as (server, stack):
        # A quarter of what the configuration of these tests has.
        most = {"prefork": 5, "worker": 15, "event": 15}[mpm]
        assert all(waits(server, stack, f"/wait/{number}") for number in range(most))
        is_full(server, "/other/full")


def test_a_quarter_by_default() -> None:
    side_by_side(by_default, apache.MPMS)


def test_none_at_all() -> None:
    with apache_with("DThrottleMaxDelayed 0\n") as (server, _):
        is_full(server, "/other/full")
