"""The daemon as master of Smockron: what it charges, and when it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from daemons import LONG, Daemon
from gatekeepers import INTERVAL, RULES, SLOW_INTERVAL, Gatekeeper, counted, gatekeeper, now_ms

from dthrottle.client import Client


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(RULES, 'smockron = "127.0.0.1:0"\nsmockron_max_ahead = "1h"') as daemon:
        yield daemon


@pytest.fixture
def open_keeper(daemon: Daemon) -> Iterator[Callable[..., Gatekeeper]]:
    """Give what opens gatekeepers for domains, and close them afterwards."""
    with ExitStack() as stack:
        yield lambda *domains: stack.enter_context(gatekeeper(daemon, *domains))


def test_the_eleventh_is_told(open_keeper: Callable[..., Gatekeeper]) -> None:
    keeper = open_keeper("web")
    first = now_ms()
    for _ in range(10):
        keeper.tell("web", "ACCEPTED", "alice", now=first)
    keeper.tell("web", "REJECTED", "alice")
    assert keeper.is_silent("web"), "one to ten"
    keeper.tell("web", "ACCEPTED", "alice", b"some log info")
    domain, command, who, until = keeper.hear()
    assert (domain, command, who) == (b"web\0", b"DELAY_UNTIL", b"alice")
    # The master's clock counts, which may look at the first message late.
    assert INTERVAL <= until - first <= INTERVAL + LONG * 1000
    keeper.tell("web", "DELAYED", "alice")
    assert abs(keeper.hear()[3] - until - INTERVAL) <= INTERVAL / 200, "one interval further"


def test_two_gatekeepers_share_the_limit(open_keeper: Callable[..., Gatekeeper]) -> None:
    one, two = open_keeper("web"), open_keeper("web", "free")
    for keeper in (one, two):
        for _ in range(5):
            keeper.tell("web", "ACCEPTED", "both")
    # What one told is done, then what two told.
    assert one.is_silent("web")
    assert two.is_silent("web")
    two.tell("web", "ACCEPTED", "both")
    assert one.hear()[2] == two.hear()[2] == b"both"
    assert two.is_silent("web")
    assert one.is_silent("web")


def test_any_rule_of_a_domain(open_keeper: Callable[..., Gatekeeper]) -> None:
    keeper = open_keeper("two", "free")
    now = now_ms()
    for _ in range(4):
        keeper.tell("two", "ACCEPTED", "bob")
        keeper.tell("free", "ACCEPTED", "bob")
    domain, _, _, until = keeper.hear()
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
def test_a_timestamp_ahead_is_charged_at_its_time(
    open_keeper: Callable[..., Gatekeeper],
    status: str,
    received: int,
    delayed: int | None,
    silent: int,
) -> None:
    """The last one is above smockron_max_ahead, and counts like a message without a timestamp."""
    keeper = open_keeper("slow")
    now = now_ms()
    who = f"{status} {received} {delayed}"

    def tell() -> None:
        until = None if delayed is None else now + delayed
        keeper.tell("slow", status, who, now=now + received, delayed=until)

    for _ in range(silent):
        tell()
    assert keeper.is_silent("slow")
    tell()
    domain, command, held, until = keeper.hear()
    assert (domain, command, held) == (b"slow\0", b"DELAY_UNTIL", who.encode())
    # Messages without a time of their own count from when they arrived.
    assert abs(until - now - SLOW_INTERVAL) <= LONG * 1000


def test_one_wrong_clock_does_not_hold_a_client() -> None:
    """A gatekeeper whose clock is a year ahead, with the default of smockron_max_ahead."""
    with (
        Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon,
        gatekeeper(daemon, "slow") as keeper,
    ):
        now = now_ms()
        for ahead in (365 * 86_400_000, 2**64 - 1 - now, 61_000 + LONG * 1000):
            keeper.tell("slow", "ACCEPTED", "alice", now=now + int(ahead))
        assert keeper.is_silent("slow")
        for _ in range(8):
            keeper.tell("slow", "ACCEPTED", "alice", now=now)
        assert abs(keeper.hear()[3] - now - SLOW_INTERVAL) <= LONG * 1000
        with Client(daemon.socket, timeout=LONG) as client:
            assert counted(client, "smockron_far_ahead") == 3
            assert counted(client, "smockron_bad") == 0
        assert "more than smockron_max_ahead ahead" in daemon.wait_for("smockron: ")


def test_a_message_without_a_timestamp_counts_when_it_arrives(
    open_keeper: Callable[..., Gatekeeper],
) -> None:
    keeper = open_keeper("slow")
    now = now_ms()
    for count in range(11):
        frames = [b"slow\0", b"ACCEPTED", b"untimed", b"", b""]
        if count % 2:
            frames = [b"slow\0", b"DELAYED", b"untimed", str(now + AHEAD).encode(), b""]
        keeper.accounting.send_multipart(frames)
    assert abs(keeper.hear()[3] - now - SLOW_INTERVAL) <= LONG * 1000


def test_bad_messages_are_counted_and_logged(
    open_keeper: Callable[..., Gatekeeper], daemon: Daemon
) -> None:
    keeper = open_keeper("web")

    def bad() -> int:
        with Client(daemon.socket, timeout=LONG) as client:
            return counted(client, "smockron_bad")

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
    assert not daemon.has_logged("smockron: "), "each cause is logged once a minute"
