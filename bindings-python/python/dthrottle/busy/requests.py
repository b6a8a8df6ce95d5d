"""A busy throttle for ``requests``: an adapter that is mounted on a session.

>>> import requests
>>> from dthrottle.busy.requests import BusyAdapter
>>> session = requests.Session()
>>> session.mount("https://", BusyAdapter(max_delay=5))
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.caller import BUSY, Caller, ServiceBusy
from dthrottle.busy.urllib3 import ask_first

__all__ = ["BusyAdapter", "ServiceBusyError"]


class ServiceBusyError(ServiceBusy, requests.exceptions.ConnectionError):
    """A request was not sent, because the service is busy and its turn is not yet."""

    def __init__(self, service: str, wait: float) -> None:
        ServiceBusy.__init__(self, service, wait)
        self.request = None
        self.response = None


class BusyAdapter(HTTPAdapter):
    """Sends requests when it is their turn, and learns from the answers.

    What else is given goes to ``HTTPAdapter``. Every attempt is asked about, those that its
    ``max_retries`` repeats included.
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
        self.caller = Caller(
            throttle,
            max_delay=max_delay,
            statuses=statuses,
            service=service,
            error=ServiceBusyError,
        )
        super().__init__(**options)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse: what it knows is in memory, and a copy would know nothing."""
        raise TypeError(
            "a BusyAdapter cannot be pickled; mount one in each process,"
            " with BusyThrottle(table=...) to share what they know"
        )

    @property
    def throttle(self) -> BusyThrottle:
        """The throttle that is asked."""
        return self.caller.throttle

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools, which do the asking."""
        super().init_poolmanager(*args, **options)
        ask_first(self.poolmanager, self.caller)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Make the pools of a proxy, which do so, too."""
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if is_new:
            ask_first(manager, self.caller)
        return manager

    def send(
        self, request: requests.PreparedRequest, *args: Any, **options: Any
    ) -> requests.Response:
        """Send a request, if it may be sent or may wait."""
        try:
            return super().send(request, *args, **options)
        except requests.exceptions.ConnectionError as error:
            # It takes any error of the system for one of the connection.
            held = error.args[0] if error.args else None
            if not isinstance(held, ServiceBusyError):
                raise
            held.request = request
            raise held from None
