"""A busy throttle for ``httpx``: transports that wrap those of sync and async clients.

>>> import httpx
>>> from dthrottle.busy.httpx import BusyTransport
>>> client = httpx.Client(transport=BusyTransport(max_delay=5))
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta

import anyio
import httpx

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.caller import BUSY, Caller, ServiceBusy

__all__ = ["AsyncBusyTransport", "BusyTransport", "ServiceBusyError"]


class ServiceBusyError(ServiceBusy, httpx.TransportError):
    """A request was not sent because the service is busy."""

    def __init__(self, service: str, wait: float) -> None:
        ServiceBusy.__init__(self, service, wait)
        self._request = None


class BusyTransport(httpx.BaseTransport):
    """Sends requests when they may be sent, and records the responses."""

    def __init__(
        self,
        throttle: BusyThrottle | None = None,
        *,
        transport: httpx.BaseTransport | None = None,
        max_delay: float | timedelta = 0.0,
        statuses: Collection[int] = BUSY,
        service: Callable[[str], str] | None = None,
    ) -> None:
        """Take the options of a Caller, and the transport that sends the requests."""
        self.caller = Caller(
            throttle,
            max_delay=max_delay,
            statuses=statuses,
            service=service,
            error=ServiceBusyError,
        )
        self._transport = httpx.HTTPTransport() if transport is None else transport

    @property
    def throttle(self) -> BusyThrottle:
        """The busy throttle."""
        return self.caller.throttle

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request when it may be sent."""
        service = self.caller.service(str(request.url))
        self.caller.wait_for_turn(service)
        response = self._transport.handle_request(request)
        self.caller.answered(service, response.status_code, response.headers.get("Retry-After"))
        return response

    def close(self) -> None:
        """Close the wrapped transport."""
        self._transport.close()


class AsyncBusyTransport(httpx.AsyncBaseTransport):
    """Like BusyTransport, for ``httpx.AsyncClient``."""

    def __init__(
        self,
        throttle: BusyThrottle | None = None,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        max_delay: float | timedelta = 0.0,
        statuses: Collection[int] = BUSY,
        service: Callable[[str], str] | None = None,
    ) -> None:
        """Take the options of a Caller, and the transport that sends the requests."""
        self.caller = Caller(
            throttle,
            max_delay=max_delay,
            statuses=statuses,
            service=service,
            error=ServiceBusyError,
        )
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport

    @property
    def throttle(self) -> BusyThrottle:
        """The busy throttle."""
        return self.caller.throttle

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request when it may be sent."""
        service = self.caller.service(str(request.url))
        await self.caller.wait_for_turn_async(service, anyio.sleep)
        response = await self._transport.handle_async_request(request)
        self.caller.answered(service, response.status_code, response.headers.get("Retry-After"))
        return response

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._transport.aclose()
