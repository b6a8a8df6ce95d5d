"""A WSGI application with a throttle. Responses contain the process ID of the worker."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from dthrottle import Throttle

throttle = Throttle("1 per 100 years", **json.loads(os.environ["THROTTLE"]))


def application(
    _environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer one request."""
    status = "200 OK" if throttle.allow("client") else "429 Too Many Requests"
    # Long enough that the next request finds another worker.
    time.sleep(0.005)
    start_response(status, [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
