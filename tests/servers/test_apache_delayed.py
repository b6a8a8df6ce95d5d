"""The limit of delayed requests in Apache, which occupy threads or processes."""

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
from server import Server, open_files, run_in_parallel, wait_in_delay, wait_until

# No delay of the domain `default` ends during a test.
LINES = 'DThrottleRule default "1/hour" burst=1\nDThrottleRule soon "2/s" burst=1\n' + "".join(
    location(path, "DThrottle On", "DThrottleTag %{REQUEST_URI}", "DThrottleMaxDelay 1h")
    for path in ("/wait", "/other")
)
LINES += location("/soon", "DThrottle On", "DThrottleDomain soon", "DThrottleMaxDelay 5s")


@contextmanager
def apache_with(lines: str, mpm: str = "event") -> Iterator[tuple[Server, ExitStack]]:
    """Run Apache, and kill it at the end although requests are delayed."""
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
    """Kill a child, unless it has exited already."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def is_delayed(server: Server, stack: ExitStack, path: str) -> bool:
    """Return whether a second request is delayed, for which the bucket is empty."""
    if server.get(path).status != 200:
        return False
    client = wait_in_delay(server, path)
    if client:
        stack.enter_context(client)
    return client is not None


def check_full(server: Server, path: str) -> None:
    """Check that further requests are refused and not charged."""
    assert server.get(path).status == 200
    for _ in range(3):
        answer = server.get(path)
        assert answer.status == 429
        assert answer.seconds < 30
        # If the requests were charged, this time would be longer.
        assert 3590 < int(answer.headers["retry-after"]) <= 3600
    assert "too many delayed requests (DThrottleMaxDelayed)" in server.log()


def check_limit(mpm: str) -> None:
    with apache_with("DThrottleMaxDelayed 3\n", mpm) as (server, stack):
        assert all(is_delayed(server, stack, f"/wait/{number}") for number in range(3))
        check_full(server, "/other/full")
        assert server.get("/free").status == 200, "requests without a delay are still served"
        # The children that replace the killed ones free their slots.
        for child in server.children():
            kill(child)
        numbers = itertools.count()

        def has_room() -> bool:
            try:
                return is_delayed(server, stack, f"/wait/again/{next(numbers)}")
            except OSError:
                return False

        for _ in range(3):
            wait_until("another request can be delayed", has_room)
        check_full(server, "/other/again")


def test_max_delayed_limits_delayed_requests_in_all_children() -> None:
    run_in_parallel(check_limit, apache.MPMS)


def child_of(server: Server, client: socket.socket) -> int:
    """Return the child that serves a connection."""
    port = f":{client.getsockname()[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(port)}
    (child,) = (child for child in server.children() if sockets & open_files(child))
    return child


def test_a_killed_child_frees_its_slot_although_no_child_starts() -> None:
    lines = "StartServers 5\nMinSpareServers 1\nDThrottleMaxDelayed 1\n"
    with apache_with(lines, "prefork") as (server, stack):
        assert server.get("/wait/killed").status == 200
        client = wait_in_delay(server, "/wait/killed")
        assert client
        check_full(server, "/other/full")
        with client:
            before = server.children()
            killed = child_of(server, client)
            kill(killed)
            wait_until("the child has exited", lambda: killed not in server.children())
        assert is_delayed(server, stack, "/wait/again")
        assert set(server.children()) == set(before) - {killed}
        check_full(server, "/other/again")


def test_the_end_of_a_delay_makes_room_for_another() -> None:
    with apache_with("DThrottleMaxDelayed 1\n") as (server, _):
        answers = [server.get("/soon") for _ in range(4)]
        statuses = [(answer.status, answer.headers["x-status"]) for answer in answers]
        assert statuses == [(200, "passed")] + [(200, "delayed")] * 3


def test_a_graceful_restart_keeps_the_count_of_delayed_requests() -> None:
    with apache_with("DThrottleMaxDelayed 2\n") as (server, stack):
        assert all(is_delayed(server, stack, f"/wait/{number}") for number in range(2))
        before = server.children()
        server.process.send_signal(signal.SIGUSR1)
        wait_until("other children", lambda: set(server.children()) - set(before))
        wait_until("a child", lambda: server.get("/free").status == 200)
        check_full(server, "/other/full")


def check_default(mpm: str) -> None:
    with apache_with("", mpm) as (server, stack):
        # A quarter of MaxRequestWorkers in the configuration of these tests.
        most = {"prefork": 5, "worker": 15, "event": 15}[mpm]
        assert all(is_delayed(server, stack, f"/wait/{number}") for number in range(most))
        check_full(server, "/other/full")


def test_a_quarter_of_the_workers_may_delay_by_default() -> None:
    run_in_parallel(check_default, apache.MPMS)


def test_no_request_is_delayed_if_max_delayed_is_0() -> None:
    with apache_with("DThrottleMaxDelayed 0\n") as (server, _):
        check_full(server, "/other/full")
