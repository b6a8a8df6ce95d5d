"""Gatekeepers as Smockron's document describes them, with pyzmq."""

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
# Of the domain slow, so that no test takes a considerable part of it.
SLOW_INTERVAL = 600_000
# Whom a gatekeeper tells of to hear that what it told before is done.
MARK = b"mark-"
marks = itertools.count()


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


@contextmanager
def gatekeeper(daemon: Daemon, *domains: str) -> Iterator[Gatekeeper]:
    """Run a gatekeeper that is connected to its master, until the end of the block."""
    context: Context = zmq.Context()
    keeper = Gatekeeper(context, daemon, *domains)
    try:
        keeper.meet(domains[0])
        yield keeper
    finally:
        keeper.accounting.close(linger=0)
        keeper.control.close(linger=0)
        context.term()


def counted(client: Client, name: str) -> int:
    """Give what the daemon counts under a name."""
    answers = client._talk(b"\0stats\n", 1)
    assert answers is not None
    return int(answers[0].split(f'"{name}":'.encode())[1].split(b",")[0])
