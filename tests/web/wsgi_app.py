"""A plain WSGI application with a middleware for each route. Responses name the worker process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from dthrottle.wsgi import ThrottleMiddleware

OPTIONS: dict[str, Any] = json.loads(os.environ["OPTIONS"])


def hello(
    environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer one request."""
    if environ["PATH_INFO"] in ("/", "/burst"):
        time.sleep(0.005)  # long enough that the next request finds another worker
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Process", str(os.getpid()))])
    return [b"hello"]


def value(environ: dict[str, Any]) -> Any:
    """Return the value that a client sent as JSON."""
    return json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))


application = ThrottleMiddleware(
    hello, "1 per 100 years", burst=100, routes=["/burst"], tag="header:X-Client", **OPTIONS
)
application = ThrottleMiddleware(
    application, "50/s", burst=50, routes=["/rate"], tag="header:X-Client", **OPTIONS
)
application = ThrottleMiddleware(
    application, "1/s", routes=["/delayed"], tag="header:X-Client", max_delay=10, **OPTIONS
)
application = ThrottleMiddleware(
    application,
    "1 per 10 minutes",
    routes=["/later"],
    tag="header:X-Client",
    max_delay=3600,
    **OPTIONS,
)
application = ThrottleMiddleware(
    application, "1 per 100 years", routes=["/value"], tag=value, **OPTIONS
)
application = ThrottleMiddleware(
    application, "1/day", routes=["/proxied"], trusted_proxies=["unix", "127.0.0.1"], **OPTIONS
)
