"""A busy throttle for ``requests``: an adapter that is mounted on a session.

>>> import requests
>>> from dthrottle.busy.requests import BusyAdapter
>>> session = requests.Session()
>>> session.mount("https://", BusyAdapter(max_wait=5))
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from dthrottle._dthrottle import BusyThrottle
from dthrottle.busy.caller import BUSY, Caller, ServiceBusy

__all__ = ["BusyAdapter", "ServiceBusyError"]


class ServiceBusyError(ServiceBusy, requests.exceptions.ConnectionError):
    """A request was not sent, because the service is busy and its turn is not yet."""

    def __init__(self, service: str, wait: float) -> None:
        ServiceBusy.__init__(self, service, wait)
        self.request = None
        self.response = None


class BusyAdapter(HTTPAdapter):
    """Sends requests when it is their turn, and learns from the answers.

    What else is given goes to ``HTTPAdapter``. Its own ``max_retries`` counts as one request.
    """

    def __init__(
        self,
        throttle: BusyThrottle | None = None,
        *,
        max_wait: float = 0.0,
        statuses: Collection[int] = BUSY,
        service: Callable[[str], str] | None = None,
        **options: Any,
    ) -> None:
        """Take what a Caller takes."""
        self.caller = Caller(
            throttle, max_wait=max_wait, statuses=statuses, service=service, error=ServiceBusyError
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

    def send(
        self, request: requests.PreparedRequest, *args: Any, **options: Any
    ) -> requests.Response:
        """Send a request, if it may be sent or may wait."""
        service = self.caller.service(request.url or "")
        try:
            self.caller.hold(service)
        except ServiceBusyError as error:
            error.request = request
            raise
        response = super().send(request, *args, **options)
        self.caller.answered(service, response.status_code, response.headers.get("Retry-After"))
        return response
