"""An extension for Flask: limits for routes, written as decorators.

    limiter = Limiter(app, default_limits="100/minute")

    @app.post("/login")
    @limiter.limit("5/minute")
    def login(): ...

Every route has a budget of its own; ``shared_limit`` is one for several. All workers count together.
To throttle a whole application, ``dthrottle.wsgi`` is cheaper. docs/python.md has the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import flask
from werkzeug.exceptions import TooManyRequests

from dthrottle._dthrottle import Decision, HttpDecision
from dthrottle.config import ClusterConfig
from dthrottle.limits import Limit, Limits, Rate, shared_scope
from dthrottle.middleware import Counts, HttpThrottle
from dthrottle.options import Table, check_names
from dthrottle.wsgi import DECISION, WsgiReader

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dthrottle.options import LimitOptions

__all__ = ["Limiter", "Refused"]

F = TypeVar("F", bound=Callable[..., Any] | flask.Blueprint)
_OF_LIMITER: Final = ("default_limits", "application_limits", "enabled", "table", "cluster")
_PREFIX: Final = "DTHROTTLE_"
# Marks a view that has its own limit, or is exempt from default limits.
_MARK: Final = "__dthrottle__"
_LIMITED: Final = "limited"
_EXEMPT: Final = "exempt"
# The scope of a limit for a whole application.
_APPLICATION: Final = "application"
# Where an application keeps whether it is throttled.
_ENABLED: Final = "dthrottle.enabled"
# Where a request keeps the decisions about it.
_APPLIED: Final = "_dthrottle"
_READER: Final = WsgiReader[flask.Request](lambda request: request.environ)


class Refused(TooManyRequests):
    """A request that was refused, for ``app.errorhandler(429)``."""

    decision: Decision


class Limiter:
    """The limits of a Flask application."""

    def __init__(
        self,
        app: flask.Flask | None = None,
        *,
        default_limits: Rate | None = None,
        application_limits: Rate | None = None,
        enabled: bool = True,
        table: Table = None,
        cluster: ClusterConfig | None = None,
        **options: Unpack[LimitOptions],
    ) -> None:
        self.enabled = enabled
        self._given = {"table": table, "cluster": cluster, **options}
        # The application's configuration may have more of them.
        self._limits = Limits(_READER, table, cluster, options, more_follows=True)
        # Blueprints, not their names: those change where blueprints are nested or registered.
        self._of_blueprint: dict[flask.Blueprint, list[_Use]] = {}
        self._exempt: set[flask.Blueprint] = set()
        self._default: _Use | None = None
        self._application: _Use | None = None
        self._of_all(default_limits, application_limits)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: flask.Flask) -> None:
        """Limit the requests of an application, and read its configuration.

        Every keyword of a Limiter may stand there, as ``DTHROTTLE_...``; what the code says wins.
        """
        if app.extensions.get("dthrottle") is self:
            return
        config = {key[len(_PREFIX) :].lower(): key for key in app.config if key.startswith(_PREFIX)}
        check_names(config, _OF_LIMITER, more=True)
        read = {name: app.config[key] for name, key in config.items()}
        app.extensions[_ENABLED] = bool(read.pop("enabled", True))
        default = read.pop("default_limits", None)
        application = read.pop("application_limits", None)
        more = {name: value for name, value in read.items() if self._given.get(name) is None}
        self._limits.configure(more.pop("table", None), more.pop("cluster", None), more)
        self._of_all(default, application)
        app.extensions["dthrottle"] = self
        app.before_request(self._before)
        app.after_request(self._after)

    @property
    def counts(self) -> Counts:
        """The counts of this process."""
        return self._limits.counts

    def limit(self, rate: Rate, **options: Unpack[LimitOptions]) -> Callable[[F], F]:
        """Limit a view, or every view of a blueprint, each by a budget of its own."""
        return self._decorator(self._use(rate, None, options))

    def shared_limit(
        self, rate: Rate, scope: str, **options: Unpack[LimitOptions]
    ) -> Callable[[F], F]:
        """Limit several views by one budget: wherever rate and scope are the same."""
        return self._decorator(self._use(rate, shared_scope(scope), options))

    def exempt(self, target: F) -> F:
        """Free a view, or every view of a blueprint, of the limits that are for all."""
        if isinstance(target, flask.Blueprint):
            self._exempt.add(target)
        else:
            setattr(target, _MARK, _EXEMPT)
        return target

    def _use(self, rate: Rate, scope: str | None, options: Mapping[str, Any]) -> _Use:
        return _Use(self._limits.limit(rate, options, can_await=False), scope)

    def _of_all(self, default: Rate | None, application: Rate | None) -> None:
        if default is not None and self._default is None:
            self._default = self._use(default, None, {})
        if application is not None and self._application is None:
            self._application = self._use(application, _APPLICATION, {})

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
        request, app = flask.request, flask.current_app
        view = app.view_functions.get(request.endpoint or "")
        mark = getattr(view, _MARK, None)
        blueprints: list[Any] = [app.blueprints[name] for name in request.blueprints]
        if mark == _EXEMPT or not self._exempt.isdisjoint(blueprints):
            return
        if request.endpoint == "static":
            return
        self._apply(self._application)
        uses = [use for one in blueprints for use in self._of_blueprint.get(one, ())]
        for use in uses:
            self._apply(use)
        if mark != _LIMITED and not uses and view is not None:
            self._apply(self._default)

    def _apply(self, use: _Use | None) -> None:
        if use is None or not self.enabled or not flask.current_app.extensions.get(_ENABLED, True):
            return
        request, applied = flask.request, getattr(flask.request, _APPLIED, ())
        scope = use.scope or f"endpoint:{request.endpoint}"
        if use.scope is None or use.scope == _APPLICATION:
            # One Limiter may serve several applications, which have endpoints of one name.
            scope = f"{flask.current_app.name} {scope}"
        # A blueprint may have the limit of one of its views: that is one bucket, checked once.
        label = use.limit.label
        if label is not None and any((label, scope) == (one.label, one.scope) for one in applied):
            return
        http = self._limits.used(use.limit)
        decided = http.decide(request, scope)
        if decided is None:
            return
        request.environ[DECISION] = decided.decision
        # Not in flask.g, which several requests of a test may share.
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
    """A limit at some place; without a scope it counts each endpoint apart."""

    limit: Limit[flask.Request]
    scope: str | None


class _Applied(NamedTuple):
    """A decision about a request."""

    http: HttpThrottle[flask.Request]
    decided: HttpDecision
    label: str | None
    scope: str


def _refused(refusal: tuple[int, Any, bytes], decided: HttpDecision) -> Refused:
    status, fields, body = refusal
    # Handlers are found by the code of the class.
    kind = Refused if status == Refused.code else _of_status(status)
    refused = kind(response=flask.Response(body, status, fields))
    refused.decision = decided.decision
    return refused


@functools.cache
def _of_status(status: int) -> type[Refused]:
    return type("Refused", (Refused,), {"code": status})
