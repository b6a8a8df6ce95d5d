"""Middleware for any WSGI application: Flask, Django, Pyramid, Bottle, or a plain function.

    from dthrottle.wsgi import ThrottleMiddleware

    application = ThrottleMiddleware(application, "100/s")

All workers of the server share one limit without configuration. docs/http.md has the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic

from dthrottle._dthrottle import HttpDecision
from dthrottle.application import application_name
from dthrottle.middleware import Counts, HttpThrottle, Request, log_table
from dthrottle.options import Options, Source, app_and_throttle, source_options

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from typing_extensions import Unpack

__all__ = ["DECISION", "ThrottleMiddleware", "WsgiReader"]

DECISION = "dthrottle.decision"
"""The key of the decision in the environ."""


class WsgiReader(Generic[Request]):
    """Reads an environ, or a request that has one."""

    def __init__(self, environ: Callable[[Request], Mapping[str, Any]]) -> None:
        self._environ = environ

    def method(self, request: Request) -> str:
        """Return the method in capitals, because frameworks accept it in lower case."""
        return str(self._environ(request).get("REQUEST_METHOD", "")).upper()

    def path(self, request: Request) -> str:
        """Return the path, whose bytes WSGI decodes as latin-1."""
        environ = self._environ(request)
        path = str(environ.get("SCRIPT_NAME", "")) + str(environ.get("PATH_INFO", ""))
        return path.encode("latin-1", "replace").decode("utf-8", "replace")

    def header(self, request: Request, name: str) -> str | None:
        """Return a header."""
        value = self._environ(request).get("HTTP_" + name.upper().replace("-", "_"))
        return value if isinstance(value, str) else None

    def address(self, request: Request) -> tuple[str | None, str | None]:
        """Return the address of the peer, empty for a Unix socket, and X-Forwarded-For."""
        environ = self._environ(request)
        return environ.get("REMOTE_ADDR"), environ.get("HTTP_X_FORWARDED_FOR")

    def can_delay(self, request: Request) -> bool:
        """Return whether the server has threads that serve other requests meanwhile."""
        return bool(self._environ(request).get("wsgi.multithread"))


class ThrottleMiddleware:
    """Checks every request before the application sees it."""

    app: WSGIApplication
    _http: HttpThrottle[WSGIEnvironment]

    if TYPE_CHECKING:

        def __init__(
            self, app: WSGIApplication, throttle: Source, **options: Unpack[Options]
        ) -> None: ...

    else:

        def __init__(self, *positional: Any, **options: Any) -> None:
            # Litestar gives the throttle first, and the application by keyword.
            app, throttle = app_and_throttle(positional, options)
            self.app = app
            read = source_options(throttle, options)
            reader: WsgiReader[WSGIEnvironment] = WsgiReader(lambda environ: environ)
            self._http = HttpThrottle(read, reader, can_await=False, application=application_name())
            self._http.native.open()
            log_table(f"domain {self._http.native.domain_name!r}", self._http.native)

    @property
    def counts(self) -> Counts:
        """The requests of this process."""
        return self._http.counts

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        decided = self._http.decide(environ)
        if decided is None:
            return self.app(environ, start_response)
        environ[DECISION] = decided.decision
        if decided.refused:
            return self._refuse(environ, start_response, decided)
        if decided.delay:
            self._http.delay(decided)
        start = self._adding(start_response, decided)
        if not self._http.refunds:
            return self.app(environ, start)
        try:
            return self.app(environ, start)
        except Exception:
            decided.finish(False)
            raise

    def _refuse(
        self, environ: WSGIEnvironment, start_response: StartResponse, decided: HttpDecision
    ) -> list[bytes]:
        status, fields, body = self._http.refuse(environ, decided)
        start_response(_status_line(status), fields + decided.fields)
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    def _adding(self, start_response: StartResponse, decided: HttpDecision) -> StartResponse:
        """Return a function that adds the fields, and refunds by the response's status."""
        http, fields = self._http, decided.fields

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None, /) -> Any:
            if http.refunds:
                decided.finish(status < "4")
            more = fields if http.is_list else http.merged([name for name, _ in headers], fields)
            if exc_info is None:
                return start_response(status, [*headers, *more])
            return start_response(status, [*headers, *more], exc_info)

        return start


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Throttled"
