"""An application that uWSGI mounts several times, each in its own interpreter."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from dthrottle.wsgi import ThrottleMiddleware


def hello(
    _environ: dict[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answer with the file of the native module, which differs between interpreters."""
    start_response("200 OK", [("X-Process", str(os.getpid()))])
    return [str(sys.modules["dthrottle._dthrottle"].__file__).encode()]


def is_health_check(environ: dict[str, Any]) -> bool:
    """Return whether a request has no client."""
    return "HTTP_X_CLIENT" not in environ


application = ThrottleMiddleware(
    hello,
    "1 per 100 years",
    burst=10,
    tag="header:X-Client",
    skip=is_health_check,
    **json.loads(os.environ["OPTIONS"]),
)
