"""Middleware for any ASGI application: Starlette, FastAPI, Quart, Django, or a plain function.

    app.add_middleware(dthrottle.asgi.ThrottleMiddleware, throttle="100/s")

All workers of the server share one limit without configuration. A delayed request waits with
``asyncio.sleep``, so the event loop is never blocked. Only HTTP is limited; lifespan and websockets
pass. docs/http.md has the options. Functions among them may be coroutines.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Generic

from dthrottle._dthrottle import HttpDecision
from dthrottle.application import application_name
from dthrottle.middleware import Counts, HttpThrottle, Request, log_table
from dthrottle.options import Options, Source, app_and_throttle, source_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DECISION", "AsgiReader", "ThrottleMiddleware"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

DECISION = "dthrottle.decision"
"""The key of the decision in the scope."""

# How many bytes of a body are read while its request is delayed, to notice a disconnect.
_READ_AHEAD = 65536


class AsgiReader(Generic[Request]):
    """Reads a scope, or a request that has one."""

    def __init__(self, scope: Callable[[Request], Scope]) -> None:
        self._scope = scope

    def method(self, request: Request) -> str:
        """Return the method in capitals, because frameworks accept it in lower case."""
        return str(self._scope(request).get("method", "")).upper()

    def path(self, request: Request) -> str:
        """Return the path."""
        return str(self._scope(request).get("path", ""))

    def header(self, request: Request, name: str) -> str | None:
        """Return a header; None if it was sent twice, because the application may use either value."""
        lines = self._lines(request, name.lower().encode("latin-1"))
        return lines[0] if len(lines) == 1 else None

    def address(self, request: Request) -> tuple[str | None, list[str]]:
        """Return the address of the peer, None for a Unix socket, and X-Forwarded-For."""
        client = self._scope(request).get("client")
        return client[0] if client else None, self._lines(request, b"x-forwarded-for")

    def can_delay(self, _request: Request) -> bool:
        """Return True, because the event loop serves other requests meanwhile."""
        return True

    def _lines(self, request: Request, name: bytes) -> list[str]:
        headers = self._scope(request).get("headers", ())
        return [value.decode("latin-1") for key, value in headers if key == name]


class ThrottleMiddleware:
    """Checks every request before the application sees it."""

    app: App
    _http: HttpThrottle[Scope]

    if TYPE_CHECKING:

        def __init__(self, app: App, throttle: Source, **options: Unpack[Options]) -> None: ...

    else:

        def __init__(self, *positional: Any, **options: Any) -> None:
            # Litestar gives the throttle first, and the application by keyword.
            app, throttle = app_and_throttle(positional, options)
            self.app = app
            read = source_options(throttle, options)
            reader: AsgiReader[Scope] = AsgiReader(lambda scope: scope)
            self._http = HttpThrottle(read, reader, can_await=True, application=application_name())
            self._http.native.open()
            log_table(f"domain {self._http.native.domain_name!r}", self._http.native)

    @property
    def counts(self) -> Counts:
        """The requests of this process."""
        return self._http.counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        decided = await self._http.decide_async(scope)
        if decided is None:
            return await self.app(scope, receive, send)
        scope[DECISION] = decided.decision
        if decided.refused:
            return await self._refuse(scope, send, decided)
        if decided.delay:
            return await self._delay(scope, receive, send, decided)
        return await self._pass(scope, receive, send, decided)

    async def _refuse(self, scope: Scope, send: Send, decided: HttpDecision) -> None:
        status, fields, body = await self._http.refuse_async(scope, decided)
        headers = _encoded(fields + decided.fields)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        content = b"" if scope.get("method") == "HEAD" else body
        await send({"type": "http.response.body", "body": content})

    async def _delay(
        self, scope: Scope, receive: Receive, send: Send, decided: HttpDecision
    ) -> None:
        waiting, is_here = _Listener(receive), False
        try:
            try:
                is_here = await waiting.stays(decided.delay)
            finally:
                decided.end_delay(not is_here)
            if is_here:
                await self._pass(scope, waiting.receive, send, decided)
        finally:
            waiting.close()

    async def _pass(
        self, scope: Scope, receive: Receive, send: Send, decided: HttpDecision
    ) -> None:
        """Let the application answer, add the fields, and refund by the response's status."""
        http = self._http

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                if http.refunds:
                    decided.finish(message["status"] < 400)
                present = list(message.get("headers", ()))
                more = http.merged([name.decode("latin-1") for name, _ in present], decided.fields)
                message = {**message, "headers": present + _encoded(more)}
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except Exception:
            if http.refunds:
                decided.finish(False)
            raise


class _Listener:
    """Notices when the client disconnects, and keeps other messages for the application."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._heard: deque[Message] = deque()
        self._size = 0
        self._next: asyncio.Future[Message] | None = None

    async def stays(self, seconds: float) -> bool:
        """Wait, and return True. Return False immediately if the client disconnects."""
        end = asyncio.ensure_future(asyncio.sleep(seconds))
        try:
            while not end.done():
                if self._next is None and self._size <= _READ_AHEAD:
                    self._next = asyncio.ensure_future(self._receive())
                waiting: set[asyncio.Future[Any]] = {end}
                if self._next is not None:
                    waiting.add(self._next)
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if self._next is not None and self._next.done():
                    message = self._next.result()
                    self._next = None
                    if message["type"] == "http.disconnect":
                        return False
                    self._heard.append(message)
                    self._size += len(message.get("body", b"")) + 1
        finally:
            end.cancel()
        return True

    async def receive(self) -> Message:
        """Return the next message: first those that were kept, then new ones."""
        if self._heard:
            return self._heard.popleft()
        if self._next is not None:
            pending, self._next = self._next, None
            return await pending
        return await self._receive()

    def close(self) -> None:
        """Stop listening."""
        if self._next is not None:
            self._next.cancel()


def _encoded(fields: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields]
