"""The responses of Apache's module to single requests."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from apache import apache, location
from server import Answer, Server, retry_with_keys, send_at_once, wait_until

LINES = """
DThrottleRule default "1/day" burst=2
DThrottleRule two "1/day" burst=10 name=day
DThrottleRule two "1/hour" burst=4 "name=in an hour"
DThrottleRule alike "1/s" burst=5 name=first
DThrottleRule alike "1/day" burst=5 name=second
DThrottleRule tenth "10/s" burst=1
DThrottleRule charged "1/h" burst=1 charge_refused=on
DThrottleRule time "1/h" burst=2h "name=a \\"quoted\\" \\ name"
DThrottleConfigFile {file}
DThrottleHeaders On
SetEnvIf Request_URI ^/env spare=1
ErrorDocument 403 /shown
""" + "".join(
    [
        location("/off", "DThrottle Off"),
        location("/on", "DThrottle On"),
        location("/tag", "DThrottle On", "DThrottleTag %{HTTP:X-Key}"),
        location("/prefix", "DThrottle On", "DThrottleIPv6Prefix 48", "DThrottleDomain prefix"),
        location("/odd", "DThrottle On", "DThrottleIPv6Prefix 52", "DThrottleDomain prefix"),
        location("/two", "DThrottle On", "DThrottleDomain two", "DThrottleTag %{HTTP:X-Key}"),
        location("/two/dear", "DThrottleCost %{HTTP:X-Cost}"),
        location("/two/dear/cheap", "DThrottleCost 1"),
        location("/two/three", "DThrottleCost 3"),
        location("/two/three/dear", "DThrottleCost %{HTTP:X-Cost}"),
        location("/alike", "DThrottle On", "DThrottleDomain alike"),
        location("/charged", "DThrottle On", "DThrottleDomain charged", "DThrottleLogLevel error"),
        location("/time", "DThrottle On", "DThrottleDomain time", "DThrottleLogLevel info"),
        location("/two/quiet", "DThrottleHeaders Off", "DThrottleStatus 403"),
        location("/shown", "DThrottle On", "DThrottleDomain shown"),
        location(
            "/tenth",
            "DThrottle On",
            "DThrottleDomain tenth",
            "DThrottleTag %{QUERY_STRING}",
            "DThrottleMaxDelay 550ms",
        ),
        location("/dry", "DThrottle On", "DThrottleDomain dry", "DThrottleDryRun On"),
        location("/dry-domain", "DThrottle On", "DThrottleDomain dry-domain"),
        location(
            "/dry-delay",
            "DThrottle On",
            "DThrottleDomain dry-delay",
            "DThrottleMaxDelay 1h",
            "DThrottleDryRun On",
        ),
        location(
            "/dry-wait",
            "DThrottle On",
            "DThrottleDomain dry-wait",
            "DThrottleMaxDelay 1h",
        ),
        location("/env", "DThrottle On", "DThrottleDomain env", "DThrottleTag %{ENV:spare}"),
    ]
)
TOML = """
[domains]
prefix = { rate = "1/day" }
shown = { rate = "1/day" }
dry = { rate = "1/day" }
dry-delay = { rate = "2/h", burst = 1 }
dry-domain = { rate = "1/day", dry_run = true }
dry-wait = { rate = "2/h", burst = 1, dry_run = true }
env = { rate = "1/day" }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("config") / "dthrottle.toml"
    file.write_text(TOML)
    with apache(LINES.replace("{file}", str(file))) as started:
        yield started


def shown(answer: Answer) -> tuple[int, str | None, str | None]:
    return answer.status, answer.headers.get("x-status"), answer.headers.get("x-remaining")


def test_only_locations_that_are_on_are_limited(server: Server) -> None:
    assert [shown(server.get("/")) for _ in range(4)] == [(200, None, None)] * 4
    assert [shown(server.get("/off")) for _ in range(4)] == [(200, None, None)] * 4
    assert shown(server.get("/on")) == (200, "passed", "1")
    assert shown(server.get("/on")) == (200, "passed", "0")
    assert shown(server.get("/on")) == (429, "refused", "0")


def test_a_refusal_has_retry_after_although_header_fields_are_off() -> None:
    lines = 'DThrottleRule default "1/day" burst=2\n' + location("/on", "DThrottle On")
    lines += location("/on/dry", "DThrottleDryRun On")
    with apache(lines) as server:
        assert shown(server.get("/on")) == (200, "passed", "1")
        assert shown(server.get("/on")) == (200, "passed", "0")
        answer = server.get("/on")
        assert shown(answer) == (429, "refused", "0")
        assert "ratelimit" not in answer.headers
        assert 86390 < int(answer.headers["retry-after"]) <= 86400
        assert shown(server.get("/on/dry")) == (200, "refused-dry-run", "0")


def test_the_default_tag_is_the_address_with_its_prefix(server: Server) -> None:
    for client in ("10.0.0.1", "10.0.0.2"):
        assert server.statuses("/on", 3, X_Client=client) == [200, 200, 429]
    # A prefix is one client, and an IPv4 address in IPv6 form is the same client.
    assert server.statuses("/on", 2, X_Client="2001:db8:1:1::1") == [200, 200]
    assert server.statuses("/on", 1, X_Client="2001:db8:1:1:ffff::2") == [429]
    assert server.statuses("/on", 1, X_Client="2001:db8:1:2::1") == [200]
    assert server.statuses("/on", 1, X_Client="::ffff:10.0.0.1") == [429]
    assert server.statuses("/on", 1, X_Client="64:ff9b::10.0.0.2") == [429]
    assert server.statuses("/prefix", 1, X_Client="2001:db8:5:1::1") == [200]
    assert server.statuses("/prefix", 1, X_Client="2001:db8:5:ffff::1") == [429]
    assert server.statuses("/prefix", 1, X_Client="2001:db8:6::1") == [200]
    # A prefix that ends within a byte.
    assert server.statuses("/odd", 1, X_Client="2001:db8:7:1000::") == [200]
    assert server.statuses("/odd", 1, X_Client="2001:db8:7:1fff::") == [429]
    assert server.statuses("/odd", 1, X_Client="2001:db8:7:0fff::") == [200]
    # A short IPv6 address is not an IPv4 address.
    assert server.statuses("/prefix", 1, X_Client="::1") == [200]
    assert server.statuses("/prefix", 1, X_Client="0.0.0.1") == [200]
    assert server.statuses("/prefix", 1, X_Client="::2") == [429]


def test_an_expression_computes_the_tag(server: Server) -> None:
    assert server.statuses("/tag", 3, X_Key="one") == [200, 200, 429]
    assert server.statuses("/tag", 1, X_Key="two") == [200]
    assert [shown(server.get("/tag")) for _ in range(4)] == [(200, None, None)] * 4, "empty"
    assert server.statuses("/env", 2) == [200, 429], "the expression sees variables of SetEnvIf"


def test_header_fields_and_log_name_the_rule_that_refused(server: Server) -> None:
    answer = server.get("/two", X_Key="h")
    assert answer.headers["ratelimit-policy"] == '"day";q=10;w=864000, "in an hour";q=4;w=14400'
    assert answer.headers["ratelimit"] == '"in an hour";r=3;t=3600'
    assert "retry-after" not in answer.headers
    for _ in range(3):
        answer = server.get("/two", X_Key="h")
    assert answer.status == 200
    answer = server.get("/two", X_Key="h")
    assert shown(answer) == (429, "refused", "0")
    assert 3590 <= int(answer.headers["retry-after"]) <= 3600
    assert (
        answer.headers["ratelimit"].startswith('"in an hour";r=0;t=35')
        or answer.headers["ratelimit"] == '"in an hour";r=0;t=3600'
    )
    assert 'limiting requests by domain "two", rule "in an hour", retry after 35' in server.log()
    answer = server.get("/two/quiet", X_Key="h")
    assert "ratelimit" not in answer.headers


def test_header_fields_show_the_rule_with_the_least_left(server: Server) -> None:
    assert server.get("/alike").headers["ratelimit"] == '"first";r=4;t=1'
    time.sleep(1.5)
    # The first rule has refilled.
    assert server.get("/alike").headers["ratelimit"].startswith('"second";r=3;t=86')


def test_an_expression_computes_the_cost(server: Server) -> None:
    assert shown(server.get("/two/dear", X_Key="c", X_Cost="3")) == (200, "passed", "1")
    assert shown(server.get("/two/dear", X_Key="c", X_Cost="2"))[0] == 429
    assert shown(server.get("/two/dear", X_Key="c", X_Cost="0")) == (200, "passed", "1")
    assert shown(server.get("/two/dear", X_Key="c", X_Cost="1x")) == (200, "passed", "0")
    assert server.statuses("/two/dear", 8, X_Key="n", X_Cost="1x") == [200] * 4 + [429] * 4
    odd = server.log().count("DThrottleCost must give a number")
    assert 1 <= odd <= len(server.children()), "an invalid cost is logged once per child"
    assert 'DThrottleCost must give a number, got "1x"' in server.log()
    assert shown(server.get("/two/three", X_Key="t")) == (200, "passed", "1")
    # A cost above the burst passes if the bucket is full, and leaves it in debt.
    assert shown(server.get("/two/dear", X_Key="d", X_Cost="6")) == (200, "passed", "0")
    headers = server.get("/two", X_Key="d").headers
    assert int(headers["retry-after"]) > 2 * 3600
    assert headers["ratelimit"].endswith(f";t={headers['retry-after']}")


def test_the_cost_of_an_inner_location_replaces_the_outer_one(server: Server) -> None:
    assert shown(server.get("/two/dear/cheap", X_Key="b", X_Cost="3")) == (200, "passed", "3")
    assert shown(server.get("/two/three/dear", X_Key="b", X_Cost="2")) == (200, "passed", "1")


def test_charge_refused_charges_refusals(server: Server) -> None:
    assert server.statuses("/charged", 1) == [200]
    after = [int(server.get("/charged").headers["retry-after"]) for _ in range(3)]
    assert after == pytest.approx([2 * 3600, 3 * 3600, 4 * 3600], abs=10)
    assert any(
        "[dthrottle:error]" in line and 'domain "charged"' in line
        for line in server.log().splitlines()
    )


def test_a_burst_can_be_a_time(server: Server) -> None:
    answers = [server.get("/time") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    name = r'"a \"quoted\" \\ name"'
    assert answers[0].headers["ratelimit-policy"] == f"{name};q=2;w=7200"
    assert answers[0].headers["ratelimit"].startswith(f"{name};r=1;t=")
    assert 'domain "time"' not in server.log(), (
        "the level of the refusal is below that of the server"
    )


def test_an_internal_redirect_is_not_charged_again(server: Server) -> None:
    assert server.statuses("/two/quiet", 4, X_Key="r") == [200] * 4
    # If the error page were charged, the second refusal would be different.
    for _ in range(3):
        assert shown(server.get("/two/quiet", X_Key="r"))[:2] == (403, "refused")
    assert server.statuses("/shown", 2) == [200, 429]


def test_delayed_requests_are_spaced_by_the_rate(server: Server) -> None:
    def check(key: str) -> None:
        answers = send_at_once(server, f"/tenth?{key}", 8)
        passed = [a for a in answers if a.status == 200]
        assert [a.headers["x-status"] for a in passed] == ["passed"] + ["delayed"] * 5
        refused = [a for a in answers if a.status == 429]
        assert len(refused) == 2
        # Parts of a second are rounded up.
        assert all(a.headers["ratelimit"].endswith(";r=0;t=1") for a in refused)
        for number, answer in enumerate(passed):
            assert number / 10 - 0.03 < answer.seconds < number / 10 + 0.4

    retry_with_keys(check)


def test_dry_run_refuses_nothing_and_publishes_what_it_would_do(server: Server) -> None:
    for path in ("/dry", "/dry-domain"):
        answers = [server.get(path) for _ in range(3)]
        assert [a.status for a in answers] == [200] * 3
        statuses = [a.headers["x-status"] for a in answers]
        assert statuses == ["passed", "refused-dry-run", "refused-dry-run"]
        assert "retry-after" not in answers[2].headers
    assert 'limiting requests, dry run, by domain "dry"' in server.log()
    # Dry run of the location or of the domain: no request is delayed.
    for path in ("/dry-delay", "/dry-wait"):
        answers = [server.get(path) for _ in range(4)]
        assert [a.status for a in answers] == [200] * 4
        statuses = [a.headers["x-status"] for a in answers]
        assert statuses == ["passed", "delayed-dry-run", "delayed-dry-run", "refused-dry-run"]
        assert max(a.seconds for a in answers) < 60


def test_the_access_log_shows_decision_remaining_and_delay(server: Server) -> None:
    before = len((server.folder / "access.log").read_text())

    def logged(what: str) -> list[str]:
        # Skips lines of other tests, and lines that are not complete yet.
        lines = (server.folder / "access.log").read_text()[before:].splitlines(keepends=True)
        return [line for line in lines if what in line and line.endswith("\n")]

    server.get("/two", X_Key="l")
    wait_until("a line", lambda: logged(" 200 /two passed 3 0\n"))
    assert server.statuses("/two", 4, X_Key="l") == [200, 200, 200, 429]
    [refusal] = wait_until("a refusal", lambda: logged(" 429 /two refused 0 "))
    # The delay is in milliseconds, and the bucket refills by one unit per hour.
    assert 3_500_000 < int(refusal.split()[-1]) <= 3_600_000
