"""Load from several threads, with the results that the clients measure."""

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
class LoadResults:
    """The responses to all clients."""

    statuses: Counter[int] = field(default_factory=Counter)
    processes: Counter[str] = field(default_factory=Counter)
    allowed_at: list[float] = field(default_factory=list)
    broken: int = 0

    def rate(self) -> float:
        """Return how many requests passed per second: the slope of their number over time."""
        times = sorted(self.allowed_at)
        return statistics.linear_regression(times, range(len(times))).slope


class Load:
    """Requests one path as one client, until it is stopped or a number of times."""

    def __init__(self, server: Server, path: str, client: str, requests: int | None = None) -> None:
        self.results = LoadResults()
        self._server, self._path, self._client = server, path, client
        self._left = requests
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> LoadResults:
        """Stop, and return the results."""
        self._stop.set()
        return self.join()

    def join(self) -> LoadResults:
        """Wait for the last request, and return the results."""
        for thread in self._threads:
            thread.join()
        return self.results

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                if self._left == 0:
                    return
                if self._left is not None:
                    self._left -= 1
            self._send()

    def _send(self) -> None:
        try:
            status, headers, _ = self._server.get(self._path, X_Client=self._client)
        except (OSError, http.client.HTTPException):
            with self._lock:
                self.results.broken += 1
            return
        now = time.monotonic()
        with self._lock:
            self.results.statuses[status] += 1
            if status == ALLOWED:
                self.results.allowed_at.append(now)
                self.results.processes[headers["x-process"]] += 1
