"""The options of middleware and of limits, for type checkers. docs/http.md explains them.

The native module reads and checks them. This module has what is specific to Python: the values that
may be given as a throttle, and the checks of functions and regular expressions.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, TypedDict

from dthrottle._dthrottle import Decision, Domain, Throttle, nearest
from dthrottle.config import TableConfig
from dthrottle.errors import ConfigError

__all__ = [
    "Kind",
    "LimitOptions",
    "Options",
    "Source",
    "Table",
    "app_and_throttle",
    "check_functions",
    "check_names",
    "compiled",
    "seconds",
    "source_options",
]

Source = Domain | str | float | Mapping[str, Any] | os.PathLike[str]
"""A throttle or domain, a rate, the keywords of a Throttle, or the path of a file."""

Table = str | TableConfig | bool | None
"""The name of a table, its description, or False for a private one."""

Kind = Literal["standard", "draft-8", "draft-7", "draft-6", "x-ratelimit", "none"] | bool
Body = str | bytes | Mapping[str, Any]

FUNCTIONS: Final = ("tag", "cost", "skip", "body", "on_refused")
"""Options that may be functions."""


class LimitOptions(TypedDict, total=False):
    """The options of limits at routes."""

    burst: str | float
    tag: str | Callable[[Any], Any]
    cost: int | Callable[[Any], Any]
    methods: Collection[str]
    routes: Collection[str]
    allow: Collection[str | bytes]
    skip: Callable[[Any], Any]
    skip_failed_requests: bool
    skip_successful_requests: bool
    dry_run: bool
    status: int
    body: Body | Callable[[Any, Decision], Any]
    on_refused: Callable[[Any, Decision], Any]
    headers: Kind
    legacy_headers: bool
    retry_after: bool
    max_delay: float | timedelta
    max_delayed: int
    throttle_milliseconds: float | timedelta
    trusted_proxies: int | Iterable[str]
    ipv6_prefix: int


class Options(LimitOptions, total=False):
    """The options of middleware. A request is an environ (WSGI) or a scope (ASGI)."""

    domain: str
    table: Table


def source_options(source: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the source of a throttle with the options of a middleware."""
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(source, Domain):
        name = given.pop("domain", None)
        if name is not None:
            if not isinstance(source, Throttle):
                raise ConfigError("`domain` must be left out for a domain", field="domain")
            source = source.domain(name)
        more: Mapping[str, Any] = {"throttle": source}
    elif isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".toml")):
        more = {"file": os.fspath(source)}
    elif isinstance(source, (str, float, int)) and not isinstance(source, bool):
        more = {"rate": source}
    elif isinstance(source, Mapping):
        more = source
    else:
        right = "a Throttle, a rate, a dict, or the path of a file"
        raise ConfigError(f"`throttle` must be {right}, got {source!r}", field="throttle")
    for name in more:
        if name in given:
            raise ConfigError(f"`{name}` must be given once, got it twice", field=name)
    return {**more, **given}


def seconds(time: float | timedelta) -> float:
    """Return the seconds of a time, which may be given as a timedelta."""
    return time.total_seconds() if isinstance(time, timedelta) else time


def app_and_throttle(positional: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
    """Take the application and the throttle from the arguments of a middleware."""
    names = [name for name in ("app", "throttle") if name not in options]
    if len(positional) != len(names):
        raise TypeError(
            "ThrottleMiddleware takes an application and a throttle, such as "
            f'ThrottleMiddleware(app, "100/s"), got {len(positional)} positional arguments'
        )
    given = {**options, **dict(zip(names, positional, strict=True))}
    for name in ("app", "throttle"):
        options.pop(name, None)
    return given["app"], given["throttle"]


def check_functions(options: Mapping[str, Any], *, can_await: bool) -> None:
    """Check that no function is a coroutine if the middleware cannot await it."""
    for name in FUNCTIONS:
        value = options.get(name)
        if not can_await and inspect.iscoroutinefunction(value):
            right = "a plain function, because nothing awaits it here"
            raise ConfigError(f"`{name}` must be {right}, got {value!r}", field=name)


def compiled(routes: Iterable[str]) -> list[re.Pattern[str]]:
    """Compile the regular expressions of paths. The dot also matches a line break."""
    patterns = []
    for route in routes:
        try:
            patterns.append(re.compile(route, re.DOTALL))
        except re.error as error:
            right = f"a regular expression ({error})"
            raise ConfigError(f"`routes` must be {right}, got {route!r}", field="routes") from error
    return patterns


def check_names(given: Iterable[str], own: Collection[str], *, more: bool) -> None:
    """Check option names. With ``more``, the native module checks names that are not in ``own``."""
    for name in given:
        if name not in own and not (more and name in LimitOptions.__annotations__):
            hint = nearest(name, [*own, *(LimitOptions.__annotations__ if more else ())])
            if not more or hint in [f"did you mean `{near}`?" for near in own]:
                raise ConfigError(f"`{name}` is an unknown option; {hint}", field=name)
