"""A busy throttle for ``requests``: an adapter that is mounted on a session.

>>> import requests
>>> from dthrottle.busy.requests import BusyAdapter
>>> session = requests.Session()
>>> session.mount("https://", BusyAdapter(max_delay=5))
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.caller import BUSY, Caller, ServiceBusy
from dthrottle.busy.urllib3 import check_attempts

__all__ = ["BusyAdapter", "ServiceBusyError"]


class ServiceBusyError(ServiceBusy, requests.exceptions.ConnectionError):
    """A request was not sent because the service is busy."""

    def __init__(self, service: str, wait: float) -> None:
        ServiceBusy.__init__(self, service, wait)
        self.request = None
        self.response = None


class BusyAdapter(HTTPAdapter):
    """Sends requests when they may be sent, and records the responses.

    Other options are passed to ``HTTPAdapter``. Every attempt is checked, including the repetitions
    of ``max_retries``.
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
        self.caller = Caller(
            throttle,
            max_delay=max_delay,
            statuses=statuses,
            service=service,
            error=ServiceBusyError,
        )
        super().__init__(**options)

    def __getstate__(self) -> dict[str, Any]:
        """Raise, because a copy would not share the limits."""
        raise TypeError(
            "a BusyAdapter cannot be pickled; mount one in each process,"
            " with BusyThrottle(table=...) to share the limits"
        )

    @property
    def throttle(self) -> BusyThrottle:
        """The busy throttle."""
        return self.caller.throttle

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools, which check every attempt."""
        super().init_poolmanager(*args, **options)
        check_attempts(self.poolmanager, self.caller)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Make the pools of a proxy, which check every attempt, too."""
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if is_new:
            check_attempts(manager, self.caller)
        return manager

    def send(
        self, request: requests.PreparedRequest, *args: Any, **options: Any
    ) -> requests.Response:
        """Send a request when it may be sent."""
        try:
            return super().send(request, *args, **options)
        except requests.exceptions.ConnectionError as error:
            # HTTPAdapter wraps any OSError in a ConnectionError.
            busy = error.args[0] if error.args else None
            if not isinstance(busy, ServiceBusyError):
                raise
            busy.request = request
            raise busy from None
