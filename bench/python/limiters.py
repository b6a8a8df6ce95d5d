"""The limiters that are compared, with the same limits, and a Redis for one of them.

All checks must be admitted, because a refusal takes a shorter code path.
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
    """Return the tag with this number, which looks like an IPv4 address."""
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def stream(tags: int, count: int, seed: int) -> list[str]:
    """Return tags in random order, adjacent in memory.

    A server has just read the tag from a request, so the tag is in the cache.
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
        """Check all tags; return nanoseconds per call, including the loop."""
        throttle = self.throttle
        start = time.perf_counter_ns()
        for tag in tags:
            throttle.allow(tag)
        return (time.perf_counter_ns() - start) / len(tags)

    def check_nothing_refused(self) -> None:
        """Exit if a check was refused."""
        if self.throttle.stats().refused:
            raise SystemExit("dthrottle refused a check")


class Limits:
    """A fixed window of `limits`."""

    def __init__(self, limit: str, storage: Storage | None = None) -> None:
        self.storage = storage or MemoryStorage()
        self.limiter = FixedWindowRateLimiter(self.storage)
        self.item = parse(limit)
        self.last = tag(0)

    def time(self, tags: list[str]) -> float:
        """Check all tags; return nanoseconds per call, including the loop."""
        limiter, item = self.limiter, self.item
        start = time.perf_counter_ns()
        for tag in tags:
            limiter.hit(item, tag)
        elapsed = time.perf_counter_ns() - start
        self.last = tags[-1]
        return elapsed / len(tags)

    def check_nothing_refused(self) -> None:
        """Exit if a check was refused. Wait for the thread that removes old entries.

        Otherwise it would run during the measurement of the other library.
        """
        if not self.limiter.test(self.item, self.last):
            raise SystemExit("limits refused a check")
        if isinstance(self.storage, MemoryStorage):
            self.storage.timer.join()


@contextmanager
def redis() -> Iterator[str]:
    """Run a Redis without persistence on a loopback TCP port; yield its URI."""
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
    """Return the storage of `limits` for this Redis."""
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
