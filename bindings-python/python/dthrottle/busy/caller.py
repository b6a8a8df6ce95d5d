"""The part that all adapters share: the service of a request, waiting, and busy statuses.

A caller has one busy throttle and is independent of HTTP libraries.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import closing
from datetime import timedelta
from typing import Final

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.names import service_of
from dthrottle.busy.retry import LONGEST, retry_after
from dthrottle.errors import ArgumentError, ClosedError
from dthrottle.forked import in_child
from dthrottle.options import seconds

__all__ = ["BUSY", "Caller", "ServiceBusy"]

BUSY: Final = frozenset({429, 503})
"""The default statuses of busy responses."""

# The longest wait for other requests in the queue, in seconds, because the limit may rise meanwhile.
_MAX_QUEUE_WAIT: Final = 1.0


class ServiceBusy(Exception):
    """A request was not sent because the service is busy.

    Each adapter raises a class of its own that is also an exception of its HTTP library.
    """

    service: str
    """The name of the service."""

    wait: float
    """Seconds after which to try again."""

    def __init__(self, service: str, wait: float) -> None:
        super().__init__(f"{service} is busy: not sent, try again in {wait:.3f} s")
        self.service = service
        self.wait = wait

    def __reduce__(self) -> tuple[type[ServiceBusy], tuple[str, float]]:
        return type(self), (self.service, self.wait)


class Caller:
    """Checks each request with a busy throttle, and records each response.

    Every request passes if the throttle is closed.
    """

    def __init__(
        self,
        throttle: BusyThrottle | None = None,
        *,
        max_delay: float | timedelta = 0.0,
        statuses: Collection[int] = BUSY,
        service: Callable[[str], str] | None = None,
        error: Callable[[str, float], ServiceBusy] = ServiceBusy,
    ) -> None:
        """Check the options, which all adapters have.

        max_delay: the seconds that a request may wait for its turn before it is refused.
        statuses: the statuses of busy responses.
        service: returns the name of the service of a URL; by default host and port.
        """
        if throttle is not None and not isinstance(throttle, BusyThrottle):
            raise ArgumentError(f"`throttle` must be a BusyThrottle, got {throttle!r}")
        max_delay = seconds(max_delay)
        if isinstance(max_delay, bool) or not isinstance(max_delay, (int, float)):
            raise ArgumentError(f"`max_delay` must be a number of seconds, got {max_delay!r}")
        if not 0 <= max_delay <= LONGEST:
            raise ArgumentError(f"`max_delay` must be seconds from 0 to a year, got {max_delay!r}")
        if isinstance(statuses, (str, bytes)) or not all(isinstance(s, int) for s in statuses):
            raise ArgumentError(f"`statuses` must be numbers such as 429 and 503, got {statuses!r}")
        if service is not None and not callable(service):
            raise ArgumentError(f"`service` must be a function from URL to name, got {service!r}")
        self.throttle = BusyThrottle() if throttle is None else throttle
        self.max_delay = float(max_delay)
        self._statuses = frozenset(statuses)
        self._service = service_of if service is None else service
        self._error = error
        # The waiting requests of each service, in order. A forked child starts without them. There is
        # no lock, so requests that arrive at the same time may be in two queues of one service.
        self._queues: dict[str, list[object]] = {}
        in_child(self, Caller._forget_queues)

    def service(self, url: str) -> str:
        """Return the name of the service of a URL."""
        return self._service(url)

    def wait_for_turn(self, service: str) -> None:
        """Wait until a request may be sent. Raise ServiceBusy if that takes longer than max_delay."""
        with closing(self._waits(service)) as waits:
            for wait in waits:
                time.sleep(wait)

    async def wait_for_turn_async(
        self, service: str, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        """Like ``wait_for_turn``, with an async sleep."""
        with closing(self._waits(service)) as waits:
            for wait in waits:
                await sleep(wait)

    def answered(self, service: str, status: int, retry: str | None) -> None:
        """Record the status of a response."""
        try:
            if status in self._statuses:
                self.throttle.on_busy(service, retry_after(retry))
            else:
                self.throttle.on_ok(service)
        except ClosedError:
            pass

    def _waits(self, service: str) -> Generator[float, None, None]:
        """Yield times to wait until a request may be sent."""
        end = time.monotonic() + self.max_delay
        me, queue = object(), None
        try:
            while True:
                try:
                    turn = self.throttle.turn(service)
                except ClosedError:
                    return
                if turn:
                    return
                left = end - time.monotonic()
                if turn.wait > left:
                    raise self._error(service, turn.wait)
                if queue is None:
                    queue = self._queues.setdefault(service, [])
                    queue.append(me)
                # Requests check again one after another, because only one of them would be allowed.
                behind = queue.index(me) / turn.limit if turn.limit else 0.0
                yield min(turn.wait + min(behind, _MAX_QUEUE_WAIT), left)
        finally:
            if queue is not None:
                queue.remove(me)
                if not queue and self._queues.get(service) is queue:
                    # A thread that joins it at this moment stays in the removed queue.
                    self._queues.pop(service, None)

    def _forget_queues(self) -> None:
        self._queues = {}
