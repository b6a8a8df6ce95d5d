"""Usable and unusable tags: no client can turn its limit off by the type of a value."""

from __future__ import annotations

import enum
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, request
from web import WsgiClient, fail, kinds, make_throttle

from dthrottle import ManualClock
from dthrottle.flask import Limiter

VECTORS = json.loads(
    (Path(__file__).parents[2] / "tests/vectors/tags.json").read_text(encoding="utf-8")
)
OTHER = "198.51.100.1"
# Prefix of tags that count an address. UTF-8 never contains its last byte.
BY_ADDRESS = b"address\xff"


class Number(enum.IntEnum):
    """Numbers with names."""

    SEVEN = 7


# Values that functions may return although JSON cannot contain them.
OTHERS: list[Any] = [float("nan"), 1.0, 10**5000, object(), b"", bytearray(b"x"), (), {"x"}, len]


def value_of(request: Any) -> Any:
    """Read the value that a client sent."""
    headers = request.get("headers", ())
    sent = request.get("HTTP_X_VALUE") or dict(headers)[b"x-value"].decode("latin-1")
    return json.loads(sent)


async def value_later(request: Any) -> Any:
    """Like value_of, as a coroutine."""
    return value_of(request)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the errors that were logged."""
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


def counted_as(value: Any, tag: bytes, clock: ManualClock) -> bool:
    """Return whether a request with this value is counted under this tag."""
    throttle = make_throttle(clock)
    WsgiClient(throttle, tag=lambda _request: value).get()
    return throttle.peek(tag).remaining == 0


def test_text_bytes_and_whole_numbers_can_be_tags(clock: ManualClock) -> None:
    for case in VECTORS["usable"]:
        assert counted_as(json.loads(case["json"]), case["tag"].encode(), clock), case
    for value, tag in ((b"\xff", b"\xff"), (Number.SEVEN, b"7"), (2**70, str(2**70).encode())):
        assert counted_as(value, tag, clock)


def test_unusable_tag_counts_the_request_by_address(clock: ManualClock) -> None:
    for value in [*(json.loads(case["json"]) for case in VECTORS["unusable"]), *OTHERS]:
        assert counted_as(value, BY_ADDRESS + bytes([203, 0, 113, 7]), clock), value


def functions(client: Any) -> list[Any]:
    """Return the kinds of functions that a middleware takes."""
    return [value_of, value_later] if client.kind == "asgi" else [value_of]


@kinds
def test_values_sent_by_a_client_are_counted_by_tag_or_address(
    client: Any, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for function in functions(client):
        caplog.clear()
        web = client(make_throttle(clock), tag=function)
        for case in VECTORS["usable"]:
            sent = {"x_value": case["json"]}
            assert web.statuses(1, **sent) == [200], case
            assert web.statuses(1, peer=OTHER, **sent) == [429], case
        assert (web.counts.untagged, errors(caplog)) == (0, [])
        for case in VECTORS["unusable"]:
            clock.advance(60.0)
            sent = {"x_value": case["json"]}
            assert web.statuses(2, **sent) == [200, 429], case
            assert web.statuses(1, peer=OTHER, **sent) == [200], case
        assert (web.counts.failed, web.counts.untagged) == (0, 3 * len(VECTORS["unusable"]))
        (error,) = errors(caplog)
        usable = "text (not empty, valid Unicode), bytes or a whole number"
        assert error.startswith(f"tag must return {usable}, got NoneType")


@kinds
@pytest.mark.parametrize("tag", [fail, *(lambda _request, value=v: value for v in OTHERS)])
def test_clients_without_a_usable_tag_have_a_bucket_per_address(
    client: Any, clock: ManualClock, tag: Any, caplog: pytest.LogCaptureFixture
) -> None:
    throttle = make_throttle(clock)
    web = client(throttle, tag=tag, allow=["alice"])
    assert web.statuses(3) == [200, 429, 429]
    assert web.statuses(1, peer=OTHER) == [200]
    assert throttle.peek(BY_ADDRESS + bytes([198, 51, 100, 1])).remaining == 0
    assert (web.counts.untagged, len(errors(caplog))) == (4, 1)


@kinds
@pytest.mark.parametrize("tag", ["header:X-Value", value_of, fail])
def test_clients_without_tag_and_address_share_a_bucket(
    client: Any, clock: ManualClock, tag: Any, caplog: pytest.LogCaptureFixture
) -> None:
    web = client(make_throttle(clock), tag=tag)
    empty = "" if tag == "header:X-Value" else "[]"
    assert web.statuses(3, peer=None, x_value=empty) == [200, 429, 429]
    assert "trusted_proxies" in caplog.text


@kinds
def test_only_allow_and_skip_exempt_requests(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), tag=value_of, allow=["alice"])
    assert web.statuses(3, x_value='"alice"') == [200] * 3
    assert web.statuses(2, x_value='["alice"]') == [200, 429]
    web = client(make_throttle(clock), tag=value_of, skip=lambda request: "health" in str(request))
    assert web.statuses(3, "/health", x_value="[]") == [200] * 3
    assert web.statuses(2, x_value="[]") == [200, 429]


def test_json_field_as_tag_in_flask_cannot_evade_the_limit() -> None:
    app = Flask("shop")
    limiter = Limiter(app, table=False, tag=lambda _request: request.get_json()["user"])
    app.add_url_rule("/", "login", limiter.limit("2/day")(lambda: "hello"), methods=["POST"])
    web = app.test_client()
    for sent in (b'{"user": "x"}', b'{"user": ["x"]}'):
        statuses = [
            web.post("/", data=sent, content_type="application/json").status_code for _ in "1234"
        ]
        assert statuses == [200, 200, 429, 429], sent
    for sent in (b'{"user": "x\\ud800"}', b'{"user": 1.5}', b"{}", b"not JSON"):
        assert web.post("/", data=sent, content_type="application/json").status_code == 429, sent
