"""A Flask application with a limit for each route."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from flask import Flask, Request, Response

from dthrottle.flask import Limiter

OPTIONS: dict[str, Any] = json.loads(os.environ["OPTIONS"])

application = Flask(__name__)
limiter = Limiter(tag="header:X-Client", **OPTIONS)
limiter.init_app(application)
costly = limiter.shared_limit("1 per 100 years", "costly", burst=100)


def hello() -> Response:
    """Answer one request."""
    time.sleep(0.005)  # long enough that the next request finds another worker
    return Response("hello", headers={"X-Process": str(os.getpid())})


def value(request: Request) -> Any:
    """Return the value that a client sent as JSON."""
    return request.get_json()


by_value = limiter.limit("1 per 100 years", tag=value)
later = limiter.limit("1 per 10 minutes", max_delay=3600)
application.add_url_rule("/", "root", hello)
application.add_url_rule("/value", "value", by_value(hello), methods=["POST"])
application.add_url_rule("/later", "later", later(hello))
application.add_url_rule("/burst", "burst", limiter.limit("1 per 100 years", burst=100)(hello))
application.add_url_rule("/one", "one", costly(hello))
application.add_url_rule("/two", "two", costly(hello))
