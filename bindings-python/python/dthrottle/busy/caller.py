"""What all adapters have in common: whom a call is for, how it waits, and which answers are busy.

A caller belongs to one busy throttle and knows nothing of any HTTP library.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import closing
from typing import Final

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.names import service_of
from dthrottle.busy.retry import LONGEST, retry_after
from dthrottle.errors import ArgumentError, ClosedError
from dthrottle.forked import in_child

__all__ = ["BUSY", "Caller", "ServiceBusy"]

BUSY: Final = frozenset({429, 503})
"""The statuses that say busy, if nothing else is said."""

# For how long one does not ask again because of others that wait: the limit may rise meanwhile.
_BEHIND: Final = 1.0


class ServiceBusy(Exception):
    """A request was not sent, because the service is busy and its turn is not yet.

    Each adapter raises a class of its own that is also an exception of its HTTP library.
    """

    service: str
    """The service, as the throttle knows it."""

    wait: float
    """Seconds until it is worth trying again."""

    def __init__(self, service: str, wait: float) -> None:
        super().__init__(f"{service} is busy: not sent, try again in {wait:.3f} s")
        self.service = service
        self.wait = wait

    def __reduce__(self) -> tuple[type[ServiceBusy], tuple[str, float]]:
        return type(self), (self.service, self.wait)


class Caller:
    """Asks a busy throttle before each request, and tells it about each answer.

    With a throttle that is closed every request passes.
    """

    def __init__(
        self,
        throttle: BusyThrottle | None = None,
        *,
        max_delay: float = 0.0,
        statuses: Collection[int] = BUSY,
        service: Callable[[str], str] | None = None,
        error: Callable[[str, float], ServiceBusy] = ServiceBusy,
    ) -> None:
        """Take what the adapters take.

        max_delay: how many seconds a request may wait for its turn before it is refused.
        statuses: which answers say busy.
        service: the service's name from a URL; by default host and port.
        """
        if throttle is not None and not isinstance(throttle, BusyThrottle):
            raise ArgumentError(f"throttle {throttle!r}: must be a BusyThrottle")
        if isinstance(max_delay, bool) or not isinstance(max_delay, (int, float)):
            raise ArgumentError(f"max_delay {max_delay!r}: must be a number of seconds")
        if not 0 <= max_delay <= LONGEST:
            raise ArgumentError(f"max_delay {max_delay!r}: must be seconds from 0 to a year")
        if isinstance(statuses, (str, bytes)) or not all(isinstance(s, int) for s in statuses):
            raise ArgumentError(f"statuses {statuses!r}: must be numbers such as 429 and 503")
        if service is not None and not callable(service):
            raise ArgumentError(f"service {service!r}: must be a function from URL to name")
        self.throttle = BusyThrottle() if throttle is None else throttle
        self.max_delay = float(max_delay)
        self._statuses = frozenset(statuses)
        self._service = service_of if service is None else service
        self._error = error
        # Who waits, by service, the longest first. A forked child has nobody in its lines. No lock:
        # threads that come at once may stand in two.
        self._lines: dict[str, list[object]] = {}
        in_child(self, Caller._leave)

    def service(self, url: str) -> str:
        """Name the service that a URL belongs to."""
        return self._service(url)

    def wait_for_turn(self, service: str) -> None:
        """Wait until a request may be sent; raise if that would take too long."""
        with closing(self._waits(service)) as waits:
            for wait in waits:
                time.sleep(wait)

    async def wait_for_turn_async(
        self, service: str, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        """Do the same with a sleep that is awaited."""
        with closing(self._waits(service)) as waits:
            for wait in waits:
                await sleep(wait)

    def answered(self, service: str, status: int, retry: str | None) -> None:
        """Tell the throttle what was answered."""
        try:
            if status in self._statuses:
                self.throttle.on_busy(service, retry_after(retry))
            else:
                self.throttle.on_ok(service)
        except ClosedError:
            pass

    def _waits(self, service: str) -> Generator[float, None, None]:
        """Give times to wait, one after the other, until a request may be sent."""
        end = time.monotonic() + self.max_delay
        me, line = object(), None
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
                if line is None:
                    line = self._lines.setdefault(service, [])
                    line.append(me)
                # If all asked again at the same time, all but one would have asked for nothing.
                behind = line.index(me) / turn.limit if turn.limit else 0.0
                yield min(turn.wait + min(behind, _BEHIND), left)
        finally:
            if line is not None:
                line.remove(me)
                if not line and self._lines.get(service) is line:
                    # Another thread may be about to join it: then it stands in a line of its own.
                    self._lines.pop(service, None)

    def _leave(self) -> None:
        self._lines = {}
