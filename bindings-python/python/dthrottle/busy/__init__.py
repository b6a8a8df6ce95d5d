"""Sends fewer requests to services that answer that they are busy, and recovers gradually.

>>> from dthrottle.busy import BusyThrottle
>>> busy = BusyThrottle()
>>> busy.should_send("api.example.com")
True
>>> busy.on_busy("api.example.com", retry_after=2)
>>> busy.should_send("api.example.com")
False

``dthrottle.busy.requests``, ``dthrottle.busy.httpx`` and ``dthrottle.busy.urllib3`` are adapters for
HTTP clients. ``docs/busy.md`` explains them.
"""

from dthrottle._dthrottle import BusyStats, BusyThrottle, Turn
from dthrottle.busy.caller import Caller, ServiceBusy
from dthrottle.busy.names import service_of
from dthrottle.busy.retry import retry_after

__all__ = [
    "BusyStats",
    "BusyThrottle",
    "Caller",
    "ServiceBusy",
    "Turn",
    "retry_after",
    "service_of",
]
