"""Behaviour that WSGI and ASGI middleware share, for single requests."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from pathlib import Path
from typing import Any

import pytest
from web import CLIENTS, PEER, AsgiClient, Client, WsgiClient, fail, kinds, make_throttle

from dthrottle import ConfigError, Decision, ManualClock, Throttle, asgi
from dthrottle.address import client_address, parse_address


@kinds
def test_middleware_refuses_above_the_burst_with_header_fields(
    client: Any, clock: ManualClock
) -> None:
    web = client(make_throttle(clock, 2))
    answers = [web.get() for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    first, _, last = answers
    assert (first.body, first.headers["x-app"]) == (b"hello", "1")
    assert first.headers["ratelimit"] == '"default";r=1;t=60'
    assert first.headers["ratelimit-policy"] == '"default";q=2;w=120'
    assert "retry-after" not in first.headers
    assert last.body == b"Too Many Requests\n"
    assert last.headers["retry-after"] == "60"
    assert last.headers["ratelimit"] == '"default";r=0;t=60'
    assert last.headers["content-length"] == str(len(last.body))
    assert last.headers["content-type"].startswith("text/plain")
    assert "x-app" not in last.headers
    clock.advance(60.0)
    assert web.statuses(2) == [200, 429]
    assert (web.counts.passed, web.counts.refused) == (3, 2)


@kinds
def test_application_finds_the_decision_in_the_request(client: Any, clock: ManualClock) -> None:
    decision = client(make_throttle(clock, 5)).get().request["dthrottle.decision"]
    assert isinstance(decision, Decision)
    assert decision.remaining == 4


@kinds
def test_each_address_has_its_own_bucket(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock))
    assert web.statuses(2, peer="198.51.100.1") == [200, 429]
    assert web.statuses(2, peer="198.51.100.2") == [200, 429]
    assert web.statuses(1, peer="::ffff:198.51.100.1") == [429]
    assert web.statuses(1, peer="2001:db8::1") == [200]
    assert web.statuses(1, peer="2001:db8::2") == [429]
    assert web.statuses(1, peer="2001:db8:0:1::") == [200]


@pytest.mark.parametrize("prefix", [1, 48, 64, 127, 128])
def test_middleware_counts_under_the_tag_of_client_address(clock: ManualClock, prefix: int) -> None:
    throttle = make_throttle(clock, 9)
    web = WsgiClient(throttle, ipv6_prefix=prefix)
    for peer in ["203.0.113.7", " [2001:db8::ff]:80", "::ffff:1.2.3.4", "ffff::ffff", "fe80::1%e"]:
        tag = client_address(peer, ipv6_prefix=prefix)
        assert tag is not None
        before = throttle.peek(tag).remaining
        assert web.get(peer=peer).status == 200
        assert throttle.peek(tag).remaining == before - 1, peer


@kinds
def test_forwarded_header_without_trusted_proxies_is_ignored(
    client: Any, clock: ManualClock
) -> None:
    web = client(make_throttle(clock))
    assert web.get(x_forwarded_for="6.6.6.1").status == 200
    assert web.get(x_forwarded_for="6.6.6.2").status == 429


@kinds
def test_trusted_proxies_determine_the_client(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), trusted_proxies=["10.0.0.0/8"])
    for peer, forwarded, status in [
        ("10.0.0.1", "203.0.113.1", 200),
        ("10.0.0.2", "6.6.6.6, 203.0.113.1", 429),
        ("10.0.0.2", "203.0.113.2", 200),
        ("203.0.113.1", "203.0.113.3", 429),
    ]:
        assert web.get(peer=peer, x_forwarded_for=forwarded).status == status
    web = client(make_throttle(clock), trusted_proxies=1, ipv6_prefix=48)
    assert web.get(peer="10.0.0.1", x_forwarded_for="6.6.6.6, 2001:db8:1::1").status == 200
    assert web.get(peer="10.0.0.1", x_forwarded_for="6.6.6.7, 2001:db8:1:2::").status == 429


@kinds
@pytest.mark.parametrize("peer", ["", None, "/run/app.sock"])
def test_request_without_an_address_passes_with_one_error_logged(
    client: Any, clock: ManualClock, peer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    web = client(make_throttle(clock))
    assert web.statuses(3, peer=peer) == [200] * 3
    assert web.counts.untagged == 3
    assert [r.levelname for r in caplog.records] == ["ERROR"]
    assert "trusted_proxies" in caplog.text


@kinds
def test_tag_function_receives_the_request(client: Any, clock: ManualClock) -> None:
    seen: list[Any] = []

    def tag(request: Any) -> str:
        seen.append(request)
        return "everybody"

    web = client(make_throttle(clock), tag=tag)
    answer = web.get(peer="198.51.100.1")
    assert seen == [answer.request]
    assert web.get(peer="198.51.100.2").status == 429


@kinds
def test_tag_can_be_a_header(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), tag="header:X-Api-Key")
    assert web.get(x_api_key="a").status == 200
    assert web.get(x_api_key="a", peer="198.51.100.1").status == 429
    assert web.get(x_api_key="b").status == 200


def test_tag_header_sent_twice_counts_as_missing(clock: ManualClock) -> None:
    # The application may use either value, so neither may be the tag.
    web = AsgiClient(make_throttle(clock), tag="header:X-Api-Key")
    assert web.get(x_api_key="a").status == 200
    answers = [web.get(**{"x_api_key": "a", "x-api_key": str(n)}).status for n in range(3)]
    assert answers == [200, 429, 429], "the address is the tag"


@kinds
def test_missing_tag_header_counts_the_address(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), tag="header:X-Api-Key")
    assert web.statuses(2) == [200, 429]
    assert web.get(x_api_key="").status == 429
    assert web.get(peer="198.51.100.1").status == 200
    # A header with the same bytes as an address must not use up the bucket of that address.
    address = parse_address("97.98.99.100")
    assert address == b"abcd"
    assert web.get(x_api_key="abcd").status == 200
    assert web.get(peer="97.98.99.100").status == 200


@kinds
def test_cost_may_be_a_number_or_a_function(client: Any, clock: ManualClock) -> None:
    assert client(make_throttle(clock, 5), cost=2).statuses(3) == [200, 200, 429]
    assert client(make_throttle(clock, 5), cost=0).statuses(9) == [200] * 9
    web = client(make_throttle(clock, 5), cost=lambda _request: 4)
    assert web.statuses(2) == [200, 429]


@kinds
@pytest.mark.parametrize(
    "cost", [fail, *[lambda _r, c=c: c for c in (None, "4", -1, 0.5, float("nan"))]]
)
def test_failing_cost_function_costs_one_unit(
    client: Any, clock: ManualClock, cost: Any, caplog: pytest.LogCaptureFixture
) -> None:
    web = client(make_throttle(clock, 2), cost=cost)
    assert web.statuses(3) == [200, 200, 429]
    assert web.counts.failed >= 3
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


@kinds
@pytest.mark.parametrize("cost", [7, 7.0])
def test_cost_above_the_burst_leaves_debt(client: Any, clock: ManualClock, cost: Any) -> None:
    costs: list[Any] = [cost, 1, 1, cost]
    web = client(make_throttle(clock, 5), cost=lambda _request: costs.pop(0))
    assert web.get().status == 200
    clock.advance(60.0 * 2)
    assert web.get().status == 429, "the bucket is still in debt"
    clock.advance(60.0)
    assert web.get().status == 200
    assert web.get().status == 429, "a cost above the burst needs a full bucket"


@kinds
@pytest.mark.parametrize("cost", [10**6, 2**70, 1e300])
def test_huge_cost_leaves_a_large_debt(client: Any, clock: ManualClock, cost: Any) -> None:
    throttle = make_throttle(clock, 5)
    web = client(throttle, cost=lambda _request: cost)
    assert web.statuses(2) == [200, 429]
    assert throttle.peek(b"\xcb\x00\x71\x07").balance < -900_000


@kinds
def test_methods_select_the_limited_requests(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), methods=["POST", "PUT"])
    assert web.statuses(3) == [200] * 3
    assert "ratelimit" not in web.get().headers
    assert web.get(method="POST").status == 200
    assert web.get(method="PUT").status == 429
    assert web.get(method="post").status == 429, "uWSGI passes it on, and Flask treats it as POST"


@kinds
def test_routes_select_the_limited_paths(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), routes=["/login", "/ap[ij]/.*", "/größe"])
    assert web.statuses(3, "/") == [200] * 3
    assert web.statuses(3, "/login/x") == [200] * 3, "the whole path must match"
    assert web.get("/login").status == 200
    assert web.get("/api/x").status == 429
    assert web.get("/größe").status == 429
    assert web.get("/login/").status == 429, "slashes at the end are ignored"
    assert web.get("/login//").status == 429
    assert web.get("/api/x\n").status == 429, "a line break does not end the match"


@kinds
def test_allowed_networks_and_tags_are_exempt(client: Any, clock: ManualClock) -> None:
    allow = ["198.51.100.0/24", "2001:db8::1", "key", b"other"]
    web = client(make_throttle(clock), allow=allow, tag="header:X-Api-Key")
    assert web.statuses(3, peer="198.51.100.9") == [200] * 3
    assert web.statuses(3, peer="::ffff:198.51.100.9") == [200] * 3
    assert web.statuses(3, peer="2001:db8::1") == [200] * 3
    assert web.statuses(2, peer="2001:db8::2") == [200, 429]
    assert web.statuses(3, x_api_key="key") == [200] * 3
    assert web.statuses(3, x_api_key="other") == [200] * 3
    assert web.statuses(2, x_api_key="keys") == [200, 429]


@kinds
def test_name_in_allow_does_not_exempt_an_address_with_the_same_bytes(
    client: Any, clock: ManualClock
) -> None:
    """The bytes of a name with 4 or 16 letters could be mistaken for an address."""
    names = ["root", "networkaddress16"]
    for name in names:
        with pytest.raises(
            ConfigError, match=f'^`allow` must have only addresses .* got "{name}"$'
        ):
            client(make_throttle(clock), allow=[name], ipv6_prefix=128)
    # If the header is missing, the tag is an address.
    web = client(make_throttle(clock), allow=names, ipv6_prefix=128, tag="header:X-Api-Key")
    for letters in ("114.111.111.116", "6e65:7477:6f72:6b61:6464:7265:7373:3136"):
        assert web.statuses(2, peer=letters) == [200, 429]
    web = client(make_throttle(clock), allow=["198.51.100.7", b"\x7f\x00\x00\x02"])
    for peer in ("198.51.100.7", "127.0.0.2"):
        assert web.statuses(2, peer=peer) == [200, 200]
    for tag in ("header:X-Api-Key", lambda _: "root", lambda _: b"root"):
        assert (
            client(make_throttle(clock), allow=["root"], tag=tag).statuses(2, x_api_key="root")
            == [200] * 2
        )


@kinds
def test_skip_function_exempts_requests(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), skip=lambda request: "alice" in str(request))
    assert web.statuses(3, user="alice") == [200] * 3
    assert web.statuses(2, user="bob") == [200, 429]
    web = client(make_throttle(clock), skip=fail)
    assert web.statuses(2) == [200, 429], "a failing function exempts no request"
    assert web.counts.failed == 2


@kinds
def test_dry_run_counts_refusals_and_passes_requests(client: Any, clock: ManualClock) -> None:
    refused: list[Decision] = []
    throttles = [(make_throttle(clock), True), (make_throttle(clock, dry_run=True), False)]
    for throttle, dry_run in throttles:
        refused.clear()
        web = client(throttle, dry_run=dry_run, on_refused=lambda _request, d: refused.append(d))
        assert web.statuses(3) == [200] * 3
        assert (web.counts.passed, web.counts.dry_run, web.counts.refused) == (1, 2, 0)
        assert [d.rule for d in refused] == ["rule1", "rule1"]


@kinds
def test_status_option_sets_the_status_of_refusals(client: Any, clock: ManualClock) -> None:
    assert client(make_throttle(clock), status=503).statuses(2) == [200, 503]
    assert client(make_throttle(clock), status=499).statuses(2) == [200, 499]


@kinds
@pytest.mark.parametrize(
    ("body", "content", "kind"),
    [
        ("slow dówn", "slow dówn".encode(), "text/plain; charset=utf-8"),
        (b"\x00\xff", b"\x00\xff", "application/octet-stream"),
        ({"error": "slow"}, b'{"error":"slow"}', "application/json"),
        (lambda _r, d: f"{d.retry_after:.0f}", b"60", "text/plain; charset=utf-8"),
        (lambda _r, _d: {"a": 1}, b'{"a":1}', "application/json"),
        ("", b"", "text/plain; charset=utf-8"),
    ],
)
def test_body_option_sets_the_content_of_refusals(
    client: Any, clock: ManualClock, body: Any, content: bytes, kind: str
) -> None:
    web = client(make_throttle(clock), body=body)
    web.get()
    answer = web.get()
    assert (answer.status, answer.body) == (429, content)
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-length"] == str(len(content))


@kinds
@pytest.mark.parametrize("body", [fail, lambda _r, _d: 5, lambda _r, _d: {"a": object()}])
def test_failing_body_function_sends_the_default_body(
    client: Any, clock: ManualClock, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    web = client(make_throttle(clock), body=body)
    web.get()
    answers = [web.get() for _ in range(3)]
    assert {(a.status, a.body) for a in answers} == {(429, b"Too Many Requests\n")}
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


@kinds
def test_domain_option_selects_the_rules(client: Any, clock: ManualClock) -> None:
    throttle = Throttle("100/s", domains={"login": {"rate": "1/minute"}}, clock=clock)
    assert client(throttle).statuses(3) == [200] * 3
    assert client(throttle, domain="login").statuses(2) == [200, 429]
    web = client(throttle.domain("login"))
    answer = web.get()
    assert (answer.status, answer.headers["ratelimit-policy"]) == (429, '"login";q=1;w=60')


@kinds
def test_domain_without_rules_passes_every_request(client: Any) -> None:
    web = client(Throttle(domains={"free": {"rules": []}}), domain="free")
    answers = [web.get() for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
    assert "ratelimit" not in answers[0].headers


@kinds
def test_closed_throttle_passes_requests_and_counts_failures(
    client: Any, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    throttle = make_throttle(clock)
    web = client(throttle, max_delay=5)
    throttle.close()
    assert web.statuses(3) == [200] * 3
    assert web.counts.failed == 3
    assert len([r for r in caplog.records if r.levelno >= logging.ERROR]) == 1


@kinds
def test_throttle_may_be_a_rate_a_dict_or_a_file(client: Any, tmp_path: Path) -> None:
    here: Any = {"name": "web", "dir": str(tmp_path), "size": 1000}
    toml = f'rate = "1/day"\n[table]\nname = "file"\nsize = 1000\ndir = "{tmp_path}"\n'
    file = tmp_path / "dthrottle.toml"
    file.write_text(toml, "utf-8")
    sources: list[Any] = [
        {"rate": "1/day", "table": {"private": True}},
        file,
        {"rules": [{"name": "daily", "rate": "1/day"}], "table": {"private": True}},
    ]
    for source in sources:
        assert client(source).statuses(2) == [200, 429]
    web = client("1/day", table=here, domain=client.kind)
    assert web.statuses(2) == [200, 429]
    assert client("1/day", table=here, domain=client.kind).statuses(1) == [429], "one table"
    answer = client("1 per 90 s", burst=4, table=False).get()
    assert answer.headers["ratelimit-policy"] == '"default";q=4;w=360'


@kinds
def test_policy_field_lists_every_rule(client: Any) -> None:
    rules = [{"name": "quick", "rate": "5/s"}, {"rate": "100/hour", "burst": 10}]
    answer = client({"rules": rules, "table": {"private": True}}).get()
    assert answer.headers["ratelimit-policy"] == '"quick";q=5;w=1, "rule2";q=10;w=360'
    assert answer.headers["ratelimit"] == '"quick";r=4;t=1'


def test_clients_cover_wsgi_and_asgi() -> None:
    assert [client.kind for client in CLIENTS] == ["wsgi", "asgi"]
    assert all(issubclass(client, Client) for client in CLIENTS)


@kinds
def test_method_get_also_limits_head(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), methods=["GET"])
    assert web.statuses(2, method="HEAD") == [200, 429]
    assert web.statuses(2, method="POST") == [200, 200]


@kinds
def test_tag_may_be_a_number(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock), tag=lambda _request: 5)
    assert web.statuses(2) == [200, 429]


@kinds
@pytest.mark.filterwarnings("error")
def test_coroutine_of_skip_is_awaited_under_asgi_only(client: Any, clock: ManualClock) -> None:
    async def everybody(_request: Any) -> bool:
        return True

    web = client(make_throttle(clock), skip=lambda request: everybody(request))
    awaits = client is AsgiClient
    assert web.statuses(2) == [200, 200 if awaits else 429], (
        "a coroutine is truthy, but must not exempt"
    )
    assert web.counts.failed == (0 if awaits else 2)


@kinds
def test_forwarded_header_of_an_untrusted_proxy_is_warned_of_once(
    client: Any, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    tagged: Any = {"tag": lambda _: "a"}
    for peer, options, lines in (
        ("10.0.0.1", {}, 1),
        (None, {}, 1),
        (PEER, {}, 0),
        ("10.0.0.1", {"trusted_proxies": 0}, 0),
        ("10.0.0.1", tagged, 0),
    ):
        caplog.clear()
        web = client(make_throttle(clock, 9), **options)
        web.statuses(3, peer=peer, x_forwarded_for="203.0.113.1")
        assert [r.levelname for r in caplog.records if "X-Forwarded-For" in r.message] == [
            "WARNING"
        ] * lines


@kinds
def test_invalid_body_is_counted_as_a_failure(client: Any, clock: ManualClock) -> None:
    for nonsense in (5, {"a": math.nan}, {"a": object()}):
        web = client(make_throttle(clock), body=lambda *_: nonsense)  # noqa: B023
        assert web.statuses(2) == [200, 429]
        assert web.counts.failed == 1


@kinds
@pytest.mark.parametrize(
    ("option", "refunded"), [("skip_failed_requests", 500), ("skip_successful_requests", 200)]
)
def test_status_of_the_response_decides_about_a_refund(
    client: Any, clock: ManualClock, option: str, refunded: int
) -> None:
    for status in (200, 500):
        web = client(make_throttle(clock, 3), **{option: True})
        web.status = status
        assert web.statuses(3) == [status] * 3
        assert web.get().status == (status if status == refunded else 429)


@kinds
def test_exception_of_the_application_is_refunded_as_a_failure(
    client: Any, clock: ManualClock
) -> None:
    throttle = make_throttle(clock)
    web = client(throttle, skip_failed_requests=True)
    web.wrapped.app = fail
    for _ in range(2):
        with pytest.raises(KeyError):
            web.get()


@kinds
def test_legacy_headers_are_sent_beside_the_standard_ones(client: Any, clock: ManualClock) -> None:
    web = client(make_throttle(clock, 5), legacy_headers=True)
    assert {name for name in web.get().headers if "ratelimit" in name} == {
        *("ratelimit", "ratelimit-policy"),
        *("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
    }


@kinds
def test_max_delayed_limits_all_middleware_together(
    client: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (client(make_throttle(clock), max_delay=3600, max_delayed=1) for _ in range(2))
    assert first.statuses(1) + second.statuses(1) == [200, 200]
    seen: list[int] = []

    def sleep(_seconds: float) -> None:
        seen.append(second.get().status)

    async def stays(_self: Any, seconds: float) -> bool:
        await asyncio.to_thread(sleep, seconds)
        return True

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(asgi._Listener, "stays", stays)
    assert first.get().status == 200
    assert seen == [429], "another request is delayed already"


@kinds
def test_list_options_may_be_sets_and_tuples(client: Any, clock: ManualClock) -> None:
    options: Any = {"methods": {"POST", "GET"}, "routes": ("/a", "/b"), "allow": {"198.51.100.1"}}
    web = client(make_throttle(clock), **options)
    assert web.statuses(2, "/a") == [200, 429]
    assert web.statuses(2, "/b", peer="198.51.100.1") == [200, 200]


@kinds
def test_failed_response_is_refunded_once(client: Any, clock: ManualClock) -> None:
    def app(_environ: Any, start_response: Any) -> Any:
        start_response("500 Answer", [])
        raise KeyError

    async def app_later(_scope: Any, _receive: Any, send: Any) -> Any:
        await send({"type": "http.response.start", "status": 500, "headers": []})
        raise KeyError

    throttle = make_throttle(clock, 3)
    web = client(throttle, skip_failed_requests=True)
    assert web.statuses(1) == [200]
    web.wrapped.app = app if client is WsgiClient else app_later
    with pytest.raises(KeyError):
        web.get()
    assert throttle.peek(parse_address(PEER) or b"").remaining == 2


class Unusable:
    """A value that raises when it is converted."""

    def __bool__(self) -> bool:
        raise KeyError

    def __index__(self) -> int:
        raise KeyError


@kinds
@pytest.mark.parametrize("option", ["skip", "cost"])
def test_unusable_result_of_a_function_still_limits_the_request(
    client: Any, clock: ManualClock, option: str
) -> None:
    web = client(make_throttle(clock), **{option: lambda _: Unusable()})
    assert web.statuses(2) == [200, 429]
    assert web.counts.failed == 2
