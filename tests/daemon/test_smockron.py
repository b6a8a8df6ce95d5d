"""Gatekeepers as the document describes them, with pyzmq, and the daemon as their master."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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
[domains.slow]
rate = "1 per 10 minutes"
burst = 10
[domains.free]
"""
INTERVAL = 10_000
# Of the domain slow, so that no test takes a considerable part of it.
SLOW_INTERVAL = 600_000
# Whom a gatekeeper tells of to hear that what it told before is done.
MARK = b"mark-"
marks = itertools.count()


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(RULES, 'smockron = "127.0.0.1:0"\nsmockron_max_ahead = "1h"') as daemon:
        yield daemon


def now_ms() -> int:
    """Give the time as gatekeepers write it."""
    return int(time.time() * 1000)


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
        self,
        domain: str,
        status: str,
        who: str,
        *more: bytes,
        now: int | None = None,
        delayed: int | None = None,
    ) -> None:
        received = str(now if now is not None else now_ms()).encode()
        until = received if status == "DELAYED" else b""
        if delayed is not None:
            until = str(delayed).encode()
        frames = [domain.encode() + b"\0", status.encode(), who.encode(), received, until, *more]
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
    keeper.meet("slow")
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


def test_one_wrong_clock_does_not_hold_a_client(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    """A gatekeeper whose clock is a year ahead, with the default of smockron_max_ahead."""
    with Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon, contextlib.ExitStack() as stack:
        keeper = Gatekeeper(context, daemon, "slow")
        stack.callback(keeper.control.close, linger=0)
        stack.callback(keeper.accounting.close, linger=0)
        keeper.meet("slow")
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
    keeper.meet("slow")
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
    keeper.meet("web")

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


PIDFD_GETFD = 438


def test_both_sockets_have_tcp_nodelay(daemon: Daemon) -> None:
    """Read the option from the daemon's own sockets, by a copy of each of its descriptors."""
    assert daemon.process is not None
    host, port = daemon.smockron.split(":")
    pid = daemon.process.pid
    pidfd = os.pidfd_open(pid)
    syscall = ctypes.CDLL(None, use_errno=True).syscall

    def nodelay(client: socket.socket) -> list[int]:
        found = []
        for number in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if not number.readlink().name.startswith("socket:"):
                    continue
                copy = syscall(PIDFD_GETFD, pidfd, int(number.name), 0)
                with socket.socket(fileno=copy) as theirs:
                    if theirs.getpeername() == client.getsockname():
                        found.append(theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        return found

    try:
        for control in (False, True):
            place = (host, int(port) + control)
            with socket.create_connection(place, timeout=LONG) as client:
                assert client.recv(64).startswith(b"\xff"), "the greeting"
                (value,) = nodelay(client)
                assert value != 0
    finally:
        os.close(pidfd)


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
