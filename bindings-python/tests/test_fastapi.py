"""Limits in FastAPI: per route, shared, responses and decisions."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Request, WebSocket
from fastapi.testclient import TestClient
from web import AsgiClient

from dthrottle import ConfigError, Decision, ManualClock, Throttle
from dthrottle.fastapi import Limiter, Refused, refused_handler


async def hello() -> str:
    return "hello"


class Client(AsgiClient):
    """Sends requests to an application."""

    def __init__(self, app: FastAPI) -> None:
        self.wrapped = app


def application(**routes: Any) -> tuple[FastAPI, Client]:
    """Make an application whose routes depend on these limits."""
    app = FastAPI()
    for name, limit in routes.items():
        dependencies = [] if limit is None else [Depends(limit)]
        app.add_api_route(f"/{name}", hello, dependencies=dependencies)
    return app, Client(app)


def test_each_route_has_its_own_bucket() -> None:
    limiter = Limiter(table=False)
    limit = limiter.limit("2/hour")
    _, web = application(one=limit, two=limit, free=None)
    assert web.statuses(3, "/one") == [200, 200, 429]
    assert web.statuses(3, "/two") == [200, 200, 429]
    assert web.statuses(5, "/free") == [200] * 5
    assert web.statuses(2, "/one", peer="203.0.113.9") == [200, 200]
    assert (limiter.counts.passed, limiter.counts.refused) == (6, 2)


def test_paths_of_one_route_share_a_bucket() -> None:
    limiter = Limiter(table=False)
    app = FastAPI()
    app.add_api_route("/item/{id}", hello, dependencies=[Depends(limiter.limit("2/hour"))])
    assert [Client(app).get(f"/item/{n}").status for n in range(3)] == [200, 200, 429]


def test_router_included_twice_counts_each_route_separately() -> None:
    limiter = Limiter(table=False)
    router, outer, app = APIRouter(), APIRouter(), FastAPI()
    router.add_api_route("/item/{id}", hello, dependencies=[Depends(limiter.limit("2/hour"))])
    for prefix in ("/v1", "/v2"):
        app.include_router(router, prefix=prefix)
    outer.include_router(router, prefix="/inner")
    app.include_router(outer, prefix="/outer/{tenant}")
    web = Client(app)
    for prefix in ("/v1", "/v2"):
        assert [web.get(f"{prefix}/item/{n}").status for n in range(3)] == [200, 200, 429]
    paths = [f"/outer/{n}/inner/item/1" for n in range(3)]
    assert [web.get(path).status for path in paths] == [200, 200, 429], "clients choose the tenant"


def test_client_of_starlette_without_an_address_is_limited() -> None:
    app, _ = application(one=Limiter(table=False).limit("1/hour"))
    client = TestClient(app)
    assert [client.get("/one").status_code for _ in range(2)] == [200, 429]


def test_routes_of_a_shared_limit_share_a_bucket() -> None:
    limiter = Limiter(table=False)
    shared = limiter.shared_limit("3/hour", scope="costly")
    _, web = application(one=shared, two=limiter.shared_limit("3/hour", scope="costly"))
    assert web.statuses(2, "/one") + web.statuses(2, "/two") == [200, 200, 200, 429]


def test_application_and_router_may_have_limits() -> None:
    limiter = Limiter(table=False)
    app = FastAPI(dependencies=[Depends(limiter.shared_limit("3/hour", "all"))])
    router = APIRouter(prefix="/api", dependencies=[Depends(limiter.limit("2/hour"))])
    router.add_api_route("/one", hello)
    app.include_router(router)
    app.add_api_route("/else", hello)
    web = Client(app)
    assert web.statuses(3, "/api/one") == [200, 200, 429]
    assert web.statuses(1, "/else") == [429]


def test_responses_have_header_fields_and_refusals_a_body() -> None:
    limiter = Limiter(table=False)
    app, web = application(one=limiter.limit("1/hour", body={"error": "slow down"}))
    first, second = web.get("/one"), web.get("/one")
    assert first.headers["ratelimit"] == '"1/hour";r=0;t=3600'
    assert first.request["dthrottle.decision"].allowed
    assert (second.status, json.loads(second.body)) == (429, {"detail": "Too Many Requests"})
    assert second.headers["retry-after"] == "3600"
    assert second.headers["ratelimit"] == '"1/hour";r=0;t=3600'
    app.add_exception_handler(Refused, refused_handler)
    app.middleware_stack = None  # FastAPI makes it again with the handler
    third = web.get("/one")
    assert (third.status, json.loads(third.body)) == (429, {"error": "slow down"})
    assert third.headers["content-type"] == "application/json"
    assert third.headers["retry-after"] == "3600"


def test_route_can_depend_on_the_decision() -> None:
    limiter = Limiter(table=False)
    app = FastAPI()
    limit = limiter.limit("5/hour")

    async def left(decision: Annotated[Decision, Depends(limit)]) -> int:
        return decision.remaining

    left.__annotations__["decision"] = Annotated[Decision, Depends(limit)]
    app.add_api_route("/one", left)
    assert Client(app).get("/one").body == b"4"


def test_functions_of_the_application_may_be_coroutines() -> None:
    async def tag(request: Request) -> str:
        await asyncio.sleep(0)
        return request.query_params.get("user", "nobody")

    async def cost(_request: Request) -> int:
        return 2

    seen: list[Any] = []

    async def on_refused(request: Request, decision: Decision) -> None:
        seen.append((request.url.path, decision.limit))

    limiter = Limiter(table=False, tag=tag, cost=cost, on_refused=on_refused)
    _, web = application(one=limiter.limit("4/hour"))
    assert web.statuses(3, "/one") == [200, 200, 429]
    assert seen == [("/one", 4)]


def test_enabled_turns_limits_off_and_on() -> None:
    limiter = Limiter(table=False, enabled=False)
    _, web = application(one=limiter.limit("1/hour"))
    assert web.statuses(2, "/one") == [200, 200]
    limiter.enabled = True
    assert web.statuses(2, "/one") == [200, 429]


def test_max_delay_delays_a_request(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def instead(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    limiter = Limiter(table=False)
    _, web = application(one=limiter.limit(Throttle("1/s", clock=clock), max_delay=1))
    monkeypatch.setattr(asyncio, "sleep", instead)
    assert web.statuses(3, "/one") == [200, 200, 429]
    assert slept == pytest.approx([1.0])


def test_failing_tag_function_counts_the_address() -> None:
    async def fails(_request: Request) -> str:
        raise RuntimeError

    limiter = Limiter(table=False, tag=fails)
    _, web = application(one=limiter.limit("1/hour"))
    assert web.statuses(3, "/one") == [200, 429, 429]
    assert (limiter.counts.failed, limiter.counts.untagged) == (3, 3)


def test_wrong_limit_is_an_error_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match="fortnight"):
        Limiter(table=False).limit("5/fortnight")
    with pytest.raises(ConfigError, match="did you mean `tag`"):
        Limiter(table=False, identifier=len)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="does not see the response"):
        Limiter(table=False).limit("5/minute", skip_failed_requests=True)


def test_allow_accepts_names_only_if_tags_are_names() -> None:
    limiter = Limiter(table=False, allow=["alice"])
    _, web = application(one=limiter.limit("1/hour", tag=lambda _request: "alice"))
    assert web.statuses(3, "/one") == [200] * 3
    with pytest.raises(ConfigError, match=r'^`allow` must .* got "alice"$'):
        limiter.limit("1/hour")
    with pytest.raises(ConfigError, match=r'^`allow` must .* got "localhost"$'):
        limiter.shared_limit("1/hour", scope="all", allow=["localhost"])


def test_websockets_are_not_limited() -> None:
    limiter = Limiter(table=False)
    app = FastAPI(dependencies=[Depends(limiter.shared_limit("1/hour", scope="all"))])

    @app.websocket("/talk")
    async def talk(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.close()

    async def connect() -> list[str]:
        sent: list[str] = []

        async def send(message: Any) -> None:
            sent.append(message["type"])

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        scope = {"type": "websocket", "path": "/talk", "query_string": b"", "headers": []}
        await app(scope, receive, send)
        return sent

    for _ in range(2):
        assert asyncio.run(connect()) == ["websocket.accept", "websocket.close"]


def test_mount_path_with_a_parameter_does_not_evade_a_limit() -> None:
    limiter = Limiter(table=False)
    inner = FastAPI()
    inner.add_api_route("/one", hello, dependencies=[Depends(limiter.limit("2/hour"))])
    app = FastAPI()
    app.mount("/{tenant}", inner)
    assert [Client(app).get(f"/{n}/one").status for n in range(3)] == [200, 200, 429]


def test_annotations_of_a_dependency_are_types() -> None:
    # FastAPI 0.110 treats a parameter whose annotation is text as a query parameter.
    names = inspect.signature(Limiter(table=False).limit("1/hour")).parameters.values()
    assert not any(isinstance(name.annotation, str) for name in names)
