"""A Flask application, bare, with dthrottle, or with Flask-Limiter. Each server runs one of them."""

from __future__ import annotations

import os
from typing import Any

from flask import Flask

# High enough that no request is refused.
LIMIT = "100000000/day"


def make(kind: str) -> Any:
    """Return an application of this kind."""
    app: Any = Flask("bench")

    def hello() -> str:
        return "hello"

    app.add_url_rule("/", view_func=hello)
    if kind == "ours":
        from dthrottle.wsgi import ThrottleMiddleware

        app.wsgi_app = ThrottleMiddleware(app.wsgi_app, LIMIT)
    elif kind != "bare":
        from flask_limiter import Limiter
        from flask_limiter.util import get_remote_address

        storage = "memory://" if kind == "limiter_memory" else os.environ["REDIS"]
        Limiter(get_remote_address, app=app, default_limits=[LIMIT], storage_uri=storage)
    return app
