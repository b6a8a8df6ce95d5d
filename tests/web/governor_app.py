"""A plain WSGI application behind Governor, with a health check that Governor does not see."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from dthrottle.governor import wrap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def hello(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer one request."""
    if environ["PATH_INFO"] in ("/", "/burst"):
        time.sleep(0.005)  # long enough that the next request finds another worker
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Process", str(os.getpid()))])
    return [b"hello"]


governed = wrap(hello, "eom.conf")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer any request."""
    outside = environ["PATH_INFO"] == "/"
    return hello(environ, start_response) if outside else governed(environ, start_response)
