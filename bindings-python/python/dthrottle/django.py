"""Django: middleware for the whole site, and limits for views, sync or async.

    MIDDLEWARE = ["dthrottle.django.ThrottleMiddleware", ...]
    DTHROTTLE = {"application_limits": "100/s", "trusted_proxies": ["10.0.0.0/8"]}

    @limit("5/minute", methods=["POST"])
    def login(request): ...

Every view has its own buckets; views of one ``shared_limit`` share buckets. All workers share one
limit. docs/python.md has more.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings as site
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpResponse
from django.utils.decorators import method_decorator

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

_SITE_OPTIONS: Final = ("application_limits", "enabled", "table", "cluster")
_USER: Final = "user"
"""A value of the option tag that only Django has."""
_VIEW: Final = "_dthrottle_view"
"""The attribute of a request that holds the view that authenticates it."""

_Scope = Callable[[Any, Any], str]
_logger = logging.getLogger("dthrottle")


class _Reader(WsgiReader[Any]):
    """Reads a request, whose META is an environ, also under ASGI."""

    def path(self, request: Any) -> str:
        """Return the path, which Django has decoded."""
        return str(request.path)


_READER: Final = _Reader(lambda request: request.META)


class ThrottleMiddleware:
    """Limits the whole site by ``application_limits`` in the setting DTHROTTLE."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        rate = _setting().get("application_limits")
        if not _enabled():
            raise MiddlewareNotUsed("DTHROTTLE has enabled = False")
        _limits()
        if rate is None:
            right = 'DTHROTTLE = {"application_limits": "100/s"}'
            raise ConfigError(f"`application_limits` is missing; add {right}", "application_limits")
        uses = _Uses(rate, {})
        self._limited = _limited(get_response, uses, lambda _request, _owner: "application")
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        """Answer a request."""
        return self._limited(request)


def limit(rate: Rate, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
    """Limit a view: a function, a class, or a method of a class."""
    return _decorator(_Uses(rate, options), None)


def shared_limit(rate: Rate, scope: str, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
    """Limit several views together: those with the same rate and scope share buckets."""
    return _decorator(_Uses(rate, options), shared_scope(scope))


def counts() -> Counts:
    """Return the counts of this process, of all limits together."""
    return _limits().counts


class _Uses:
    """A limit for sync and async views, made once. ``method_decorator`` decorates at every request."""

    def __init__(self, rate: Rate, options: Mapping[str, Any]) -> None:
        self._rate, self._options = rate, options
        _limits().check(rate, _with_user_tag(options, can_await=True))

    @functools.cached_property
    def blocking(self) -> Limit[Any]:
        return _limit(self._rate, self._options, can_await=False)

    @functools.cached_property
    def awaiting(self) -> Limit[Any]:
        return _limit(self._rate, self._options, can_await=True)


def _decorator(uses: _Uses, name: str | None) -> Callable[[F], F]:
    def decorate(view: F) -> F:
        if isinstance(view, type):
            return cast("F", _limited_class(view, decorate))
        return _limited(view, uses, lambda request, owner: name or _name_of(view, request, owner))

    return decorate


def _limited_class(view: Any, decorate: Callable[[Any], Any]) -> Any:
    if not callable(getattr(view, "dispatch", None)):
        right = "a function, a class of views (with a method `dispatch`), or a method of one"
        raise ConfigError(f"`limit` must decorate {right}, got {view!r}", "limit")
    return method_decorator(decorate, name="dispatch")(view)


def _request_of(view: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Return the request of a call, and the object if a method of a class was decorated."""
    first, *more = (*args, kwargs["request"]) if "request" in kwargs else args
    if hasattr(first, "META"):
        _authenticate_by(_object_of(view), first)
        return first, None
    _authenticate_by(first, more[0])
    return more[0], first


def _object_of(view: Any) -> Any:
    """Return the object of a bound method; ``method_decorator`` gives a partial of it."""
    return getattr(getattr(view, "func", view), "__self__", None)


def _is_async(view: Any) -> bool:
    """Return whether a view must be awaited. The ``dispatch`` of an async class is not marked."""
    of_class = getattr(_object_of(view), "view_is_async", False)
    return iscoroutinefunction(view) or of_class is True


def _limited(view: F, uses: _Uses, scope: _Scope) -> F:
    if _is_async(view):
        return _async_limited(view, uses.awaiting, scope)
    limits, limit = _limits(), uses.blocking

    @functools.wraps(view)
    def limited(*args: Any, **kwargs: Any) -> Any:
        http, (request, owner) = limits.used(limit), _request_of(view, args, kwargs)
        decided = http.decide(request, scope(request, owner)) if _enabled() else None
        if decided is None:
            return view(*args, **kwargs)
        request.dthrottle = decided.decision
        if decided.refused:
            return _response(http.refuse(request, decided), http, decided)
        http.delay(decided)
        try:
            response = view(*args, **kwargs)
        except Exception:
            _finish(http, decided, 500)
            raise
        return _answered(response, http, decided)

    return limited  # type: ignore[return-value]


def _async_limited(view: F, limit: Limit[Any], scope: _Scope) -> F:
    limits = _limits()

    @functools.wraps(view)
    async def limited(*args: Any, **kwargs: Any) -> Any:
        http, (request, owner) = limits.used(limit), _request_of(view, args, kwargs)
        scoped = scope(request, owner)
        decided = await http.decide_async(request, scoped) if _enabled() else None
        if decided is None:
            return await view(*args, **kwargs)
        request.dthrottle = decided.decision
        if decided.refused:
            return _response(await http.refuse_async(request, decided), http, decided)
        await http.delay_async(decided)
        try:
            response = await view(*args, **kwargs)
        except Exception:
            _finish(http, decided, 500)
            raise
        return _answered(response, http, decided)

    return limited  # type: ignore[return-value]


# Settings.


def _setting() -> dict[str, Any]:
    setting = getattr(site, "DTHROTTLE", {})
    if not isinstance(setting, Mapping):
        raise ConfigError(f"`DTHROTTLE` must be a dict, got {setting!r}", "DTHROTTLE")
    check_names(setting, _SITE_OPTIONS, more=True)
    return dict(setting)


def _enabled() -> bool:
    # Not cached, because tests change it by override_settings.
    setting = getattr(site, "DTHROTTLE", None)
    return not isinstance(setting, Mapping) or bool(setting.get("enabled", True))


@functools.cache
def _limits() -> Limits[Any]:
    setting = _setting()
    # Views may be imported in any order, so the settings module names the table.
    made_in = str(getattr(site, "SETTINGS_MODULE", ""))
    options = {name: value for name, value in _options().items() if value != _USER}
    # Each limit checks the names in allow, because it may have another tag.
    return Limits(_READER, setting.get("table"), setting.get("cluster"), options, made_in=made_in)


def _options() -> dict[str, Any]:
    return {name: value for name, value in _setting().items() if name not in _SITE_OPTIONS}


def _limit(rate: Rate, options: Mapping[str, Any], *, can_await: bool) -> Limit[Any]:
    options = _with_user_tag(options, can_await=can_await)
    return _limits().limit(rate, options, can_await=can_await)


def _with_user_tag(options: Mapping[str, Any], *, can_await: bool) -> Mapping[str, Any]:
    merged = {**_options(), **options}
    if merged.get("tag") == _USER:
        return {**options, "tag": _user_tag(merged, can_await=can_await)}
    return options


# Requests and responses.


def _user_tag(options: Mapping[str, Any], *, can_await: bool) -> Callable[[Any], Any]:
    """Return a tag function: the user, or the address of a client that has not logged in."""
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
        if not hasattr(request, "auser"):
            _warn_of_no_user()
            return tag(request, None)
        return tag(request, await request.auser())

    return tag_later if can_await else lambda request: tag(request, _user(request))


def _authenticate_by(view: Any, request: Any) -> None:
    """Note the view that authenticates a request later, as those of Django REST framework do."""
    if hasattr(view, "initialize_request") and not hasattr(request, "authenticators"):
        setattr(request, _VIEW, view)


def _user(request: Any) -> Any:
    """Return the user of a request, if there is one."""
    view = getattr(request, _VIEW, None)
    if view is not None:
        return _user_by(view, request)
    if not hasattr(request, "user"):
        _warn_of_no_user()
    return getattr(request, "user", None)


def _user_by(view: Any, request: Any) -> Any:
    """Let a view of Django REST framework authenticate a copy of a request that has no body."""
    probe = copy.copy(request)
    probe.method, probe._body, probe._read_started = "GET", b"", True
    probe.META = {**request.META, "CONTENT_LENGTH": "0"}
    try:
        return view.initialize_request(probe).user
    except Exception as error:
        if getattr(error, "status_code", 500) >= 500:
            raise
        return None  # the view refuses the request


@functools.cache
def _warn_of_no_user() -> None:
    _logger.warning(
        'tag="user": a request has no user, so its address is counted; ThrottleMiddleware must '
        "stand after AuthenticationMiddleware in MIDDLEWARE; this is logged once"
    )


def _name_of(view: Any, request: Any, owner: Any) -> str:
    """Name a view; a class by its own name if ``dispatch`` was decorated."""
    if owner is not None and view.__name__ != "dispatch":
        return f"view:{type(owner).__module__}.{type(owner).__qualname__}.{view.__name__}"
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
    # A callable object has the name of its class.
    named = found if hasattr(found, "__qualname__") else type(found)
    name = named.__qualname__
    if name.rpartition(".")[2] != getattr(named, "__name__", name):
        name = f"{name}.{named.__name__}"  # the class that REST framework makes of a function
    return f"view:{named.__module__}.{name}"


def _response(
    refusal: tuple[int, Any, bytes], http: HttpThrottle[Any], decided: HttpDecision
) -> Any:
    status, fields, body = refusal
    return _with_fields(HttpResponse(body, status=status, headers=dict(fields)), http, decided)


def _answered(response: Any, http: HttpThrottle[Any], decided: HttpDecision) -> Any:
    if response is None:
        return response  # Django reports that the view returned None
    _finish(http, decided, response.status_code)
    return _with_fields(response, http, decided)


def _finish(http: HttpThrottle[Any], decided: HttpDecision, status: int) -> None:
    if http.refunds:
        decided.finish(status < 400)


def _with_fields(response: Any, http: HttpThrottle[Any], decided: HttpDecision) -> Any:
    for name, value in http.merged(response.headers.keys(), decided.fields):
        # Django responses have one line per name, so a list is extended.
        response[name] = f"{response[name]}, {value}" if response.has_header(name) else value
    return response
