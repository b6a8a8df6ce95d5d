"""Load from several threads, and what the clients saw by their own clocks."""

from __future__ import annotations

import http.client
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from servers import Server

THREADS = 8
ALLOWED, REFUSED = 200, 429


@dataclass
class Seen:
    """What all clients saw."""

    statuses: Counter[int] = field(default_factory=Counter)
    processes: Counter[str] = field(default_factory=Counter)
    allowed_at: list[float] = field(default_factory=list)
    broken: int = 0

    def rate(self) -> float:
        """Give how many passed in a second: the slope of their number over time."""
        times = sorted(self.allowed_at)
        return statistics.linear_regression(times, range(len(times))).slope


class Load:
    """Asks for one path as one client until it is stopped, or so many times."""

    def __init__(self, server: Server, path: str, client: str, requests: int | None = None) -> None:
        self.seen = Seen()
        self._server, self._path, self._client = server, path, client
        self._left = requests
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> Seen:
        """Stop, and give what was seen."""
        self._stop.set()
        return self.join()

    def join(self) -> Seen:
        """Wait for the last request."""
        for thread in self._threads:
            thread.join()
        return self.seen

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                if self._left == 0:
                    return
                if self._left is not None:
                    self._left -= 1
            self._ask()

    def _ask(self) -> None:
        try:
            status, headers, _ = self._server.get(self._path, X_Client=self._client)
        except (OSError, http.client.HTTPException):
            with self._lock:
                self.seen.broken += 1
            return
        now = time.monotonic()
        with self._lock:
            self.seen.statuses[status] += 1
            if status == ALLOWED:
                self.seen.allowed_at.append(now)
                self.seen.processes[headers["x-process"]] += 1
