"""A plain WSGI application on one node, with or without a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

from dthrottle.wsgi import ThrottleMiddleware

OPTIONS: dict[str, Any] = json.loads(os.environ["OPTIONS"])


def hello(
    _environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer one request."""
    start_response("200 OK", [("X-Process", str(os.getpid()))])
    return [b"hello"]


application = ThrottleMiddleware(hello, OPTIONS, routes=["/limited"], tag="header:X-Client")
