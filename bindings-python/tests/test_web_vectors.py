"""The vectors of HTTP middleware, tests/vectors/web.json, which all languages run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import vectors
from web import PEER, Client, kinds

from dthrottle import ConfigError, ManualClock
from dthrottle._dthrottle import HttpDecision
from dthrottle.asgi import AsgiReader
from dthrottle.middleware import HttpThrottle
from dthrottle.options import source_options
from dthrottle.wsgi import WsgiReader

VECTORS = vectors.read("web")
# Cases with these words need the parts of a middleware, for example to end a delay later.
IN_PARTS = ("end_delay", "finish", "scope", "can_delay", "delay_ns")


def options_of(case: dict[str, Any], clock: ManualClock) -> dict[str, Any]:
    """Return the options of a case. Steps may set the result of the cost function."""
    options = {**case["options"], "clock": clock}
    requests = [step.get("request", {}) for step in case["steps"]]
    if any("cost" in request for request in requests):
        fixed = options.get("cost", 1)
        costs = iter([request.get("cost", fixed) for request in requests])
        options["cost"] = lambda _request: next(costs)
    return options


def headers_of(case: dict[str, Any], request: dict[str, Any]) -> dict[str, str]:
    """Return the headers of a request, with underscores."""
    headers = {}
    if request.get("forwarded"):
        headers["x_forwarded_for"] = ", ".join(request["forwarded"])
    if request.get("tag") is not None:
        name = case["options"]["tag"].removeprefix("header:")
        headers[name.lower().replace("-", "_")] = request["tag"]
    return headers


def steps(case: dict[str, Any], clock: ManualClock) -> Iterator[dict[str, Any]]:
    """Yield the steps of a case at their times."""
    now = 0
    for step in case["steps"]:
        # A float can represent the nanoseconds of a difference, but not those of a late time.
        clock.advance((step["at_ns"] - now) / 1e9)
        now = step["at_ns"]
        yield step


def target_of(case: dict[str, Any]) -> tuple[str, str]:
    """Return a method and a path that match the options of a case."""
    methods, routes = (case["options"].get(name) for name in ("methods", "routes"))
    return methods[0] if methods else "GET", routes[0] if routes else "/"


class Parts:
    """The parts of a middleware, which do not wait."""

    def __init__(self, options: dict[str, Any], kind: str) -> None:
        self.kind = kind
        reader: Any = (WsgiReader if kind == "wsgi" else AsgiReader)(lambda request: request)
        self.http: HttpThrottle[Any] = HttpThrottle(
            source_options(options, {}), reader, can_await=kind == "asgi", application=None
        )

    def decide(self, case: dict[str, Any], request: dict[str, Any]) -> HttpDecision | None:
        """Decide about a request."""
        peer, scope = request.get("peer", PEER), request.get("scope", "")
        headers = headers_of(case, request)
        if self.kind == "wsgi":
            environ: dict[str, Any] = {
                f"HTTP_{name.upper()}": value for name, value in headers.items()
            }
            environ["wsgi.multithread"] = request.get("can_delay", True)
            environ["REMOTE_ADDR"] = peer
            environ["REQUEST_METHOD"], environ["PATH_INFO"] = target_of(case)
            return self.http.decide(environ, scope)
        pairs = [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        given: dict[str, Any] = {"client": (peer, 1) if peer else None, "headers": pairs}
        given["method"], given["path"] = target_of(case)
        return asyncio.run(self.http.decide_async(given, scope))

    def found(self, decided: HttpDecision | None) -> dict[str, Any]:
        """Return a decision as the vectors write it."""
        if decided is None:
            return {"action": "none"}
        fields = decided.fields
        more: dict[str, Any] = {"action": "delay" if decided.delay else "pass"}
        if decided.refused:
            status, own, body = decided.refusal()
            more = {"action": "refuse", "status": status, "body": body.decode()}
            fields = own + fields
        if decided.delay:
            more["delay_ns"] = round(decided.delay * 1e9)
        more["fields"] = [list(field) for field in fields]
        return {**more, "taken": decided.decision.granted}


# ASGI can always delay requests.
DECISIONS = [
    pytest.param(case, kind, id=f"{case['name']}-{kind}")
    for case in VECTORS["cases"]
    for kind in ("wsgi", "asgi")
    if kind == "wsgi" or "can_delay" not in str(case["steps"])
]


@pytest.mark.parametrize(("case", "kind"), DECISIONS)
def test_decisions_agree_with_the_vectors(case: dict[str, Any], kind: str) -> None:
    clock = ManualClock()
    parts = Parts(options_of(case, clock), kind)
    decisions: list[HttpDecision | None] = []
    for step in steps(case, clock):
        decided = None
        if "request" in step:
            decided = parts.decide(case, step["request"])
            # Python does not show the tag.
            expected = {key: value for key, value in step["expect"].items() if key != "tag_hex"}
            assert parts.found(decided) == expected
        elif "end_delay" in step:
            delayed = decisions[step["end_delay"]]
            assert delayed is not None
            delayed.end_delay(step["gone"])
        else:
            ended = decisions[step["finish"]]
            assert ended is not None
            ended.finish(step["success"])
        decisions.append(decided)


def is_whole(case: dict[str, Any]) -> bool:
    """Return whether a whole middleware can run a case."""
    return not any(word in str(case["steps"]) for word in IN_PARTS)


WHOLE = [case for case in VECTORS["cases"] if is_whole(case)]


@kinds
@pytest.mark.parametrize("case", WHOLE, ids=lambda case: str(case["name"]))
def test_responses_agree_with_the_vectors(case: dict[str, Any], client: type[Client]) -> None:
    clock = ManualClock()
    web = client(options_of(case, clock))
    for step in steps(case, clock):
        request, expected = step["request"], step["expect"]
        method, path = target_of(case)
        peer = request.get("peer", PEER)
        answer = web.get(path, method=method, peer=peer, **headers_of(case, request))
        is_refused = expected["action"] == "refuse"
        assert answer.status == (expected["status"] if is_refused else 200)
        assert answer.body.decode() == (expected["body"] if is_refused else "hello")
        fields = {name.lower(): value for name, value in expected.get("fields", ())}
        shown = {name: answer.headers[name] for name in answer.headers if name in fields}
        assert shown == fields
        assert {name for name in answer.headers if "ratelimit" in name} <= set(fields)


def test_most_vectors_run_through_a_whole_middleware() -> None:
    assert len(WHOLE) > len(VECTORS["cases"]) / 2


@kinds
@pytest.mark.parametrize("case", VECTORS["bad"], ids=str)
def test_wrong_option_is_an_error(case: dict[str, Any], client: type[Client]) -> None:
    with pytest.raises(ConfigError) as caught:
        client(case["options"])
    assert caught.value.field == case["field"]
    for message in case["says"]:
        assert message in str(caught.value)
