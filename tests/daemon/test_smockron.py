"""The daemon as Smockron's master: charges and delays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from daemons import LONG, Daemon
from gatekeepers import INTERVAL, RULES, SLOW_INTERVAL, Gatekeeper, gatekeeper, now_ms, read_count

from dthrottle.client import Client


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(RULES, 'smockron = "127.0.0.1:0"\nsmockron_max_ahead = "1h"') as daemon:
        yield daemon


@pytest.fixture
def open_keeper(daemon: Daemon) -> Iterator[Callable[..., Gatekeeper]]:
    """Return a function that opens gatekeepers, which are closed afterwards."""
    with ExitStack() as stack:
        yield lambda *domains: stack.enter_context(gatekeeper(daemon, *domains))


def test_the_first_request_above_the_burst_causes_a_delay(
    open_keeper: Callable[..., Gatekeeper],
) -> None:
    keeper = open_keeper("web")
    first = now_ms()
    for _ in range(10):
        keeper.send("web", "ACCEPTED", "alice", now=first)
    keeper.send("web", "REJECTED", "alice")
    assert keeper.is_silent("web"), "10 requests are within the burst"
    keeper.send("web", "ACCEPTED", "alice", b"some log info")
    domain, command, tag, until = keeper.receive()
    assert (domain, command, tag) == (b"web\0", b"DELAY_UNTIL", b"alice")
    # The delay follows the clock of the master, which may read the first message late.
    assert INTERVAL <= until - first <= INTERVAL + LONG * 1000
    keeper.send("web", "DELAYED", "alice")
    assert abs(keeper.receive()[3] - until - INTERVAL) <= INTERVAL / 200, (
        "the delay must grow by one interval"
    )


def test_two_gatekeepers_share_the_limit(open_keeper: Callable[..., Gatekeeper]) -> None:
    one, two = open_keeper("web"), open_keeper("web", "free")
    for keeper in (one, two):
        for _ in range(5):
            keeper.send("web", "ACCEPTED", "both")
    # Both have been processed.
    assert one.is_silent("web")
    assert two.is_silent("web")
    two.send("web", "ACCEPTED", "both")
    assert one.receive()[2] == two.receive()[2] == b"both"
    assert two.is_silent("web")
    assert one.is_silent("web")


def test_each_rule_of_a_domain_can_cause_a_delay(open_keeper: Callable[..., Gatekeeper]) -> None:
    keeper = open_keeper("two", "free")
    now = now_ms()
    for _ in range(4):
        keeper.send("two", "ACCEPTED", "bob")
        keeper.send("free", "ACCEPTED", "bob")
    domain, _, _, until = keeper.receive()
    assert domain == b"two\0"
    assert 59_000 <= until - now <= 60_000 + LONG * 1000
    assert keeper.is_silent("two")


AHEAD = 4 * SLOW_INTERVAL


@pytest.mark.parametrize(
    ("status", "received", "delayed", "silent"),
    [
        ("ACCEPTED", AHEAD, None, 6),
        ("DELAYED", 0, AHEAD, 6),
        ("DELAYED", AHEAD, 0, 10),
        ("ACCEPTED", 0, AHEAD, 10),
        ("ACCEPTED", -AHEAD, None, 10),
        ("DELAYED", -AHEAD, -AHEAD, 10),
        ("ACCEPTED", 9 * SLOW_INTERVAL, None, 10),
    ],
)
def test_a_request_with_a_timestamp_ahead_is_charged_at_that_time(
    open_keeper: Callable[..., Gatekeeper],
    status: str,
    received: int,
    delayed: int | None,
    silent: int,
) -> None:
    """The last case is above smockron_max_ahead, so it counts at its arrival."""
    keeper = open_keeper("slow")
    now = now_ms()
    tag = f"{status} {received} {delayed}"

    def send() -> None:
        until = None if delayed is None else now + delayed
        keeper.send("slow", status, tag, now=now + received, delayed=until)

    for _ in range(silent):
        send()
    assert keeper.is_silent("slow")
    send()
    domain, command, delayed_tag, until = keeper.receive()
    assert (domain, command, delayed_tag) == (b"slow\0", b"DELAY_UNTIL", tag.encode())
    # Messages without a valid timestamp count when they arrive.
    assert abs(until - now - SLOW_INTERVAL) <= LONG * 1000


def test_a_gatekeeper_with_a_wrong_clock_does_not_delay_a_client() -> None:
    """A gatekeeper whose clock is a year ahead, with the default of smockron_max_ahead."""
    with (
        Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon,
        gatekeeper(daemon, "slow") as keeper,
    ):
        now = now_ms()
        for ahead in (365 * 86_400_000, 2**64 - 1 - now, 61_000 + LONG * 1000):
            keeper.send("slow", "ACCEPTED", "alice", now=now + int(ahead))
        assert keeper.is_silent("slow")
        for _ in range(8):
            keeper.send("slow", "ACCEPTED", "alice", now=now)
        assert abs(keeper.receive()[3] - now - SLOW_INTERVAL) <= LONG * 1000
        with Client(daemon.socket, timeout=LONG) as client:
            assert read_count(client, "smockron_far_ahead") == 3
            assert read_count(client, "smockron_bad") == 0
        assert "more than smockron_max_ahead ahead" in daemon.wait_for("smockron: ")


def test_a_message_without_a_timestamp_is_charged_at_its_arrival(
    open_keeper: Callable[..., Gatekeeper],
) -> None:
    keeper = open_keeper("slow")
    now = now_ms()
    for count in range(11):
        frames = [b"slow\0", b"ACCEPTED", b"untimed", b"", b""]
        if count % 2:
            frames = [b"slow\0", b"DELAYED", b"untimed", str(now + AHEAD).encode(), b""]
        keeper.accounting.send_multipart(frames)
    assert abs(keeper.receive()[3] - now - SLOW_INTERVAL) <= LONG * 1000


def test_bad_messages_are_counted_and_logged(
    open_keeper: Callable[..., Gatekeeper], daemon: Daemon
) -> None:
    keeper = open_keeper("web")

    def bad() -> int:
        with Client(daemon.socket, timeout=LONG) as client:
            return read_count(client, "smockron_bad")

    before = bad()
    for frames, cause in (
        ([b"web\0", b"ACCEPTED", b"x", b"1"], "fewer than five frames"),
        ([b"web\0", b"ACCEPTED", b"x", b"soon", b""], "a timestamp was not a number"),
        ([b"web\0", b"LOST", b"x", b"1", b""], "a status was not ACCEPTED"),
        ([b"nobody\0", b"ACCEPTED", b"x", b"1", b""], "a domain was not in the configuration"),
    ):
        keeper.accounting.send_multipart(frames)
        assert "WARN" in daemon.wait_for(cause)
    for frames in (
        [b"web\0", b"ACCEPTED", b"x", b"+1", b""],
        [b"web\0", b"DELAYED", b"x", b"1", b"soon"],
        [b"web\0", b"REJECTED", b"x", b"99999999999999999999", b""],
    ):
        keeper.accounting.send_multipart(frames)
    assert keeper.is_silent("web")
    assert bad() == before + 7
    assert not daemon.has_logged("smockron: "), "each cause must be logged only once a minute"
