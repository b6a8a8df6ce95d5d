"""A WSGI application that uses the throttle of a configuration file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from dthrottle import Throttle

web = Throttle.from_file(os.environ["CONFIG"]).domain("web")


def application(
    environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer one request."""
    if environ["PATH_INFO"] == "/free" or web.allow(environ["QUERY_STRING"]):
        start_response("200 OK", [("X-Process", str(os.getpid()))])
    else:
        start_response("429 Too Many Requests", [("X-Process", str(os.getpid()))])
    return [b"hello\n"]
