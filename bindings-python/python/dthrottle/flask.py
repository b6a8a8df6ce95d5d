"""An extension for Flask: limits for routes, written as decorators.

    limiter = Limiter(app, default_limits="100/minute")

    @app.post("/login")
    @limiter.limit("5/minute")
    def login(): ...

Every route has its own buckets; routes of one ``shared_limit`` share buckets. All workers share one
limit. For a whole application, ``dthrottle.wsgi`` is faster. docs/python.md has more.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import flask
from werkzeug.exceptions import TooManyRequests

from dthrottle._dthrottle import Decision, HttpDecision
from dthrottle.config import ClusterConfig
from dthrottle.errors import ConfigError
from dthrottle.limits import Limit, Limits, Rate, shared_scope
from dthrottle.middleware import Counts, HttpThrottle
from dthrottle.options import Table, check_names
from dthrottle.wsgi import DECISION, WsgiReader

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dthrottle.options import LimitOptions

__all__ = ["Limiter", "Refused"]

F = TypeVar("F", bound=Callable[..., Any] | flask.Blueprint)
_LIMITER_OPTIONS: Final = ("default_limits", "application_limits", "enabled", "table", "cluster")
_PREFIX: Final = "DTHROTTLE_"
# The attribute of a view that has its own limit, or is exempt from default limits.
_MARK: Final = "__dthrottle__"
_LIMITED: Final = "limited"
_EXEMPT: Final = "exempt"
# The scope of a limit for a whole application.
_APPLICATION: Final = "application"
# The attribute of a request with the decisions about it.
_APPLIED: Final = "_dthrottle"
_READER: Final = WsgiReader[flask.Request](lambda request: request.environ)


class Refused(TooManyRequests):
    """A request that was refused, for ``app.errorhandler(429)``."""

    decision: Decision


class Limiter:
    """The limits of one Flask application, or of several."""

    def __init__(
        self,
        *apps: flask.Flask | None,
        app: flask.Flask | None = None,
        default_limits: Rate | None = None,
        application_limits: Rate | None = None,
        enabled: bool = True,
        table: Table = None,
        cluster: ClusterConfig | None = None,
        **options: Unpack[LimitOptions],
    ) -> None:
        """``Limiter(app)``, or ``Limiter()`` and ``init_app(app)`` later, for several applications."""
        app = _application(apps, app)
        self.enabled = enabled
        self._given = {"table": table, "cluster": cluster, **options}
        # The configuration of an application may have more options.
        self._limits = Limits(_READER, table, cluster, options, is_complete=False)
        # Blueprints, not their names: those change where blueprints are nested or registered.
        self._of_blueprint: dict[flask.Blueprint, list[_Use]] = {}
        self._exempt: set[flask.Blueprint] = set()
        self._default = _use(self._limits, default_limits, None)
        self._for_all = _use(self._limits, application_limits, _APPLICATION)
        self._apps: weakref.WeakKeyDictionary[flask.Flask, _Configured] = (
            weakref.WeakKeyDictionary()
        )
        if app is not None:
            self.init_app(app)

    def init_app(self, app: flask.Flask) -> None:
        """Limit the requests of an application, and read its configuration.

        Every keyword of a Limiter may be set there, as ``DTHROTTLE_...``. Keywords in the code win.
        """
        if app in self._apps:
            return
        config = {key[len(_PREFIX) :].lower(): key for key in app.config if key.startswith(_PREFIX)}
        check_names(config, _LIMITER_OPTIONS, more=True)
        read = {name: app.config[key] for name, key in config.items()}
        enabled = bool(read.pop("enabled", True))
        default, for_all = (read.pop(name, None) for name in _LIMITER_OPTIONS[:2])
        more = {name: value for name, value in read.items() if self._given.get(name) is None}
        limits = self._limits
        # Applications without a configuration share one throttle.
        if more or default is not None or for_all is not None:
            limits = limits.derive(more.pop("table", None), more.pop("cluster", None), more)
        else:
            limits.complete()
        self._apps[app] = _Configured(
            enabled,
            limits,
            self._default or _use(limits, default, None),
            self._for_all or _use(limits, for_all, _APPLICATION),
        )
        app.extensions["dthrottle"] = self
        app.before_request(self._before)
        app.after_request(self._after)

    @property
    def counts(self) -> Counts:
        """The counts of this process."""
        return self._limits.counts

    def limit(self, rate: Rate, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
        """Limit a view, or every view of a blueprint. Each view has its own buckets."""
        return self._decorator(_Use(self._limits.limit(rate, options, can_await=False), None))

    def shared_limit(
        self, rate: Rate, scope: str, **options: Unpack[LimitOptions]
    ) -> Callable[[F], F]:
        """Limit several views together: those with the same rate and scope share buckets."""
        limit = self._limits.limit(rate, options, can_await=False)
        return self._decorator(_Use(limit, shared_scope(scope)))

    def exempt(self, target: F) -> F:
        """Exempt a view, or every view of a blueprint, from default and application limits."""
        if isinstance(target, flask.Blueprint):
            self._exempt.add(target)
        else:
            setattr(target, _MARK, _EXEMPT)
        return target

    def _decorator(self, use: _Use) -> Callable[[F], F]:
        def decorate(target: F) -> F:
            if isinstance(target, flask.Blueprint):
                self._of_blueprint.setdefault(target, []).append(use)
                return target

            @functools.wraps(target)
            def limited(*args: Any, **kwargs: Any) -> Any:
                self._apply(use)
                return flask.current_app.ensure_sync(target)(*args, **kwargs)

            setattr(limited, _MARK, _LIMITED)
            return limited  # type: ignore[return-value]

        return decorate

    # During a request.

    def _before(self) -> None:
        request, app = flask.request, _current_app()
        view = app.view_functions.get(request.endpoint or "")
        mark = getattr(view, _MARK, None)
        blueprints: list[Any] = [app.blueprints[name] for name in request.blueprints]
        if mark == _EXEMPT or not self._exempt.isdisjoint(blueprints):
            return
        if request.endpoint == "static":
            return
        configured = self._apps[app]
        self._apply(configured.for_all)
        uses = [use for one in blueprints for use in self._of_blueprint.get(one, ())]
        for use in uses:
            self._apply(use)
        if mark != _LIMITED and not uses and view is not None:
            self._apply(configured.default)

    def _apply(self, use: _Use | None) -> None:
        configured = self._apps.get(_current_app())
        if use is None or not self.enabled or (configured and not configured.enabled):
            return
        limits = configured.limits if configured else self._limits
        request, applied = flask.request, getattr(flask.request, _APPLIED, ())
        scope = use.scope or f"endpoint:{request.endpoint}"
        if use.scope is None or use.scope == _APPLICATION:
            # A Limiter may have several applications with equal names of endpoints.
            scope = f"{flask.current_app.name} {scope}"
        # If a blueprint and its view have equal limits, they have one bucket, which is checked once.
        label = limits.label(use.limit)
        if label is not None and any((label, scope) == (one.label, one.scope) for one in applied):
            return
        http = limits.used(use.limit)
        decided = http.decide(request, scope)
        if decided is None:
            return
        request.environ[DECISION] = decided.decision
        # Not in flask.g, because several requests of a test may share it.
        setattr(request, _APPLIED, (*applied, _Applied(http, decided, label, scope)))
        if decided.refused:
            raise _refused(http.refuse(request, decided), decided)
        http.delay(decided)

    def _after(self, response: flask.Response) -> flask.Response:
        headers = response.headers
        for http, decided, _, _ in getattr(flask.request, _APPLIED, ()):
            for field in http.merged(headers.keys(), decided.fields):
                headers.add(*field)
            if decided.refused:
                if decided.retry_after is not None:
                    headers.setdefault("Retry-After", str(decided.retry_after))
            elif http.refunds:
                decided.finish(response.status_code < 400)
        return response


class _Use(NamedTuple):
    """A limit and its scope; None counts each endpoint separately."""

    limit: Limit[flask.Request]
    scope: str | None


class _Configured(NamedTuple):
    """The limits of one application, with its configuration."""

    enabled: bool
    limits: Limits[flask.Request]
    default: _Use | None
    for_all: _Use | None


class _Applied(NamedTuple):
    """A decision about a request."""

    http: HttpThrottle[flask.Request]
    decided: HttpDecision
    label: str | None
    scope: str


def _use(limits: Limits[flask.Request], rate: Rate | None, scope: str | None) -> _Use | None:
    return None if rate is None else _Use(limits.limit(rate, {}, can_await=False), scope)


def _application(
    positional: tuple[flask.Flask | None, ...], app: flask.Flask | None
) -> flask.Flask | None:
    """Return the application of a Limiter. Flask-Limiter has a function as the first argument."""
    for one in positional:
        if one is not None and not isinstance(one, flask.Flask):
            hint = ""
            if callable(one):
                hint = (
                    "; clients are counted by address without a function, and a Limiter takes "
                    "another one as tag=lambda request: ..."
                )
            message = f"`app` must be a Flask application, got {one!r}{hint}"
            raise ConfigError(message, field="app")
    if len(positional) > 1 or (positional and app is not None):
        raise ConfigError("`app` must be given once, got it twice", field="app")
    return positional[0] if positional else app


def _current_app() -> flask.Flask:
    return flask.current_app._get_current_object()  # type: ignore[attr-defined, no-any-return]


def _refused(refusal: tuple[int, Any, bytes], decided: HttpDecision) -> Refused:
    status, fields, body = refusal
    # Flask finds error handlers by the code of the class.
    kind = Refused if status == Refused.code else _of_status(status)
    refused = kind(response=flask.Response(body, status, fields))
    refused.decision = decided.decision
    return refused


@functools.cache
def _of_status(status: int) -> type[Refused]:
    return type("Refused", (Refused,), {"code": status})
