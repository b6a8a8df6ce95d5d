"""A busy throttle for ``urllib3`` (2 or later): a pool manager.

>>> from dthrottle.busy.urllib3 import BusyPoolManager
>>> http = BusyPoolManager(max_delay=5)

Every attempt is asked about, those of ``retries`` and redirects included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

import urllib3
from urllib3.connectionpool import HTTPConnectionPool

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.caller import BUSY, Caller, ServiceBusy

if TYPE_CHECKING:
    # Not in urllib3 1.26, with which requests can do.
    from urllib3.response import BaseHTTPResponse

__all__ = ["BusyPoolManager", "ServiceBusyError"]

_PORTS: Final = {"http": 80, "https": 443}


class ServiceBusyError(ServiceBusy, urllib3.exceptions.HTTPError):
    """A request was not sent, because the service is busy and its turn is not yet."""


class BusyPoolManager(urllib3.PoolManager):
    """Sends requests when it is their turn, and learns from the answers.

    What else is given goes to ``PoolManager``.
    """

    def __init__(
        self,
        throttle: BusyThrottle | None = None,
        *,
        max_delay: float = 0.0,
        statuses: Collection[int] = BUSY,
        service: Callable[[str], str] | None = None,
        **options: Any,
    ) -> None:
        """Take what a Caller takes."""
        caller = Caller(
            throttle,
            max_delay=max_delay,
            statuses=statuses,
            service=service,
            error=ServiceBusyError,
        )
        super().__init__(**options)
        self.caller = caller
        ask_first(self, caller)

    @property
    def throttle(self) -> BusyThrottle:
        """The throttle that is asked."""
        return self.caller.throttle


def ask_first(manager: urllib3.PoolManager, caller: Caller) -> None:
    """Let all pools that a manager makes from now on ask before every attempt."""
    classes = manager.pool_classes_by_scheme.items()
    manager.pool_classes_by_scheme = {scheme: _pool_class(base, caller) for scheme, base in classes}


def _pool_class(base: type[HTTPConnectionPool], caller: Caller) -> type[HTTPConnectionPool]:
    """Make a class of pools that ask before every attempt."""

    class BusyPool(base):  # type: ignore[misc, valid-type]
        def _service(self, target: str) -> str:
            # Through a proxy it may be a whole URL.
            if not target.startswith("/"):
                return caller.service(target)
            host = f"[{self.host}]" if ":" in self.host else self.host
            port = "" if self.port == _PORTS.get(self.scheme) else f":{self.port}"
            return caller.service(f"{self.scheme}://{host}{port}{target}")

        # Called anew for each attempt. Who is held back or waits has no connection yet.
        def urlopen(self, method: str, url: str, *args: Any, **options: Any) -> BaseHTTPResponse:
            caller.wait_for_turn(self._service(url))
            response: BaseHTTPResponse = super().urlopen(method, url, *args, **options)
            return response

        # Sees every answer once, those that are tried again included.
        def _make_request(
            self, conn: Any, method: str, url: str, *args: Any, **options: Any
        ) -> BaseHTTPResponse:
            response: BaseHTTPResponse = super()._make_request(conn, method, url, *args, **options)
            retry = response.headers.get("Retry-After")
            caller.answered(self._service(url), response.status, retry)
            return response

    return BusyPool
