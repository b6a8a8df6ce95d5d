"""Gatekeepers as the document describes them, with pyzmq, and the daemon as their master."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator

import pytest
import zmq
from daemons import LONG, Daemon

from dthrottle.client import Client

RULES = """
[domains.web]
rate = "0.1/s"
burst = 10
[domains.two]
rules = [{ rate = "0.1/s", burst = 10 }, { rate = "1 per minute", burst = 3 }]
[domains.free]
"""
INTERVAL = 10_000
# Whom a gatekeeper tells of to hear that what it told before is done.
MARK = b"mark-"
marks = itertools.count()


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon:
        yield daemon


class Gatekeeper:
    """Tells the master what it lets through, and hears whom to hold up."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], daemon: Daemon, *domains: str
    ) -> None:
        host, port = daemon.smockron.split(":")
        self.accounting = context.socket(zmq.PUB)
        self.control = context.socket(zmq.SUB)
        self.control.setsockopt(zmq.RCVTIMEO, int(LONG * 1000))
        for domain in domains:
            self.control.setsockopt(zmq.SUBSCRIBE, domain.encode() + b"\0")
        self.accounting.connect(f"tcp://{host}:{port}")
        self.control.connect(f"tcp://{host}:{int(port) + 1}")

    def tell(
        self, domain: str, status: str, who: str, *more: bytes, now: int | None = None
    ) -> None:
        stamp = str(now if now is not None else int(time.time() * 1000)).encode()
        delayed = stamp if status == "DELAYED" else b""
        frames = [domain.encode() + b"\0", status.encode(), who.encode(), stamp, delayed, *more]
        self.accounting.send_multipart(frames)

    def hear(self) -> tuple[bytes, bytes, bytes, int]:
        """Give the next answer, but for those to marks."""
        while True:
            domain, command, who, until = self.control.recv_multipart()
            if not who.startswith(MARK):
                return domain, command, who, int(until)

    def mark(self, domain: str) -> bytes:
        """Tell of somebody new until the limit is passed."""
        who = MARK + str(next(marks)).encode()
        for _ in range(12):
            self.tell(domain, "ACCEPTED", who.decode())
        return who

    def is_silent(self, domain: str) -> bool:
        """Say whether nothing is heard before the answer to a mark, which comes last."""
        mark, heard = self.mark(domain), b""
        while heard != mark:
            heard = self.control.recv_multipart()[2]
            if not heard.startswith(MARK):
                return False
        return True

    def meet(self, domain: str) -> None:
        """Wait until both sockets work: PUB and SUB lose what comes before."""
        deadline = time.monotonic() + LONG
        mine, heard = set[bytes](), b""
        while heard not in mine:
            assert time.monotonic() < deadline
            mine.add(self.mark(domain))
            while heard not in mine and self.control.poll(50):
                heard = self.control.recv_multipart()[2]


def counted(client: Client, name: str) -> int:
    """Give what the daemon counts under a name."""
    answers = client._talk(b"\0stats\n", 1)
    assert answers is not None
    return int(answers[0].split(f'"{name}":'.encode())[1].split(b",")[0])


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    """Give a context, which ends when all its sockets are closed."""
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    made.term()


@pytest.fixture
def open_keeper(
    daemon: Daemon, context: zmq.Context[zmq.Socket[bytes]]
) -> Iterator[Callable[..., Gatekeeper]]:
    """Give what opens gatekeepers for domains, and close them afterwards."""
    opened: list[Gatekeeper] = []

    def open_one(*domains: str) -> Gatekeeper:
        opened.append(Gatekeeper(context, daemon, *domains))
        return opened[-1]

    yield open_one
    for keeper in opened:
        keeper.accounting.close(linger=0)
        keeper.control.close(linger=0)


def test_the_eleventh_is_told(open_keeper: Callable[..., Gatekeeper]) -> None:
    keeper = open_keeper("web")
    keeper.meet("web")
    first = int(time.time() * 1000)
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
    one.meet("web")
    two.meet("web")
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
    keeper.meet("two")
    now = int(time.time() * 1000)
    for _ in range(4):
        keeper.tell("two", "ACCEPTED", "bob")
        keeper.tell("free", "ACCEPTED", "bob")
    domain, _, _, until = keeper.hear()
    assert domain == b"two\0"
    assert 59_000 <= until - now <= 60_000 + LONG * 1000
    assert keeper.is_silent("two")


def test_nonsense_is_counted(open_keeper: Callable[..., Gatekeeper], daemon: Daemon) -> None:
    keeper = open_keeper("web")
    keeper.meet("web")

    def bad() -> int:
        with Client(daemon.socket, timeout=LONG) as client:
            return counted(client, "smockron_bad")

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


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03"


def is_closed(client: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        while client.recv(65536):
            pass
    return True


def test_peers_that_do_not_behave(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    """All at once, for each takes its time; a gatekeeper beside them notices nothing."""
    with (
        Daemon(RULES, 'smockron = "127.0.0.1:0"\nwrite_timeout = "1s"') as daemon,
        contextlib.ExitStack() as stack,
    ):
        host, port = daemon.smockron.split(":")

        def say(words: bytes, control: bool = False) -> socket.socket:
            place = (host, int(port) + control)
            client = stack.enter_context(socket.create_connection(place, timeout=LONG))
            client.sendall(words)
            return client

        silent = [say(b"", control) for control in (False, True)] + [say(GREETING), say(b"\xff")]
        ready = GREETING + b"\x04" + bytes([len(READY) + 3]) + READY
        hostile = [
            ready + b"PUB" + b"\x02" + b"\xff" * 8,
            ready + b"PUB" + b"\x01\x00" * 1000,
            ready + b"PUB" + b"\x02\x00\x00\x00\x00\x00\x01\x00\x01" + bytes(65537),
            GREETING + b"\x00\x01x",
            b"GET / HTTP/1.1\r\n" * 10,
            os.urandom(1000).replace(b"\xff", b"\x00"),
        ]
        for words in hostile:
            assert is_closed(say(words)), words[:80]
        # Pings are answered; a subscription that is no domain's beginning is nothing.
        pinging = say(ready + b"PUB" + b"\x04\x0b\x04PING\x00\x00ping", control=False)
        received = b""
        while not received.endswith(b"\x04PONGping"):
            received += pinging.recv(1000)
        say(ready + b"SUB" + b"\x02" + (60_000).to_bytes(8, "big") + b"\x01" + bytes(59_999), True)
        mute = say(ready + b"SUB" + b"\x00\x05\x01web\x00", control=True)
        keeper = Gatekeeper(context, daemon, "web")
        stack.callback(keeper.control.close, linger=0)
        stack.callback(keeper.accounting.close, linger=0)
        keeper.meet("web")
        # Messages of 60 KB that one gatekeeper reads, and the other never.
        long = "x" * 60_000
        with Client(daemon.socket, timeout=LONG) as client:
            deadline = time.monotonic() + LONG
            while counted(client, "connections_too_slow") == 0:
                assert time.monotonic() < deadline
                keeper.tell("web", "ACCEPTED", long)
                while keeper.control.poll(1):
                    keeper.control.recv_multipart()
        assert is_closed(mute)
        for client_ in silent:
            assert is_closed(client_)
        keeper.meet("web")
