"""Whole calls side by side, with the same limits, and the Redis that one of them needs.

All must be admitted: a refusal is another, shorter path.
"""

from __future__ import annotations

import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from limits import parse
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import FixedWindowRateLimiter

from dthrottle import Throttle


def tag(number: int) -> str:
    """Give a tag by its number, in the form of an address."""
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def stream(tags: int, count: int, seed: int) -> list[str]:
    """Give tags in random order, one after the other in memory.

    A server has just read the tag from a request, and has it in the cache.
    """
    if tags == 1:
        return [tag(0)] * count
    chance = random.Random(seed)
    return [tag(chance.randrange(tags)) for _ in range(count)]


class Ours:
    """A throttle with the default table."""

    def __init__(self, limit: str) -> None:
        self.throttle = Throttle(limit)

    def time(self, tags: list[str]) -> float:
        """Ask for all of them; nanoseconds a call, loop included."""
        throttle = self.throttle
        start = time.perf_counter_ns()
        for tag in tags:
            throttle.allow(tag)
        return (time.perf_counter_ns() - start) / len(tags)

    def check_nothing_refused(self) -> None:
        """See that nobody was refused."""
        if self.throttle.stats().refused:
            raise SystemExit("dthrottle refused some")


class Limits:
    """A fixed window of `limits`."""

    def __init__(self, limit: str, storage: Storage | None = None) -> None:
        self.storage = storage or MemoryStorage()
        self.limiter = FixedWindowRateLimiter(self.storage)
        self.item = parse(limit)
        self.last = tag(0)

    def time(self, tags: list[str]) -> float:
        """Ask for all of them; nanoseconds a call, loop included."""
        limiter, item = self.limiter, self.item
        start = time.perf_counter_ns()
        for tag in tags:
            limiter.hit(item, tag)
        elapsed = time.perf_counter_ns() - start
        self.last = tags[-1]
        return elapsed / len(tags)

    def check_nothing_refused(self) -> None:
        """See that nobody was refused, and wait for the thread that looks for old entries.

        It would go on in the other's time.
        """
        if not self.limiter.test(self.item, self.last):
            raise SystemExit("limits refused some")
        if isinstance(self.storage, MemoryStorage):
            self.storage.timer.join()


@contextmanager
def redis() -> Iterator[str]:
    """Run a Redis without persistence, on TCP on the loopback, as most have it; give its URI."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="dthrottle-bench-") as folder:
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        command += ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(port)
            yield f"redis://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def redis_storage(uri: str) -> Storage:
    """Give the storage of `limits` there."""
    return storage_from_string(uri)


def _wait(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("Redis does not answer")
