"""Responses of WSGI and ASGI middleware: problems and header fields, of one or two throttles."""

from __future__ import annotations

import json
import logging
from typing import Any

import http_sf
import pytest
from web import CLIENTS, WsgiClient, fail, kinds, make_throttle

from dthrottle import ManualClock


@kinds
def test_problem_json_body_describes_the_refusal(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), body="problem+json")
    web.get()
    answer = web.get()
    assert answer.headers["content-type"] == "application/problem+json"
    problem = json.loads(answer.body)
    assert problem["type"].startswith("https://iana.org/assignments/http-problem-types#quota")
    assert "60 s" in problem["detail"]
    assert (problem["status"], problem["violated-policies"]) == (429, ["default"])


@kinds
def test_refused_head_request_has_no_body(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock))
    web.get()
    answer = web.get(method="HEAD")
    assert (answer.status, answer.body) == (429, b"")
    assert answer.headers["content-length"] == "18"


@kinds
def test_on_refused_is_called_for_every_refusal(
    client: Any, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[Any] = []
    web = client(make_throttle(clock), on_refused=lambda *given: calls.append(given))
    answers = [web.get() for _ in range(3)]
    assert [request for request, _ in calls] == [a.request for a in answers[1:]]
    assert all(not decision.allowed for _, decision in calls)
    web = client(make_throttle(clock), on_refused=fail)
    assert web.statuses(3) == [200, 429, 429]
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


@kinds
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (True, {"ratelimit", "ratelimit-policy"}),
        ("standard", {"ratelimit", "ratelimit-policy"}),
        ("draft-7", {"ratelimit", "ratelimit-policy"}),
        (
            "draft-6",
            {"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy"},
        ),
        ("x-ratelimit", {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}),
        ("none", set()),
        (False, set()),
    ],
)
def test_headers_option_selects_the_header_fields(
    client: Any, clock: ManualClock, kind: Any, names: set[str]
) -> None:
    web = client(make_throttle(clock), headers=kind)
    for status in (200, 429):
        answer = web.get()
        assert answer.status == status
        assert {name for name in answer.headers if "ratelimit" in name} == names
        assert ("retry-after" in answer.headers) is (status == 429)


def stacked(client: Any, clock: ManualClock, kind: str) -> Any:
    """Wrap one middleware in another."""
    inner = client(make_throttle(clock, 5), headers=kind)
    outer = client(make_throttle(clock, 9), headers=kind)
    outer.wrapped.app = inner.wrapped
    return outer


@pytest.mark.parametrize("kind", ["draft-6", "x-ratelimit", "draft-7"])
@pytest.mark.parametrize("client", CLIENTS)
def test_inner_throttle_sets_header_fields_that_are_no_lists(
    client: Any, clock: ManualClock, kind: str
) -> None:
    answer = stacked(client, clock, kind).get()  # fails if a field is there twice
    assert "4" in " ".join(v for name, v in answer.headers.items() if "ratelimit" in name)
    assert "8" not in answer.headers.get("ratelimit-remaining", "")


def test_both_throttles_add_to_header_fields_that_are_lists(clock: ManualClock) -> None:

    outer = stacked(WsgiClient, clock, "standard")
    pairs: list[Any] = []
    outer.wrapped(
        {"REQUEST_METHOD": "GET", "REMOTE_ADDR": "203.0.113.7"},
        lambda _status, headers: pairs.extend(headers),
    )
    lines = ", ".join(value for name, value in pairs if name == "RateLimit")
    items: Any = http_sf.parse(lines.encode(), tltype="list")
    assert [(name, parameters["r"]) for name, parameters in items] == [
        ("default", 4),
        ("default", 8),
    ]
