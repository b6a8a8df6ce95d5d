"""Django: middleware for the whole site, and limits for views, sync or async.

    MIDDLEWARE = ["dthrottle.django.ThrottleMiddleware", ...]
    DTHROTTLE = {"application_limits": "100/s", "trusted_proxies": ["10.0.0.0/8"]}

    @limit("5/minute", methods=["POST"])
    def login(request): ...

Every view has a budget of its own; ``shared_limit`` is one for several. All workers count together.
docs/python.md has the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings as site
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpResponse

from dthrottle.address import ClientAddress
from dthrottle.awaiting import AwaitingGate
from dthrottle.blocking import BlockingGate
from dthrottle.errors import ConfigError
from dthrottle.gate import Counts, Gate, Refusal, Verdict
from dthrottle.limits import Limit, Limits, Rate, shared
from dthrottle.near import known
from dthrottle.options import ELSEWHERE, LIMIT_OPTIONS, Settings
from dthrottle.source import Opened, table_config
from dthrottle.wsgi import WsgiReader

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dthrottle.options import LimitOptions

__all__ = ["ThrottleMiddleware", "counts", "limit", "shared_limit"]

F = TypeVar("F", bound=Callable[..., Any])
G = TypeVar("G", bound=Gate[Any])

_OF_SITE: Final = ("application_limits", "enabled", "table", "cluster")
_USER: Final = "user"
"""A tag beside those that all middleware has."""


class _Reader(WsgiReader[Any]):
    """Reads a request: META is an environ, under ASGI also."""

    def path(self, request: Any) -> str:
        """Give the path, which Django has decoded."""
        return str(request.path)


_READER: Final = _Reader(lambda request: request.META)


class ThrottleMiddleware:
    """Throttles the whole site by ``application_limits`` in the setting DTHROTTLE."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        rate = _setting().get("application_limits")
        if not _enabled():
            raise MiddlewareNotUsed("DTHROTTLE: enabled is False")
        if rate is None:
            right = 'DTHROTTLE = {"application_limits": "100/s"}'
            raise ConfigError(f"application_limits: is missing; add {right}", "application_limits")
        uses = _Uses(rate, {})
        self._limited = _limited(get_response, uses, lambda _request: "application")
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        """Answer a request."""
        return self._limited(request)


def limit(rate: Rate, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
    """Limit a view by a budget of its own."""
    uses = _Uses(rate, options)

    def decorate(view: F) -> F:
        return _limited(view, uses, lambda request: _view(request, view))

    return decorate


def shared_limit(rate: Rate, scope: str, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
    """Limit several views by one budget: wherever rate and scope are the same."""
    name, uses = shared(scope), _Uses(rate, options)

    def decorate(view: F) -> F:
        return _limited(view, uses, lambda _request: name)

    return decorate


def counts() -> Counts:
    """Give what happened to requests in this process, by all limits together."""
    return _limits().counts


class _Uses:
    """A limit for views of both kinds, made once: ``method_decorator`` decorates at every request."""

    def __init__(self, rate: Rate, options: Mapping[str, Any]) -> None:
        self._rate, self._options = rate, options

    @functools.cached_property
    def blocking(self) -> Limit[BlockingGate[Any]]:
        return _limit(self._rate, self._options, _blocking, can_await=False)

    @functools.cached_property
    def awaiting(self) -> Limit[AwaitingGate[Any]]:
        return _limit(self._rate, self._options, _awaiting, can_await=True)


def _is_async(view: Any) -> bool:
    """Say whether a view is to be awaited; the ``dispatch`` of a class does not look like it."""
    bound = getattr(view, "func", view)  # method_decorator gives a partial of it
    of_class = getattr(getattr(bound, "__self__", None), "view_is_async", False)
    return iscoroutinefunction(view) or of_class is True


def _limited(view: F, uses: _Uses, scope: Callable[[Any], str]) -> F:
    if _is_async(view):
        return _async_limited(view, uses.awaiting, scope)
    use = uses.blocking

    @functools.wraps(view)
    def limited(request: Any, *args: Any, **kwargs: Any) -> Any:
        gate = use.gate
        verdict = gate.judge(request, scope(request)) if _enabled() else None
        if verdict is None:
            return view(request, *args, **kwargs)
        request.dthrottle = verdict.decision
        if verdict.refused:
            return _response(gate.refuse(request, verdict), gate, verdict)
        gate.hold(verdict)
        return _told(view(request, *args, **kwargs), gate, verdict)

    return limited  # type: ignore[return-value]


def _async_limited(view: F, use: Limit[AwaitingGate[Any]], scope: Callable[[Any], str]) -> F:
    @functools.wraps(view)
    async def limited(request: Any, *args: Any, **kwargs: Any) -> Any:
        gate = use.gate
        verdict = await gate.judge(request, scope(request)) if _enabled() else None
        if verdict is None:
            return await view(request, *args, **kwargs)
        request.dthrottle = verdict.decision
        if verdict.refused:
            return _response(await gate.refuse(request, verdict), gate, verdict)
        await gate.hold(verdict)
        return _told(await view(request, *args, **kwargs), gate, verdict)

    return limited  # type: ignore[return-value]


# Settings.


def _setting() -> dict[str, Any]:
    setting = getattr(site, "DTHROTTLE", {})
    if not isinstance(setting, Mapping):
        raise ConfigError(f"DTHROTTLE: {setting!r} cannot be; must be a dict", "DTHROTTLE")
    known("DTHROTTLE", setting, (*_OF_SITE, *LIMIT_OPTIONS), ELSEWHERE)
    return dict(setting)


def _enabled() -> bool:
    # Tests turn it off by override_settings.
    setting = getattr(site, "DTHROTTLE", None)
    return not isinstance(setting, Mapping) or bool(setting.get("enabled", True))


@functools.cache
def _limits() -> Limits:
    setting = _setting()
    # Which view comes first is chance: the table is named after the settings of the site.
    table = table_config(setting.get("table"), str(getattr(site, "SETTINGS_MODULE", "")))
    options = {name: value for name, value in _options().items() if value != _USER}
    return Limits(table, setting.get("cluster"), options)


def _options() -> dict[str, Any]:
    return {name: value for name, value in _setting().items() if name not in _OF_SITE}


def _limit(
    rate: Rate,
    options: Mapping[str, Any],
    make: Callable[[Settings, Opened], G],
    *,
    can_await: bool,
) -> Limit[G]:
    merged = {**_options(), **options}
    if merged.get("tag") == _USER:
        options = {**options, "tag": _user_tag(merged, can_await=can_await)}
    return _limits().limit(rate, options, make, can_await=can_await)


def _blocking(settings: Settings, opened: Opened) -> BlockingGate[Any]:
    return BlockingGate(settings, opened, _READER)


def _awaiting(settings: Settings, opened: Opened) -> AwaitingGate[Any]:
    return AwaitingGate(settings, opened, _READER)


# Requests and responses.


def _user_tag(options: Mapping[str, Any], *, can_await: bool) -> Callable[[Any], Any]:
    """Tell clients apart by user; those who have not logged in, by address."""
    address = ClientAddress(
        trusted_proxies=options.get("trusted_proxies", 0),
        ipv6_prefix=options.get("ipv6_prefix", 64),
    )

    def tag(request: Any, user: Any) -> bytes | None:
        if user is not None and user.is_authenticated:
            return f"user:{user.pk}".encode()
        found = address(_READER.peer(request), _READER.forwarded_for(request))
        return None if found is None else b"address:" + found

    async def tag_later(request: Any) -> bytes | None:
        return tag(request, await request.auser() if hasattr(request, "auser") else None)

    return tag_later if can_await else lambda request: tag(request, getattr(request, "user", None))


def _view(request: Any, view: Any) -> str:
    """Name the view of a request; a class by its own name, whatever method was decorated."""
    match = getattr(request, "resolver_match", None)
    found = match.func if match is not None else view
    while not hasattr(found, "view_class"):
        if isinstance(found, functools.partial):
            found = found.func
        elif hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        else:
            break
    found = getattr(found, "view_class", found)
    # An object that is called has no name but that of its class.
    named = found if hasattr(found, "__qualname__") else type(found)
    return f"view:{named.__module__}.{named.__qualname__}"


def _response(refusal: Refusal, gate: Gate[Any], verdict: Verdict) -> Any:
    response = HttpResponse(refusal.body, status=refusal.status, headers=dict(refusal.fields))
    return _told(response, gate, verdict)


def _told(response: Any, gate: Gate[Any], verdict: Verdict) -> Any:
    if response is None:
        return response  # Django says what is wrong with that
    present = list(response.items())
    for name, value in gate.merged(present, verdict.fields, lambda pair: pair[0].lower()):
        # A response has one line of a name; a list goes on in it.
        response[name] = f"{response[name]}, {value}" if response.has_header(name) else value
    return response
