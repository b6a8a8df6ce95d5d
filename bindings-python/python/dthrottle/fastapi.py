"""Limits for the routes of FastAPI, as dependencies.

    limiter = Limiter()

    @app.post("/login", dependencies=[Depends(limiter.limit("5/minute"))])
    async def login(): ...

Every route has a budget of its own; ``shared_limit`` is one for several. All workers count together.
To throttle a whole application, ``dthrottle.asgi`` is cheaper. docs/python.md has the rest.
"""

# Without ``from __future__ import annotations``: FastAPI reads those of a dependency, and where they
# are text earlier versions (0.110) take the request for a parameter of the query.

from typing import TYPE_CHECKING, Any, Final

from fastapi import HTTPException, Request, Response
from starlette.requests import HTTPConnection

from dthrottle._dthrottle import Decision
from dthrottle.asgi import DECISION, AsgiReader
from dthrottle.awaiting import AwaitingGate
from dthrottle.config import ClusterConfig
from dthrottle.gate import Counts, Refusal, Verdict
from dthrottle.limits import Limit, Limits, Rate, shared
from dthrottle.options import Settings
from dthrottle.source import Opened, Table, table_config

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dthrottle.options import LimitOptions

__all__ = ["Dependency", "Limiter", "Refused", "refused_handler"]

Gate = AwaitingGate[Request]

_READER: Final = AsgiReader[Request](lambda request: request.scope)


class Refused(HTTPException):
    """A request that was refused. FastAPI answers ``{"detail": "Too Many Requests"}``."""

    def __init__(self, decision: Decision, refusal: Refusal, verdict: Verdict) -> None:
        told = [pair for pair in refusal.fields if pair[0] == "Retry-After"]
        headers = dict(told + verdict.fields)
        super().__init__(refusal.status, "Too Many Requests", headers)
        self.decision = decision
        self.body = refusal.body
        self.media_type = dict(refusal.fields)["Content-Type"]


async def refused_handler(_request: Request, refused: Exception) -> Response:
    """Answer with the body that the limit has: ``app.add_exception_handler(Refused, ...)``."""
    if not isinstance(refused, Refused):
        raise refused
    headers, media_type = refused.headers, refused.media_type
    return Response(refused.body, refused.status_code, headers, media_type)


class Limiter:
    """The limits of a FastAPI application."""

    def __init__(
        self,
        *,
        enabled: bool = True,
        table: Table = None,
        cluster: ClusterConfig | None = None,
        **options: "Unpack[LimitOptions]",
    ) -> None:
        self.enabled = enabled
        self._limits = Limits(table_config(table), cluster, options)

    @property
    def counts(self) -> Counts:
        """What happened to requests in this process."""
        return self._limits.counts

    def limit(self, rate: Rate, **options: "Unpack[LimitOptions]") -> "Dependency":
        """Limit every route that depends on it, each by a budget of its own."""
        return Dependency(self, self._limit(rate, options), None)

    def shared_limit(
        self, rate: Rate, scope: str, **options: "Unpack[LimitOptions]"
    ) -> "Dependency":
        """Limit several routes by one budget: wherever rate and scope are the same."""
        return Dependency(self, self._limit(rate, options), shared(scope))

    def _limit(self, rate: Rate, options: "LimitOptions") -> Limit[Gate]:
        return self._limits.limit(rate, options, _gate, can_await=True)


class Dependency:
    """What a route depends on: ``Depends(limiter.limit("5/minute"))``. It gives the decision."""

    def __init__(self, limiter: Limiter, limit: Limit[Gate], scope: str | None) -> None:
        self._limiter = limiter
        self._limit = limit
        self._scope = scope

    async def __call__(self, request: HTTPConnection, response: Response) -> Decision | None:
        """Let a request pass, now or later, or refuse it. Websockets pass."""
        if not self._limiter.enabled or not isinstance(request, Request):
            return None
        gate = self._limit.gate
        verdict = await gate.judge(request, self._scope or _endpoint(request))
        if verdict is None:
            return None
        request.scope[DECISION] = verdict.decision
        if verdict.refused:
            raise Refused(verdict.decision, await gate.refuse(request, verdict), verdict)
        present = list(response.headers.items())
        for name, value in gate.merged(present, verdict.fields, lambda pair: pair[0].lower()):
            response.headers.append(name, value)
        await gate.hold(verdict)
        return verdict.decision


def _endpoint(request: Request) -> str:
    # Nothing that clients write: where an application is mounted at "/{tenant}", that is in the
    # root path. So routes of several applications are told apart by their functions.
    route: Any = request.scope.get("route")
    methods = ",".join(sorted(getattr(route, "methods", None) or ()))
    function = getattr(route, "endpoint", None)
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    return f"endpoint:{methods} {getattr(route, 'path', '')} {name}"


def _gate(settings: Settings, opened: Opened) -> Gate:
    return AwaitingGate(settings, opened, _READER)
