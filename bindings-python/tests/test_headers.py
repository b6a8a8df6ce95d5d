"""Header fields, read back by a parser of structured fields."""

from __future__ import annotations

import time
from typing import Any

import http_sf
import pytest

from dthrottle import Decision, ManualClock, Throttle
from dthrottle._dthrottle import Headers, Middleware


def read(value: str, kind: str) -> Any:
    """Read a structured field."""
    return http_sf.parse(value.encode("ascii"), tltype=kind)


def parsed(value: str) -> list[tuple[Any, dict[str, Any]]]:
    """Read a list of items with their parameters."""
    return [(item, dict(parameters)) for item, parameters in read(value, "list")]


def dictionary(value: str) -> dict[str, Any]:
    """Read a dictionary of items without parameters."""
    return {key: item for key, (item, _) in read(value, "dictionary").items()}


def fields(kind: str, throttle: Throttle, decision: Decision) -> dict[str, str]:
    """Write the fields for a decision."""
    written = Headers(kind, "rule1", throttle).fields(decision)
    assert len(dict(written)) == len(written)
    return dict(written)


def retry_after(throttle: Throttle) -> int:
    """Return the field Retry-After of a refused request."""
    decided = Middleware({"throttle": throttle, "tag": len}).decide(None, tag="t")
    assert decided is not None
    assert decided.refused
    _, fields, _ = decided.refusal()
    assert decided.retry_after is not None
    assert dict(fields)["Retry-After"] == str(decided.retry_after)
    return decided.retry_after


def test_standard_fields_have_policy_and_remaining_units(throttle: Throttle) -> None:
    decision = throttle.check("t", 3)
    written = fields("standard", throttle, decision)
    assert set(written) == {"RateLimit", "RateLimit-Policy"}
    assert parsed(written["RateLimit-Policy"]) == [("rule1", {"q": 10, "w": 1})]
    assert parsed(written["RateLimit"]) == [("rule1", {"r": 7, "t": 1})]


def test_standard_fields_of_a_refusal_have_zero_remaining(clock: ManualClock) -> None:
    throttle = Throttle("1/minute", burst=5, clock=clock)
    throttle.check("t", 5)
    clock.advance(1.5)
    decision = throttle.check("t", 2)
    written = fields("standard", throttle, decision)
    assert parsed(written["RateLimit"]) == [("rule1", {"r": 0, "t": 119})]
    assert parsed(written["RateLimit-Policy"]) == [("rule1", {"q": 5, "w": 300})]


def test_reset_time_is_never_too_early(clock: ManualClock) -> None:
    throttle = Throttle("1 per 100 s", burst=7, clock=clock)
    for step in (0.0, 0.5, 130.0, 33.3, 250.0, 1.0, 99.0, 18.25):
        clock.advance(step)
        decision = throttle.check("t")
        if decision:
            ((_, left),) = parsed(fields("standard", throttle, decision)["RateLimit"])
            assert left["t"] <= 100
            clock.advance(float(left["t"]))
            assert throttle.peek("t").remaining > decision.remaining


def test_fields_show_the_rule_with_the_fewest_units(clock: ManualClock) -> None:
    rules: Any = [{"name": "second", "rate": "9/s"}, {"name": "minute", "rate": "5/minute"}]
    throttle = Throttle(rules=rules, clock=clock)
    written = fields("standard", throttle, throttle.check("t"))
    assert parsed(written["RateLimit"]) == [("minute", {"r": 4, "t": 12})]


def test_fields_show_the_deciding_rule_although_another_fills_slower(clock: ManualClock) -> None:
    rules: Any = [{"name": "second", "rate": "2/s"}, {"name": "day", "rate": "1000/day"}]
    throttle = Throttle(rules=rules, clock=clock)
    written = fields("standard", throttle, throttle.check("t"))
    assert parsed(written["RateLimit-Policy"]) == [
        ("second", {"q": 2, "w": 1}),
        ("day", {"q": 1000, "w": 86400}),
    ]
    assert parsed(written["RateLimit"]) == [("second", {"r": 1, "t": 1})]


def test_fields_show_the_deciding_rule_of_rules_with_equal_bursts(clock: ManualClock) -> None:
    rules: Any = [
        {"name": "second", "rate": "10/s", "burst": 5},
        {"name": "hour", "rate": "10/hour", "burst": 5},
    ]
    throttle = Throttle(rules=rules, clock=clock)
    throttle.check("t", 3)
    clock.advance(1)
    written = fields("standard", throttle, throttle.check("t"))
    assert parsed(written["RateLimit"]) == [("hour", {"r": 1, "t": 360})]


def test_full_bucket_has_no_reset_time(throttle: Throttle) -> None:
    written = fields("standard", throttle, throttle.peek("t"))
    assert parsed(written["RateLimit"]) == [("rule1", {"r": 10})]


def test_debt_is_shown_as_zero_remaining(throttle: Throttle) -> None:
    throttle.charge_local("t", 55)
    decision = throttle.check("t")
    assert decision.balance < 0
    assert parsed(fields("standard", throttle, decision)["RateLimit"]) == [
        ("rule1", {"r": 0, "t": 5})
    ]


def test_fields_of_a_refusal_name_the_refusing_rule(clock: ManualClock) -> None:
    rules: Any = [{"name": "a", "rate": "5/s"}, {"name": "b", "rate": "5/minute"}]
    throttle = Throttle(rules=rules, clock=clock)
    throttle.check("t", 5)
    written = fields("standard", throttle, throttle.check("t"))
    assert parsed(written["RateLimit"]) == [("b", {"r": 0, "t": 12})]


@pytest.mark.parametrize("name", ['qu"ote', "back\\slash", "blank s", "ü", "50% ;q=1", "日本"])
def test_any_rule_name_is_written_as_a_valid_string(clock: ManualClock, name: str) -> None:
    throttle = Throttle(rules=[{"name": name, "rate": "5/s"}], clock=clock)
    written = fields("standard", throttle, throttle.check("t"))
    ((policy, parameters),) = parsed(written["RateLimit-Policy"])
    assert parameters == {"q": 5, "w": 1}
    assert policy == (name if name.isascii() else http_quoted(name))
    assert parsed(written["RateLimit"])[0][0] == policy


def http_quoted(name: str) -> str:
    """Percent-encode every byte."""
    return "".join(f"%{byte:02X}" for byte in name.encode())


def test_largest_numbers_are_valid_integers(clock: ManualClock) -> None:
    throttle = Throttle("1/100 years", burst=2**40, clock=clock)
    throttle.charge_local("t", 2**40)
    decision = throttle.check("t")
    written = fields("standard", throttle, decision)
    ((_, policy),) = parsed(written["RateLimit-Policy"])
    assert policy["q"] == 2**40
    assert 10**9 < policy["w"] < 10**15
    assert parsed(written["RateLimit"])[0][1]["r"] == 0


def test_draft_7_fields_can_be_parsed(throttle: Throttle) -> None:
    written = fields("draft-7", throttle, throttle.check("t", 4))
    assert set(written) == {"RateLimit", "RateLimit-Policy"}
    assert dictionary(written["RateLimit"]) == {"limit": 10, "remaining": 6, "reset": 1}
    assert parsed(written["RateLimit-Policy"]) == [(10, {"w": 1})]


def test_draft_6_fields_can_be_parsed(throttle: Throttle) -> None:
    written = fields("draft-6", throttle, throttle.check("t", 4))
    assert parsed(written.pop("RateLimit-Policy")) == [(10, {"w": 1})]
    numbers = {name: read(value, "item")[0] for name, value in written.items()}
    assert numbers == {"RateLimit-Limit": 10, "RateLimit-Remaining": 6, "RateLimit-Reset": 1}


def test_x_ratelimit_reset_is_a_unix_time(throttle: Throttle) -> None:
    before = time.time()
    written = fields("x-ratelimit", throttle, throttle.check("t", 4))
    reset = int(written.pop("X-RateLimit-Reset"))
    assert before + 1 <= reset <= time.time() + 2
    assert written == {"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "6"}


def test_header_format_none_writes_no_field(throttle: Throttle) -> None:
    assert fields("none", throttle, throttle.check("t")) == {}


def test_domain_without_rules_writes_no_field() -> None:
    throttle = Throttle("unlimited")
    assert fields("standard", throttle, throttle.check("t")) == {}


def test_retry_after_is_rounded_up_to_whole_seconds(clock: ManualClock) -> None:
    throttle = Throttle("1 per 3 s", clock=clock)
    throttle.check("t")
    assert retry_after(throttle) == 3
    clock.advance(0.000001)
    assert retry_after(throttle) == 3
    clock.advance(1.0)
    assert retry_after(throttle) == 2
    clock.advance(1.9)
    assert retry_after(throttle) == 1
