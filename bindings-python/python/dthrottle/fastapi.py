"""Limits for the routes of FastAPI, as dependencies.

    limiter = Limiter()

    @app.post("/login", dependencies=[Depends(limiter.limit("5/minute"))])
    async def login(): ...

Every route has its own buckets; routes of one ``shared_limit`` share buckets. All workers share one
limit. For a whole application, ``dthrottle.asgi`` is faster. docs/python.md has more.
"""

# No ``from __future__ import annotations``, because FastAPI 0.110 treats the request as a query
# parameter if its annotation is text.

from typing import TYPE_CHECKING, Any, Final

from fastapi import HTTPException, Request, Response
from starlette.requests import HTTPConnection

from dthrottle._dthrottle import Decision, HttpDecision
from dthrottle.asgi import DECISION, AsgiReader
from dthrottle.config import ClusterConfig
from dthrottle.errors import ConfigError
from dthrottle.limits import Limit, Limits, Rate, shared_scope
from dthrottle.middleware import Counts, Fields
from dthrottle.options import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dthrottle.options import LimitOptions

__all__ = ["Dependency", "Limiter", "Refused", "refused_handler"]

_READER: Final = AsgiReader[Request](lambda request: request.scope)


class Refused(HTTPException):
    """A request that was refused. FastAPI answers ``{"detail": "Too Many Requests"}``."""

    def __init__(self, decided: HttpDecision, refusal: tuple[int, Fields, bytes]) -> None:
        status, fields, self.body = refusal
        own = dict(fields)
        # FastAPI makes another body, with another type and length.
        self.media_type = own.pop("Content-Type")
        del own["Content-Length"]
        super().__init__(status, "Too Many Requests", {**own, **dict(decided.fields)})
        self.decision = decided.decision


async def refused_handler(_request: Request, refused: Exception) -> Response:
    """Respond with the option ``body``: ``app.add_exception_handler(Refused, refused_handler)``."""
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
        _check(options)
        self._limits = Limits(_READER, table, cluster, options)

    @property
    def counts(self) -> Counts:
        """The counts of this process."""
        return self._limits.counts

    def limit(self, rate: Rate, **options: "Unpack[LimitOptions]") -> "Dependency":
        """Limit every route that depends on it. Each route has its own buckets."""
        return Dependency(self, self._limit(rate, options), None)

    def shared_limit(
        self, rate: Rate, scope: str, **options: "Unpack[LimitOptions]"
    ) -> "Dependency":
        """Limit several routes together: those with the same rate and scope share buckets."""
        return Dependency(self, self._limit(rate, options), shared_scope(scope))

    def _limit(self, rate: Rate, options: "LimitOptions") -> Limit[Request]:
        _check(options)
        return self._limits.limit(rate, options, can_await=True)


class Dependency:
    """A dependency of a route: ``Depends(limiter.limit("5/minute"))``. Returns the decision."""

    def __init__(self, limiter: Limiter, limit: Limit[Request], scope: str | None) -> None:
        self._limiter = limiter
        self._limit = limit
        self._scope = scope

    async def __call__(self, request: HTTPConnection, response: Response) -> Decision | None:
        """Pass, delay or refuse a request. Websockets pass."""
        if not self._limiter.enabled or not isinstance(request, Request):
            return None
        http = self._limiter._limits.used(self._limit)
        decided = await http.decide_async(request, self._scope or _endpoint(request))
        if decided is None:
            return None
        request.scope[DECISION] = decided.decision
        if decided.refused:
            raise Refused(decided, await http.refuse_async(request, decided))
        for name, value in http.merged(response.headers.keys(), decided.fields):
            response.headers.append(name, value)
        await http.delay_async(decided)
        return decided.decision


def _check(options: "LimitOptions") -> None:
    for name in ("skip_failed_requests", "skip_successful_requests"):
        if options.get(name):
            message = f"`{name}` has no effect in a dependency, which does not see the response; use dthrottle.asgi"
            raise ConfigError(message, field=name)


def _endpoint(request: Request) -> str:
    # The name does not contain the root path, because clients choose it if an application is mounted
    # at "/{tenant}". The function distinguishes routes of several applications.
    route: Any = request.scope.get("route")
    methods = ",".join(sorted(getattr(route, "methods", None) or ()))
    function = getattr(route, "endpoint", None)
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    # From FastAPI 0.163 on, one route serves all the prefixes under which its router is included.
    included = request.scope.get("fastapi", {}).get("effective_route_context")
    path = getattr(included, "path", None) or getattr(route, "path", "")
    return f"endpoint:{methods} {path} {name}"
