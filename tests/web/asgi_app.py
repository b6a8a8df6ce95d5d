"""A Starlette application that is throttled by one line for each route, and says who answered."""

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

# To look at what middleware counted, which Starlette makes only when it starts.
made: list[ThrottleMiddleware] = []


class Watched(ThrottleMiddleware):
    """A middleware that can be found again."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        made.append(self)


async def hello(request: Request) -> PlainTextResponse:
    """Answer one request."""
    if request.url.path in ("/", "/burst"):
        time.sleep(0.005)  # blocks the loop, so that the next request finds another worker
    return PlainTextResponse("hello", headers={"X-Process": str(os.getpid())})


async def value(scope: Any) -> Any:
    """Return the value that a client sent as JSON, in a header: middleware has no body."""
    return json.loads(dict(scope["headers"])[b"x-value"])


async def counts(_request: Request) -> JSONResponse:
    """Say how many were delayed, and how many gave up."""
    each = [middleware.counts for middleware in made]
    return JSONResponse(
        {"delayed": sum(c.delayed for c in each), "gave_up": sum(c.gave_up for c in each)}
    )


async def talk(socket: WebSocket) -> None:
    """Say hello by websocket."""
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
    Watched, "1 per 100 years", burst=100, routes=["/burst"], tag="header:X-Client", **OPTIONS
)
app.add_middleware(Watched, "50/s", burst=50, routes=["/rate"], tag="header:X-Client", **OPTIONS)
app.add_middleware(
    Watched, "1/minute", routes=["/delayed"], tag="header:X-Client", max_delay=90, **OPTIONS
)
app.add_middleware(Watched, "1 per 100 years", routes=["/value"], tag=value, **OPTIONS)
app.add_middleware(
    Watched, "1/day", routes=["/proxied"], trusted_proxies=["unix", "127.0.0.1"], **OPTIONS
)
