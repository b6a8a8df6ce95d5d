"""Middleware for any ASGI application: Starlette, FastAPI, Quart, Django, or a plain function.

    app.add_middleware(dthrottle.asgi.ThrottleMiddleware, throttle="100/s")

All workers of the server count together, without being told. The loop is never blocked: a request
that is held waits with ``asyncio.sleep``. Only HTTP is throttled; lifespan and websockets pass.
docs/python.md has the options; functions that are given may be coroutines.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Generic

from dthrottle.awaiting import AwaitingGate
from dthrottle.gate import Counts, Request, Verdict
from dthrottle.options import Options, read_options
from dthrottle.source import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DECISION", "AsgiReader", "ThrottleMiddleware"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

DECISION = "dthrottle.decision"
"""Where in the scope the application finds the decision."""

# How much of a body is read while its request is held, to hear whether the client is still there.
_READ_AHEAD = 65536


class AsgiReader(Generic[Request]):
    """Reads a scope, or a request that has one."""

    def __init__(self, scope: Callable[[Request], Scope]) -> None:
        self._scope = scope

    def method(self, request: Request) -> str:
        """Give the method; a client may write it small, and frameworks take it as well."""
        return str(self._scope(request).get("method", "")).upper()

    def path(self, request: Request) -> str:
        """Give the path."""
        return str(self._scope(request).get("path", ""))

    def header(self, request: Request, name: str) -> str | None:
        """Give a header; None if it was sent twice: nobody knows which one the application takes."""
        lines = self._lines(request, name.lower().encode("latin-1"))
        return lines[0] if len(lines) == 1 else None

    def peer(self, request: Request) -> str | None:
        """Give the peer's address; there is none for Unix sockets."""
        client = self._scope(request).get("client")
        return client[0] if client else None

    def forwarded_for(self, request: Request) -> list[str]:
        """Give all lines of the header."""
        return self._lines(request, b"x-forwarded-for")

    def can_wait(self, _request: Request) -> bool:
        """Return True: the event loop goes on."""
        return True

    def _lines(self, request: Request, name: bytes) -> list[str]:
        headers = self._scope(request).get("headers", ())
        return [value.decode("latin-1") for key, value in headers if key == name]


class ThrottleMiddleware:
    """Asks a throttle about every request before the application sees it."""

    def __init__(self, app: App, throttle: Source, **options: Unpack[Options]) -> None:
        self.app = app
        settings = read_options(options, can_await=True)
        settings.check_allow()
        self._gate = AwaitingGate(settings, settings.open(throttle), AsgiReader(_same))

    @property
    def counts(self) -> Counts:
        """What happened to requests in this process."""
        return self._gate.counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        verdict = await self._gate.judge(scope)
        if verdict is None:
            return await self.app(scope, receive, send)
        scope[DECISION] = verdict.decision
        if verdict.refused:
            return await self._refuse(scope, send, verdict)
        sending = self._adding(send, verdict)
        if not verdict.wait:
            return await self.app(scope, receive, sending)
        return await self._hold(scope, receive, sending, verdict)

    async def _refuse(self, scope: Scope, send: Send, verdict: Verdict) -> None:
        refusal = await self._gate.refuse(scope, verdict)
        start = {"type": "http.response.start", "status": refusal.status}
        await send({**start, "headers": _encoded(refusal.fields + verdict.fields)})
        content = b"" if scope.get("method") == "HEAD" else refusal.body
        await send({"type": "http.response.body", "body": content})

    async def _hold(self, scope: Scope, receive: Receive, send: Send, verdict: Verdict) -> None:
        waiting = _Listener(receive)
        try:
            with self._gate.held(verdict):
                here = await waiting.stays(verdict.wait)
            if here:
                await self.app(scope, waiting.receive, send)
            else:
                self._gate.give_up(verdict)
        finally:
            waiting.close()

    def _adding(self, send: Send, verdict: Verdict) -> Send:
        gate, fields = self._gate, verdict.fields
        if not fields:
            return send

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = list(message.get("headers", ()))
                more = gate.merged(present, fields, lambda pair: pair[0].decode("latin-1").lower())
                message = {**message, "headers": present + _encoded(more)}
            await send(message)

        return sending


class _Listener:
    """Listens whether the client is still there, and keeps for the application what it hears."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._heard: deque[Message] = deque()
        self._size = 0
        self._next: asyncio.Future[Message] | None = None

    async def stays(self, seconds: float) -> bool:
        """Wait; False, and at once, when the client has gone."""
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
        """Give what was heard, then what comes."""
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


def _same(scope: Scope) -> Scope:
    return scope


def _encoded(fields: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields]
