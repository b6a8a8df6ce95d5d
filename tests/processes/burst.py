"""A burst of real HTTP requests from several threads, and the answers by status and process."""

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
    """The number of answers by status and by process."""

    statuses: Counter[int] = field(default_factory=Counter)
    processes: Counter[int] = field(default_factory=Counter)

    def assert_shared_burst(self) -> None:
        """Check that exactly the burst passed, and that several workers answered."""
        assert self.statuses == {ALLOWED: BURST, REFUSED: REQUESTS - BURST}
        assert len(self.processes) > 1, "only one worker answered"

    def assert_separate_bursts(self) -> None:
        """Check that each worker passed its own burst, or all its requests if they were fewer."""
        own = sum(min(count, BURST) for count in self.processes.values())
        assert self.statuses == {ALLOWED: own, REFUSED: REQUESTS - own}
        assert own > BURST


def request(port: int) -> tuple[int, int]:
    """Make a request on a new connection, and return the status and the worker process."""
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
    for status, process in answers_of(port):
        answers.statuses[status] += 1
        answers.processes[process] += 1
    return answers


def answers_of(port: int) -> Iterator[tuple[int, int]]:
    """Yield all answers."""
    with ThreadPoolExecutor(THREADS) as threads:
        yield from threads.map(request, [port] * REQUESTS)
