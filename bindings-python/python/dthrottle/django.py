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

from dthrottle._dthrottle import HttpDecision
from dthrottle.address import ClientAddress
from dthrottle.errors import ConfigError
from dthrottle.limits import Limit, Limits, Rate, shared_scope
from dthrottle.middleware import Counts, HttpThrottle
from dthrottle.options import check_names
from dthrottle.wsgi import WsgiReader

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dthrottle.options import LimitOptions

__all__ = ["ThrottleMiddleware", "counts", "limit", "shared_limit"]

F = TypeVar("F", bound=Callable[..., Any])

_OF_SITE: Final = ("application_limits", "enabled", "table", "cluster")
_USER: Final = "user"
"""A tag beside those that all middleware has."""


class _Reader(WsgiReader[Any]):
    """Reads a request: META is an environ, under ASGI also."""

    def path(self, request: Any) -> str:
        """Return the path, which Django has decoded."""
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
        _limits()
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
    name, uses = shared_scope(scope), _Uses(rate, options)

    def decorate(view: F) -> F:
        return _limited(view, uses, lambda _request: name)

    return decorate


def counts() -> Counts:
    """Return the counts of this process, of all limits together."""
    return _limits().counts


class _Uses:
    """A limit for views of both kinds, made once: ``method_decorator`` decorates at every request."""

    def __init__(self, rate: Rate, options: Mapping[str, Any]) -> None:
        self._rate, self._options = rate, options

    @functools.cached_property
    def blocking(self) -> Limit[Any]:
        return _limit(self._rate, self._options, can_await=False)

    @functools.cached_property
    def awaiting(self) -> Limit[Any]:
        return _limit(self._rate, self._options, can_await=True)


def _is_async(view: Any) -> bool:
    """Return whether a view must be awaited; the ``dispatch`` of a class is not marked."""
    bound = getattr(view, "func", view)  # method_decorator gives a partial of it
    of_class = getattr(getattr(bound, "__self__", None), "view_is_async", False)
    return iscoroutinefunction(view) or of_class is True


def _limited(view: F, uses: _Uses, scope: Callable[[Any], str]) -> F:
    if _is_async(view):
        return _async_limited(view, uses.awaiting, scope)
    limits, limit = _limits(), uses.blocking

    @functools.wraps(view)
    def limited(request: Any, *args: Any, **kwargs: Any) -> Any:
        http = limits.used(limit)
        decided = http.decide(request, scope(request)) if _enabled() else None
        if decided is None:
            return view(request, *args, **kwargs)
        request.dthrottle = decided.decision
        if decided.refused:
            return _response(http.refuse(request, decided), http, decided)
        http.delay(decided)
        try:
            response = view(request, *args, **kwargs)
        except Exception:
            _finish(http, decided, 500)
            raise
        return _answered(response, http, decided)

    return limited  # type: ignore[return-value]


def _async_limited(view: F, limit: Limit[Any], scope: Callable[[Any], str]) -> F:
    limits = _limits()

    @functools.wraps(view)
    async def limited(request: Any, *args: Any, **kwargs: Any) -> Any:
        http = limits.used(limit)
        decided = await http.decide_async(request, scope(request)) if _enabled() else None
        if decided is None:
            return await view(request, *args, **kwargs)
        request.dthrottle = decided.decision
        if decided.refused:
            return _response(await http.refuse_async(request, decided), http, decided)
        await http.delay_async(decided)
        try:
            response = await view(request, *args, **kwargs)
        except Exception:
            _finish(http, decided, 500)
            raise
        return _answered(response, http, decided)

    return limited  # type: ignore[return-value]


# Settings.


def _setting() -> dict[str, Any]:
    setting = getattr(site, "DTHROTTLE", {})
    if not isinstance(setting, Mapping):
        raise ConfigError(f"DTHROTTLE: must be a dict, got {setting!r}", "DTHROTTLE")
    check_names(setting, _OF_SITE, more=True)
    return dict(setting)


def _enabled() -> bool:
    # Tests turn it off by override_settings.
    setting = getattr(site, "DTHROTTLE", None)
    return not isinstance(setting, Mapping) or bool(setting.get("enabled", True))


@functools.cache
def _limits() -> Limits[Any]:
    setting = _setting()
    # The order of views is not fixed, so the table is named after the site's settings.
    made_in = str(getattr(site, "SETTINGS_MODULE", ""))
    options = {name: value for name, value in _options().items() if value != _USER}
    # Each limit checks the names in allow by itself: it may have another tag.
    return Limits(_READER, setting.get("table"), setting.get("cluster"), options, made_in=made_in)


def _options() -> dict[str, Any]:
    return {name: value for name, value in _setting().items() if name not in _OF_SITE}


def _limit(rate: Rate, options: Mapping[str, Any], *, can_await: bool) -> Limit[Any]:
    merged = {**_options(), **options}
    if merged.get("tag") == _USER:
        options = {**options, "tag": _user_tag(merged, can_await=can_await)}
    return _limits().limit(rate, options, can_await=can_await)


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
        found = address(*_READER.address(request))
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
    # A callable object is named after its class.
    named = found if hasattr(found, "__qualname__") else type(found)
    return f"view:{named.__module__}.{named.__qualname__}"


def _response(
    refusal: tuple[int, Any, bytes], http: HttpThrottle[Any], decided: HttpDecision
) -> Any:
    status, fields, body = refusal
    return _with_fields(HttpResponse(body, status=status, headers=dict(fields)), http, decided)


def _answered(response: Any, http: HttpThrottle[Any], decided: HttpDecision) -> Any:
    if response is None:
        return response  # Django reports this error
    _finish(http, decided, response.status_code)
    return _with_fields(response, http, decided)


def _finish(http: HttpThrottle[Any], decided: HttpDecision, status: int) -> None:
    if http.refunds:
        decided.finish(status < 400)


def _with_fields(response: Any, http: HttpThrottle[Any], decided: HttpDecision) -> Any:
    for name, value in http.merged(response.headers.keys(), decided.fields):
        # A response has one line of a name; a list goes on in it.
        response[name] = f"{response[name]}, {value}" if response.has_header(name) else value
    return response
