"""A busy throttle for ``requests``: an adapter that is mounted on a session.

>>> import requests
>>> from dthrottle.busy.requests import BusyAdapter
>>> session = requests.Session()
>>> session.mount("https://", BusyAdapter(max_wait=5))
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import MaxRetryError
from urllib3.util import Retry

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

    What else is given goes to ``HTTPAdapter``. Every attempt of its ``max_retries`` is asked about.
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
        # For whom this thread sends.
        self._here = threading.local()
        self.max_retries = _asking(self.max_retries, self.caller, self._here)

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
        service = self._here.service = self.caller.service(request.url or "")
        try:
            self.caller.hold(service)
            response = super().send(request, *args, **options)
        except requests.exceptions.ConnectionError as error:
            # One that was raised between two attempts has been taken for one of the connection.
            busy = error.args[0] if error.args else None
            busy = error if isinstance(error, ServiceBusyError) else busy
            if not isinstance(busy, ServiceBusyError):
                raise
            busy.request = request
            raise busy from None
        self.caller.answered(service, response.status_code, response.headers.get("Retry-After"))
        return response


def _asking(retries: Retry, caller: Caller, here: threading.local) -> Retry:
    """Make retries that tell of every answer they try again, and ask before they do."""

    class BusyRetry(type(retries)):  # type: ignore[misc]
        def increment(self, *args: Any, **options: Any) -> Retry:
            response = options.get("response")
            try:
                following: Retry = super().increment(*args, **options)
            except MaxRetryError:
                # Otherwise the answer is returned, and told of then.
                if response is not None and self.raise_on_status:
                    self._tell(response)
                raise
            if response is not None:
                self._tell(response)
            return following

        def sleep(self, response: Any = None) -> None:
            super().sleep(response)
            caller.hold(here.service)

        def _tell(self, response: Any) -> None:
            caller.answered(here.service, response.status, response.headers.get("Retry-After"))

    asking = copy.copy(retries)
    asking.__class__ = BusyRetry
    return asking
