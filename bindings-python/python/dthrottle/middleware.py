"""The part that all adapters share: read a request, call the application's functions, decide, wait.

The native module decides, in one call per request. Any failure lets the request pass, is counted
(``counts``), and is logged once per cause.
"""

from __future__ import annotations

import asyncio
import logging
import operator
import time
from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable, iscoroutine
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from dthrottle._dthrottle import HttpDecision, Middleware, SharedThrottle
from dthrottle.errors import ConfigError
from dthrottle.options import check_functions, compiled

__all__ = ["Counts", "Fields", "HttpThrottle", "Reader", "log_table"]

Request = TypeVar("Request")
R = TypeVar("R", contravariant=True)

Fields = list[tuple[str, str]]

_logger = logging.getLogger("dthrottle")

_MOST_COST: Final = 2**53
_FAILED: Final = object()
"""The result of a function that failed."""
_ERRORS: Final = ("DTHROTTLE_FAILED", "DTHROTTLE_NO_TAG")
_NO_WAITING: Final = (
    "max_delay and throttle_milliseconds have no effect, because this server handles one request at a time "
    "(wsgi.multithread is false); this is logged once"
)


class Reader(Protocol[R]):
    """Reads requests of one framework."""

    def method(self, request: R) -> str:
        """Return the method, in capitals."""

    def path(self, request: R) -> str:
        """Return the whole path, decoded, without the query."""

    def header(self, request: R, name: str) -> str | None:
        """Return the value of a header."""

    def address(self, request: R) -> tuple[str | None, str | list[str] | None]:
        """Return the address of the peer, and X-Forwarded-For."""

    def can_delay(self, request: R, /) -> bool:
        """Return whether the process serves other requests while it delays this one."""


class Counts(NamedTuple):
    """The requests of this process, by their result."""

    passed: int = 0
    refused: int = 0
    dry_run: int = 0
    """Passed only because of dry run."""
    delayed: int = 0
    """Were delayed until their turn."""
    gave_up: int = 0
    """Refunded because the client left before its turn."""
    untagged: int = 0
    """Had no usable tag: counted by address, or passed if the address is the tag and unknown."""
    failed: int = 0
    """Errors of functions among the options, and of the throttle."""


class HttpThrottle(Generic[Request]):
    """Decides about requests, and delays those that must wait."""

    def __init__(
        self,
        options: Mapping[str, Any],
        reader: Reader[Request],
        *,
        can_await: bool,
        application: str | None,
        name_part: str = "",
        is_template: bool = False,
        within: SharedThrottle | None = None,
    ) -> None:
        check_functions(options, can_await=can_await)
        self.native = Middleware(
            dict(options),
            application=application,
            name_part=name_part,
            is_template=is_template,
            within=within,
            on_warning=_log,
        )
        native = self.native
        self._decide = native.decide
        self._reader = reader
        self._routes = compiled(native.routes)
        self._methods = None if native.methods is None else frozenset(native.methods)
        self._exempts = native.exempts
        self._header = native.tag_header
        self._skip = options.get("skip")
        given = (options.get(name) for name in ("tag", "cost", "body"))
        self._tag, self._cost, self._body = (v if callable(v) else None for v in given)
        self._on_refused = options.get("on_refused")
        self._selects = bool(self._routes or self._methods or self._exempts)
        self._is_plain = not (
            self._selects
            or self._skip
            or self._tag
            or self._header
            or self._cost
            or native.may_delay
        )
        """Whether only the address of a request has to be read."""
        self._may_delay = native.may_delay
        self.is_list = native.is_list
        """Whether all fields are lists, so ``merged`` need not be called."""
        self.refunds = native.refunds
        """Whether ``HttpDecision.finish`` must be called with every response."""
        self._reported: set[str] = set()

    @property
    def counts(self) -> Counts:
        """The requests of this process."""
        return Counts(**self.native.counts)

    # Deciding.

    def decide(self, request: Request, scope: str = "") -> HttpDecision | None:
        """Decide about a request. Return None if it passes without a decision."""
        more: dict[str, Any] = {}
        if not self._is_plain:
            if self._selects and not self._is_selected(request):
                return None
            if self._skip and self._is_true(self._call("skip", self._skip, request)):
                return None
            if self._tag:
                more["tag"] = self._call("tag", self._tag, request)
            if self._cost:
                more["cost"] = self._call("cost", self._cost, request)
            self._complete(more, request)
        decided = self._ask(request, scope, more)
        if decided is not None and self._on_refused and decided.decision.rule is not None:
            self._call("on_refused", self._on_refused, request, decided.decision)
        return decided

    async def decide_async(self, request: Request, scope: str = "") -> HttpDecision | None:
        """Like ``decide``; functions of the application may be coroutines."""
        await_result = self._await_result
        more: dict[str, Any] = {}
        if not self._is_plain:
            if self._selects and not self._is_selected(request):
                return None
            if self._skip:
                skips = await await_result("skip", self._call("skip", self._skip, request))
                if skips is not _FAILED and self._call("skip", bool, skips) is True:
                    return None
            if self._tag:
                more["tag"] = await await_result("tag", self._call("tag", self._tag, request))
            if self._cost:
                more["cost"] = await await_result("cost", self._call("cost", self._cost, request))
            self._complete(more, request)
        decided = self._ask(request, scope, more)
        if decided is not None and self._on_refused and decided.decision.rule is not None:
            given = self._call("on_refused", self._on_refused, request, decided.decision)
            await await_result("on_refused", given)
        return decided

    def _ask(self, request: Request, scope: str, more: dict[str, Any]) -> HttpDecision | None:
        try:
            peer, forwarded = self._reader.address(request)
            return self._decide(peer, forwarded, scope, **more)
        except Exception:
            self._failed("check")
            return None

    def _is_selected(self, request: Request) -> bool:
        """Return whether a request is throttled by its method, its path and its address."""
        reader = self._reader
        if self._methods is not None and reader.method(request) not in self._methods:
            return False
        if self._routes:
            path = reader.path(request)
            paths = (path, path.rstrip("/") or path)
            if not any(route.fullmatch(path) for route in self._routes for path in paths):
                return False
        if not self._exempts:
            return True
        return not self.native.is_exempt(*reader.address(request))

    def _complete(self, more: dict[str, Any], request: Request) -> None:
        """Add the header with the tag, whether the server can wait, and the checked cost."""
        if self._header:
            more["tag"] = self._reader.header(request, self._header)
        elif more.get("tag") is _FAILED:
            del more["tag"]
        if "cost" in more:
            more["cost"] = self._units(more["cost"])
        if self._may_delay and not self._reader.can_delay(request):
            more["can_delay"] = False
            if "can_delay" not in self._reported:
                self._reported.add("can_delay")
                _logger.warning(_NO_WAITING)

    def _units(self, cost: Any) -> int:
        if cost is _FAILED:
            return 1
        try:
            units = int(cost) if isinstance(cost, float) else operator.index(cost)
            if units < 0 or units != cost:
                raise ValueError(f"`cost` must be a whole number of at least 0, got {cost!r}")
        except Exception:
            # If such requests were free, clients could evade the limit.
            self._failed("cost")
            return 1
        return min(units, _MOST_COST)

    def _is_true(self, value: Any) -> bool:
        if not isawaitable(value):
            return value is not _FAILED and self._call("skip", bool, value) is True
        # A coroutine is truthy, and nothing awaits it here.
        if iscoroutine(value):
            value.close()
        self._call("skip", _raise_not_awaited)
        return False

    # Waiting and refusing.

    def delay(self, decided: HttpDecision) -> None:
        """Wait for the turn of a request, or of a refusal."""
        if decided.delay:
            is_gone = True
            try:
                time.sleep(decided.delay)
                is_gone = False
            finally:
                decided.end_delay(is_gone)

    async def delay_async(self, decided: HttpDecision) -> None:
        """Wait without blocking."""
        if decided.delay:
            is_gone = True
            try:
                await asyncio.sleep(decided.delay)
                is_gone = False
            finally:
                decided.end_delay(is_gone)

    def refuse(self, request: Request, decided: HttpDecision) -> tuple[int, Fields, bytes]:
        """Return status, fields and content of a refusal, without the fields of all responses."""
        self.delay(decided)
        body = self._body and self._call("body", self._body, request, decided.decision)
        return self._refusal(decided, body)

    async def refuse_async(
        self, request: Request, decided: HttpDecision
    ) -> tuple[int, Fields, bytes]:
        """Return a refusal; the body's function may be a coroutine."""
        await self.delay_async(decided)
        body = self._body and self._call("body", self._body, request, decided.decision)
        return self._refusal(decided, await self._await_result("body", body))

    def _refusal(self, decided: HttpDecision, body: Any) -> tuple[int, Fields, bytes]:
        try:
            return decided.refusal(None if body is _FAILED else body)
        except Exception:
            self._failed("body")
            return decided.refusal()

    def merged(self, present: Iterable[str], fields: Fields) -> Fields:
        """Return the fields that the response does not have yet. Lists are always returned."""
        if self.is_list:
            return fields
        there = {name.lower() for name in present}
        return [field for field in fields if field[0].lower() not in there]

    # Failures.

    def _call(self, option: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the application."""
        try:
            return function(*arguments)
        except Exception:
            self._failed(option)
            return _FAILED

    async def _await_result(self, option: str, value: Any) -> Any:
        """Await the result of a function of the application, if it is awaitable."""
        if not isawaitable(value):
            return value
        try:
            return await value
        except Exception:
            self._failed(option)
            return _FAILED

    def _failed(self, cause: str) -> None:
        """Count the exception that is being handled, and log the first one of each cause."""
        self.native.count_failure()
        if cause not in self._reported:
            self._reported.add(cause)
            _logger.exception("%s failed; this is logged once, and counted", cause)


def log_table(what: str, native: Middleware) -> None:
    """Log where requests are counted."""
    name = native.table_name
    where = f"shared in table {name}" if name else "in a table without a name"
    logger = _visible_logger()
    prefix = "" if logger is _logger else "dthrottle: "
    logger.info("%sthrottling by %s, %s", prefix, what, where)


def _visible_logger() -> logging.Logger:
    """Return the logger of the server if no handler shows what this package logs.

    By default Python shows nothing below WARNING, and gunicorn and uvicorn show only their own logs.
    """
    loggers = logging.root.manager.loggerDict
    servers = [loggers.get(name) for name in ("gunicorn.error", "uvicorn.error", "hypercorn.error")]
    found = [logger for logger in (_logger, *servers) if isinstance(logger, logging.Logger)]
    shown = [one for one in found if one.isEnabledFor(logging.INFO) and one.hasHandlers()]
    return next(iter(shown), _logger)


def _raise_not_awaited() -> None:
    raise ConfigError("`skip` must return True or False, got an awaitable", field="skip")


def _log(code: str, message: str) -> None:
    level = logging.ERROR if code in _ERRORS else logging.WARNING
    _logger.log(level, "%s", message)
