"""Middleware for any WSGI application: Flask, Django, Pyramid, Bottle, or a plain function.

    from dthrottle.wsgi import ThrottleMiddleware

    application = ThrottleMiddleware(application, "100/s")

All workers of the server count together, without being told. docs/python.md has the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic

from dthrottle.blocking import BlockingGate
from dthrottle.gate import Counts, Request, Verdict
from dthrottle.headers import Fields
from dthrottle.options import Options, read_options
from dthrottle.source import Source

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from typing_extensions import Unpack

__all__ = ["DECISION", "ThrottleMiddleware", "WsgiReader"]

DECISION = "dthrottle.decision"
"""Where in the environ the application finds the decision."""


class WsgiReader(Generic[Request]):
    """Reads an environ, or a request that has one."""

    def __init__(self, environ: Callable[[Request], Mapping[str, Any]]) -> None:
        self._environ = environ

    def method(self, request: Request) -> str:
        """Give the method; a client may write it small, and frameworks take it as well."""
        return str(self._environ(request).get("REQUEST_METHOD", "")).upper()

    def path(self, request: Request) -> str:
        """Give the path; WSGI has it as bytes in the clothes of latin-1."""
        environ = self._environ(request)
        path = str(environ.get("SCRIPT_NAME", "")) + str(environ.get("PATH_INFO", ""))
        return path.encode("latin-1", "replace").decode("utf-8", "replace")

    def header(self, request: Request, name: str) -> str | None:
        """Give a header."""
        value = self._environ(request).get("HTTP_" + name.upper().replace("-", "_"))
        return value if isinstance(value, str) else None

    def peer(self, request: Request) -> str | None:
        """Give the peer's address; servers leave it empty for Unix sockets."""
        return self._environ(request).get("REMOTE_ADDR")

    def forwarded_for(self, request: Request) -> str | None:
        """Give the header, which servers join from its lines."""
        return self._environ(request).get("HTTP_X_FORWARDED_FOR")

    def can_wait(self, request: Request) -> bool:
        """Return whether other threads of the process serve requests."""
        return bool(self._environ(request).get("wsgi.multithread"))


class _EnvironReader(WsgiReader["WSGIEnvironment"]):
    """Reads an environ, and what is read of every request without a detour."""

    def __init__(self) -> None:
        super().__init__(lambda environ: environ)

    def peer(self, request: WSGIEnvironment) -> str | None:
        """Give the peer's address."""
        return request.get("REMOTE_ADDR")

    def forwarded_for(self, request: WSGIEnvironment) -> str | None:
        """Give the header."""
        return request.get("HTTP_X_FORWARDED_FOR")


class ThrottleMiddleware:
    """Asks a throttle about every request before the application sees it."""

    def __init__(self, app: WSGIApplication, throttle: Source, **options: Unpack[Options]) -> None:
        self.app = app
        settings = read_options(options, can_await=False)
        settings.check_allow()
        self._gate = BlockingGate(settings, settings.open(throttle), _EnvironReader())
        # Asked once: nothing is left out of fields that may stand beside others.
        self._merged = None if self._gate.is_list else self._gate.merged

    @property
    def counts(self) -> Counts:
        """What happened to requests in this process."""
        return self._gate.counts

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        gate = self._gate
        quick = gate.quick
        if quick is None or "HTTP_X_FORWARDED_FOR" in environ:
            return self._at_length(environ, start_response, gate.judge(environ))
        # What most requests come to, in few calls, which are what Python is slow at.
        try:
            decision = quick(environ.get("REMOTE_ADDR"))
        except Exception:
            gate.failed("check")
            return self.app(environ, start_response)
        if decision is None:
            return self._at_length(environ, start_response, gate.judge(environ))
        if decision.rule is not None:
            return self._at_length(environ, start_response, gate.judged(environ, decision))
        gate.counts.passed += 1
        environ[DECISION] = decision
        fields = gate.fields(decision)
        if fields:
            start_response = self._adding(start_response, fields)
        return self.app(environ, start_response)

    def _at_length(
        self, environ: WSGIEnvironment, start_response: StartResponse, verdict: Verdict | None
    ) -> Iterable[bytes]:
        if verdict is None:
            return self.app(environ, start_response)
        environ[DECISION] = verdict.decision
        if verdict.refused:
            return self._refuse(environ, start_response, verdict)
        if verdict.wait:
            self._gate.hold(verdict)
        if verdict.fields:
            start_response = self._adding(start_response, verdict.fields)
        return self.app(environ, start_response)

    def _refuse(
        self, environ: WSGIEnvironment, start_response: StartResponse, verdict: Verdict
    ) -> list[bytes]:
        refusal = self._gate.refuse(environ, verdict)
        start_response(_status_line(refusal.status), refusal.fields + verdict.fields)
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [refusal.body]

    def _adding(self, start_response: StartResponse, fields: Fields) -> StartResponse:
        merged = self._merged

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None, /) -> Any:
            more = fields if merged is None else merged(headers, fields, _name)
            if exc_info is None:
                return start_response(status, [*headers, *more])
            return start_response(status, [*headers, *more], exc_info)

        return start


def _name(pair: tuple[str, str]) -> str:
    return pair[0].lower()


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Throttled"
