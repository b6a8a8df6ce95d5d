"""Sends requests to middleware without a server. WSGI and ASGI return the same Answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from dthrottle import ManualClock, Throttle, asgi, wsgi
from dthrottle.middleware import Counts

PEER = "203.0.113.7"


@dataclass
class Answer:
    """The response, and the request as the application received it."""

    status: int
    headers: dict[str, str]
    body: bytes
    request: dict[str, Any] = field(repr=False)


class Client:
    """Sends requests through a middleware of one kind around a small application."""

    kind: str
    status = 200

    def __init__(self, throttle: Any, **options: Any) -> None:
        self.wrapped = self.make(throttle, options)

    @property
    def counts(self) -> Counts:
        """Return the counts of the middleware."""
        return self.wrapped.counts  # type: ignore[no-any-return]

    def make(self, throttle: Any, options: dict[str, Any]) -> Any:
        """Make the middleware."""
        raise NotImplementedError

    def get(
        self, path: str = "/", *, method: str = "GET", peer: Any = PEER, **headers: str
    ) -> Answer:
        """Send a request; headers are given with underscores."""
        raise NotImplementedError

    def statuses(self, count: int, *arguments: Any, **more: Any) -> list[int]:
        """Send a number of requests, and return their statuses."""
        return [self.get(*arguments, **more).status for _ in range(count)]


def joined(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return the fields by name; only lists may have several lines."""
    given: dict[str, str] = {}
    for name, value in pairs:
        assert name not in given or name.startswith("ratelimit")
        given[name] = f"{given[name]}, {value}" if name in given else value
    return given


class WsgiClient(Client):
    kind = "wsgi"
    multithread = True

    def make(self, throttle: Any, options: dict[str, Any]) -> Any:
        def app(_environ: Any, start_response: Any) -> list[bytes]:
            start_response(
                f"{self.status} Answer", [("Content-Type", "text/plain"), ("X-App", "1")]
            )
            return [b"hello"]

        return wsgi.ThrottleMiddleware(app, throttle, **options)

    def get(
        self, path: str = "/", *, method: str = "GET", peer: Any = PEER, **headers: str
    ) -> Answer:
        environ: dict[str, Any] = {"REQUEST_METHOD": method, "REMOTE_ADDR": peer, "SCRIPT_NAME": ""}
        environ["wsgi.multithread"] = self.multithread
        environ["PATH_INFO"] = path.encode().decode("latin-1")
        environ.update({f"HTTP_{name.upper()}": value for name, value in headers.items()})
        started: list[Any] = []
        body = b"".join(self.wrapped(environ, lambda *given: started.append(given)))
        ((status, pairs),) = started
        given = joined([(name.lower(), value) for name, value in pairs])
        return Answer(int(status.split()[0]), given, body, environ)


class AsgiClient(Client):
    kind = "asgi"

    def make(self, throttle: Any, options: dict[str, Any]) -> Any:
        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            headers = [(b"content-type", b"text/plain"), (b"x-app", b"1")]
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": b"hello"})

        return asgi.ThrottleMiddleware(app, throttle, **options)

    def get(
        self, path: str = "/", *, method: str = "GET", peer: Any = PEER, **headers: str
    ) -> Answer:
        scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
        }
        scope["client"] = None if peer is None else (peer, 12345)
        scope["headers"] = [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            await asyncio.Event().wait()

        asyncio.run(self.wrapped(scope, receive, send))
        start, body = sent
        given = joined([(name.decode(), value.decode()) for name, value in start["headers"]])
        return Answer(start["status"], given, body["body"], scope)


CLIENTS: list[type[Client]] = [WsgiClient, AsgiClient]

kinds = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.kind)
"""Run a test with every kind of middleware."""

Make = Callable[..., Client]


def make_throttle(
    clock: ManualClock, burst: int = 1, rate: str = "1/minute", **more: Any
) -> Throttle:
    """Make a throttle whose clock stands still, so that only the burst passes."""
    return Throttle(rate, burst=burst, clock=clock, **more)


def fail(*_arguments: Any) -> Any:
    """Raise an exception, as a function of an application may do."""
    raise KeyError("user")
