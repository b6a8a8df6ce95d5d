"""Gatekeepers according to Smockron's document, written with pyzmq."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

import zmq
from daemons import LONG, Daemon

from dthrottle.client import Client

Context = zmq.Context[zmq.Socket[bytes]]

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
# The interval of the domain slow. No test takes a considerable part of it.
SLOW_INTERVAL = 600_000
# Prefix of tags that a gatekeeper reports to learn that earlier messages have been processed.
MARK = b"mark-"
marks = itertools.count()


def now_ms() -> int:
    """Return the time in the format of gatekeepers."""
    return int(time.time() * 1000)


class Gatekeeper:
    """Reports requests to the master, and receives delays."""

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

    def send(
        self,
        domain: str,
        status: str,
        tag: str,
        *more: bytes,
        now: int | None = None,
        delayed: int | None = None,
    ) -> None:
        received = str(now if now is not None else now_ms()).encode()
        until = received if status == "DELAYED" else b""
        if delayed is not None:
            until = str(delayed).encode()
        frames = [domain.encode() + b"\0", status.encode(), tag.encode(), received, until, *more]
        self.accounting.send_multipart(frames)

    def receive(self) -> tuple[bytes, bytes, bytes, int]:
        """Return the next message of the master, except those about marks."""
        while True:
            domain, command, tag, until = self.control.recv_multipart()
            if not tag.startswith(MARK):
                return domain, command, tag, int(until)

    def mark(self, domain: str) -> bytes:
        """Report requests of a new tag until it exceeds its limit. Return the tag."""
        tag = MARK + str(next(marks)).encode()
        for _ in range(12):
            self.send(domain, "ACCEPTED", tag.decode())
        return tag

    def is_silent(self, domain: str) -> bool:
        """Return whether the master sends nothing before its message about a mark."""
        mark, received_tag = self.mark(domain), b""
        while received_tag != mark:
            received_tag = self.control.recv_multipart()[2]
            if not received_tag.startswith(MARK):
                return False
        return True

    def wait_until_connected(self, domain: str) -> None:
        """Wait until both sockets are connected. PUB and SUB lose earlier messages."""
        deadline = time.monotonic() + LONG
        own_marks, received_tag = set[bytes](), b""
        while received_tag not in own_marks:
            assert time.monotonic() < deadline
            own_marks.add(self.mark(domain))
            while received_tag not in own_marks and self.control.poll(50):
                received_tag = self.control.recv_multipart()[2]


@contextmanager
def gatekeeper(daemon: Daemon, *domains: str) -> Iterator[Gatekeeper]:
    """Run a gatekeeper that is connected to its master until the end of the block."""
    context: Context = zmq.Context()
    keeper = Gatekeeper(context, daemon, *domains)
    try:
        keeper.wait_until_connected(domains[0])
        yield keeper
    finally:
        keeper.accounting.close(linger=0)
        keeper.control.close(linger=0)
        context.term()


def read_count(client: Client, name: str) -> int:
    """Return a count of the daemon by its name."""
    answers = client._request(b"\0stats\n", 1)
    assert answers is not None
    return int(answers[0].split(f'"{name}":'.encode())[1].split(b",")[0])
