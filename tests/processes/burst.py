"""A burst of real HTTP requests from several threads, and who answered what."""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

WORKERS = 4
BURST = 100
REQUESTS = 4 * BURST
THREADS = 8

ALLOWED, REFUSED = 200, 429


@dataclass
class Answers:
    """How often each status was answered, and by which processes."""

    statuses: Counter[int] = field(default_factory=Counter)
    processes: Counter[int] = field(default_factory=Counter)

    def are_exactly_the_burst(self) -> None:
        """Check that the workers together let through the burst, and that several took part."""
        assert self.statuses == {ALLOWED: BURST, REFUSED: REQUESTS - BURST}
        assert len(self.processes) > 1, "one worker answered everything: nothing was shown"

    def are_each_for_itself(self) -> None:
        """Check that each worker let through a burst of its own, as long as it was asked."""
        own = sum(min(count, BURST) for count in self.processes.values())
        assert self.statuses == {ALLOWED: own, REFUSED: REQUESTS - own}
        assert own > BURST


def ask(port: int) -> tuple[int, int]:
    """Make one request on a connection of its own: the status, and the process that answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/")
        response = connection.getresponse()
        return response.status, int(response.read())
    finally:
        connection.close()


def send(port: int) -> Answers:
    """Make all requests."""
    answers = Answers()
    for status, process in in_threads(port):
        answers.statuses[status] += 1
        answers.processes[process] += 1
    return answers


def in_threads(port: int) -> Iterator[tuple[int, int]]:
    """Give every answer."""
    with ThreadPoolExecutor(THREADS) as threads:
        yield from threads.map(ask, [port] * REQUESTS)
