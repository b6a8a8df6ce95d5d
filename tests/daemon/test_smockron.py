"""Gatekeepers as the document describes them, with pyzmq, and the daemon as their master."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import zmq
from daemons import LONG, Daemon

from dthrottle.client import Client

RULES = """
[domains.web]
rate = "1/s"
burst = 10
[domains.two]
rules = [{ rate = "1/s", burst = 10 }, { rate = "1 per minute", burst = 3 }]
[domains.free]
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon:
        yield daemon


class Gatekeeper:
    """Tells the master what it lets through, and hears whom to hold up."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], daemon: Daemon, *domains: str) -> None:
        host, port = daemon.smockron.split(":")
        self.accounting = context.socket(zmq.PUB)
        self.control = context.socket(zmq.SUB)
        self.control.setsockopt(zmq.RCVTIMEO, int(LONG * 1000))
        for domain in domains:
            self.control.setsockopt(zmq.SUBSCRIBE, domain.encode() + b"\0")
        self.accounting.connect(f"tcp://{host}:{port}")
        self.control.connect(f"tcp://{host}:{int(port) + 1}")

    def tell(self, domain: str, status: str, who: str, *more: bytes, now: int | None = None) -> None:
        stamp = str(now if now is not None else int(time.time() * 1000)).encode()
        delayed = stamp if status == "DELAYED" else b""
        frames = [domain.encode() + b"\0", status.encode(), who.encode(), stamp, delayed, *more]
        self.accounting.send_multipart(frames)

    def hear(self) -> tuple[bytes, bytes, bytes, int]:
        domain, command, who, until = self.control.recv_multipart()
        return domain, command, who, int(until)

    def is_silent(self) -> bool:
        return self.control.poll(300) == 0

    def meet(self, domain: str) -> None:
        """Wait until both sockets work: PUB and SUB lose what comes before."""
        deadline = time.monotonic() + LONG
        who = f"meet-{id(self)}"
        while self.control.poll(50) == 0:
            assert time.monotonic() < deadline
            for _ in range(12):
                self.tell(domain, "ACCEPTED", who)
        time.sleep(0.2)
        while self.control.poll(100):
            self.control.recv_multipart()


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield context
    context.destroy(linger=0)


def test_the_eleventh_is_told(context: zmq.Context[zmq.Socket[bytes]], daemon: Daemon) -> None:
    keeper = Gatekeeper(context, daemon, "web")
    keeper.meet("web")
    first = int(time.time() * 1000)
    for _ in range(10):
        keeper.tell("web", "ACCEPTED", "alice", now=first)
    keeper.tell("web", "REJECTED", "alice")
    assert keeper.is_silent(), "one to ten"
    keeper.tell("web", "ACCEPTED", "alice", b"some log info")
    domain, command, who, until = keeper.hear()
    assert (domain, command, who) == (b"web\0", b"DELAY_UNTIL", b"alice")
    assert first + 1000 - 50 <= until <= first + 1000 + 5000, "the clock is the master's"
    assert first + 1000 <= until or until - first > 900
    keeper.tell("web", "DELAYED", "alice")
    assert abs(keeper.hear()[3] - until - 1000) <= 5, "one interval further"


def test_two_gatekeepers_share_the_limit(
    context: zmq.Context[zmq.Socket[bytes]], daemon: Daemon
) -> None:
    one, two = Gatekeeper(context, daemon, "web"), Gatekeeper(context, daemon, "web", "free")
    one.meet("web")
    two.meet("web")
    assert one.is_silent()
    while one.control.poll(0):
        one.hear()
    for keeper in (one, two):
        for _ in range(5):
            keeper.tell("web", "ACCEPTED", "both")
    assert one.is_silent()
    assert two.is_silent()
    two.tell("web", "ACCEPTED", "both")
    assert one.hear()[2] == two.hear()[2] == b"both"
    assert one.is_silent()


def test_any_rule_of_a_domain(context: zmq.Context[zmq.Socket[bytes]], daemon: Daemon) -> None:
    keeper = Gatekeeper(context, daemon, "two", "free")
    keeper.meet("two")
    now = int(time.time() * 1000)
    for _ in range(4):
        keeper.tell("two", "ACCEPTED", "bob")
        keeper.tell("free", "ACCEPTED", "bob")
    domain, _, _, until = keeper.hear()
    assert domain == b"two\0"
    assert 59_000 <= until - now <= 60_000 + LONG * 1000
    assert keeper.is_silent()


def test_nonsense_is_counted(context: zmq.Context[zmq.Socket[bytes]], daemon: Daemon) -> None:
    keeper = Gatekeeper(context, daemon, "web")
    keeper.meet("web")

    def bad() -> int:
        with Client(daemon.socket, timeout=LONG) as client:
            answers = client._talk(b"\0stats\n", 1)
        assert answers is not None
        return int(answers[0].split(b'"smockron_bad":')[1].split(b",")[0])

    before = bad()
    for frames in (
        [b"web\0", b"ACCEPTED", b"x", b"1"],
        [b"web\0", b"ACCEPTED", b"x", b"soon", b""],
        [b"web\0", b"LOST", b"x", b"1", b""],
        [b"nobody\0", b"ACCEPTED", b"x", b"1", b""],
    ):
        keeper.accounting.send_multipart(frames)
    deadline = time.monotonic() + LONG
    while bad() < before + 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert bad() == before + 4
