"""A Starlette application with a middleware for each route. Responses name the worker process."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from dthrottle.asgi import ThrottleMiddleware

OPTIONS: dict[str, Any] = json.loads(os.environ["OPTIONS"])

# Starlette makes the middleware when it starts, so the application collects it for its counts.
made: list[ThrottleMiddleware] = []


class ListedMiddleware(ThrottleMiddleware):
    """A middleware that adds itself to a list."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        made.append(self)


async def hello(request: Request) -> PlainTextResponse:
    """Answer one request."""
    if request.url.path in ("/", "/burst"):
        time.sleep(0.005)  # blocks the loop, so that the next request finds another worker
    return PlainTextResponse("hello", headers={"X-Process": str(os.getpid())})


async def value(scope: Any) -> Any:
    """Return the JSON value in a header, because middleware does not read the body."""
    return json.loads(dict(scope["headers"])[b"x-value"])


async def counts(_request: Request) -> JSONResponse:
    """Return how many requests were delayed, and how many gave up."""
    each = [middleware.counts for middleware in made]
    return JSONResponse(
        {"delayed": sum(c.delayed for c in each), "gave_up": sum(c.gave_up for c in each)}
    )


async def talk(socket: WebSocket) -> None:
    """Accept a websocket and close it."""
    await socket.accept()
    await socket.close()


app = Starlette(
    routes=[
        *(Route(path, hello) for path in ("/", "/burst", "/rate", "/delayed", "/proxied")),
        Route("/value", hello, methods=["POST"]),
        Route("/counts", counts),
        WebSocketRoute("/talk", talk),
    ]
)
app.add_middleware(
    ListedMiddleware,
    "1 per 100 years",
    burst=100,
    routes=["/burst"],
    tag="header:X-Client",
    **OPTIONS,
)
app.add_middleware(
    ListedMiddleware, "50/s", burst=50, routes=["/rate"], tag="header:X-Client", **OPTIONS
)
app.add_middleware(
    ListedMiddleware,
    "1/minute",
    routes=["/delayed"],
    tag="header:X-Client",
    max_delay=90,
    **OPTIONS,
)
app.add_middleware(ListedMiddleware, "1 per 100 years", routes=["/value"], tag=value, **OPTIONS)
app.add_middleware(
    ListedMiddleware, "1/day", routes=["/proxied"], trusted_proxies=["unix", "127.0.0.1"], **OPTIONS
)
