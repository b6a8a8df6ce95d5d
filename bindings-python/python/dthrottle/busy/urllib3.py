"""A busy throttle for ``urllib3`` (2 or later): a pool manager.

>>> from dthrottle.busy.urllib3 import BusyPoolManager
>>> http = BusyPoolManager(max_delay=5)

Every attempt is checked, including those of ``retries`` and redirects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import urllib3
from urllib3.connectionpool import HTTPConnectionPool

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.caller import BUSY, Caller, ServiceBusy

if TYPE_CHECKING:
    # urllib3 1.26, which requests also supports, does not have it.
    from urllib3.response import BaseHTTPResponse

__all__ = ["BusyPoolManager", "ServiceBusyError"]

_PORTS: Final = {"http": 80, "https": 443}


class ServiceBusyError(ServiceBusy, urllib3.exceptions.HTTPError):
    """A request was not sent because the service is busy."""


class BusyPoolManager(urllib3.PoolManager):
    """Sends requests when they may be sent, and records the responses.

    Other options are passed to ``PoolManager``.
    """

    def __init__(
        self,
        throttle: BusyThrottle | None = None,
        *,
        max_delay: float | timedelta = 0.0,
        statuses: Collection[int] = BUSY,
        service: Callable[[str], str] | None = None,
        **options: Any,
    ) -> None:
        """Take the options of a Caller."""
        caller = Caller(
            throttle,
            max_delay=max_delay,
            statuses=statuses,
            service=service,
            error=ServiceBusyError,
        )
        super().__init__(**options)
        self.caller = caller
        check_attempts(self, caller)

    @property
    def throttle(self) -> BusyThrottle:
        """The busy throttle."""
        return self.caller.throttle


def check_attempts(manager: urllib3.PoolManager, caller: Caller) -> None:
    """Make all future pools of a manager check every attempt."""
    classes = manager.pool_classes_by_scheme.items()
    manager.pool_classes_by_scheme = {scheme: _pool_class(base, caller) for scheme, base in classes}


def _pool_class(base: type[HTTPConnectionPool], caller: Caller) -> type[HTTPConnectionPool]:
    """Return a class of pools that check every attempt."""

    class BusyPool(base):  # type: ignore[misc, valid-type]
        def _service(self, target: str) -> str:
            # With a proxy the target may be a whole URL.
            if not target.startswith("/"):
                return caller.service(target)
            host = f"[{self.host}]" if ":" in self.host else self.host
            port = "" if self.port == _PORTS.get(self.scheme) else f":{self.port}"
            return caller.service(f"{self.scheme}://{host}{port}{target}")

        # Called for each attempt, before it gets a connection.
        def urlopen(self, method: str, url: str, *args: Any, **options: Any) -> BaseHTTPResponse:
            caller.wait_for_turn(self._service(url))
            response: BaseHTTPResponse = super().urlopen(method, url, *args, **options)
            return response

        # Called once per response, including those that are tried again.
        def _make_request(
            self, conn: Any, method: str, url: str, *args: Any, **options: Any
        ) -> BaseHTTPResponse:
            response: BaseHTTPResponse = super()._make_request(conn, method, url, *args, **options)
            retry = response.headers.get("Retry-After")
            caller.answered(self._service(url), response.status, retry)
            return response

    return BusyPool
