"""The calls of Throttle and Domain: arguments, answers, equality, repr."""

from __future__ import annotations

import copy
import pickle
import sys
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import dthrottle
from dthrottle import (
    UNLIMITED,
    ArgumentError,
    ClosedError,
    ConfigError,
    CostError,
    Decision,
    Domain,
    DomainError,
    ManualClock,
    Rule,
    Throttle,
)


def test_decision_is_true_when_allowed(throttle: Throttle) -> None:
    allowed, refused = throttle.check("t", 10), throttle.check("t")
    assert allowed
    assert not refused
    assert (allowed.allowed, refused.allowed) == (True, False)


def test_decision_has_every_field(throttle: Throttle) -> None:
    decision = throttle.check("t", 4)
    fields = {
        "allowed": True,
        "granted": 4,
        "delay": 0.0,
        "retry_after": 0.0,
        "reset_after": 0.4,
        "limit": 10,
        "remaining": 6,
        "balance": 6,
        "rule": None,
        "deciding": "rule1",
        "dry_run": False,
    }
    assert {name: getattr(decision, name) for name in fields} == fields
    assert fields.keys() == {name for name in dir(decision) if not name.startswith("_")}
    assert {type(decision.delay), type(decision.retry_after), type(decision.reset_after)} == {float}


def test_decision_repr_has_all_fields(throttle: Throttle) -> None:
    throttle.check("t", 10)
    assert repr(throttle.check("t")) == (
        "Decision(allowed=False, limit=10, remaining=0, balance=0, granted=0, delay=0.0, "
        "retry_after=0.1, reset_after=1.0, dry_run=False, rule='rule1', deciding='rule1')"
    )


def test_decisions_compare_by_value(throttle: Throttle) -> None:
    first, second, third = (throttle.peek("t", cost) for cost in (1, 1, 2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != third
    assert first != "t"
    assert len({first, second, third}) == 2


def test_decision_cannot_be_changed(throttle: Throttle) -> None:
    decision: Any = throttle.check("t")
    with pytest.raises(AttributeError):
        decision.allowed = False


def test_refusal_names_its_rule(clock: ManualClock) -> None:
    rules: Any = [{"name": "it's", "rate": "1/s"}, {"name": "daily", "rate": "1/day"}]
    throttle = Throttle(rules=rules, clock=clock)
    assert throttle.check("t").rule is None
    assert throttle.check("t").rule == "daily"
    assert [repr(rule) for rule in throttle.rules] == [
        'Rule(name="it\'s", limit=1, window=1.0)',
        "Rule(name='daily', limit=1, window=86400.0)",
    ]


def test_options_are_keyword_arguments(throttle: Throttle, clock: ManualClock) -> None:
    clock.set(seconds=10)
    assert throttle.check(tag="t", cost=10).granted == 10
    waiting = throttle.check("t", max_delay=1)
    assert (waiting.allowed, waiting.delay) == (True, 0.1)
    assert throttle.peek("t", 3, max_delay=1.0, partial=True).granted == 3
    throttle.refund(tag="t", cost=11)
    assert throttle.peek("t").remaining == 10
    throttle.charge_local(tag="u", cost=10, age=0.5)
    assert throttle.peek("u", 100, partial=True).granted == 5
    assert throttle.check("d", 25, allow_debt=True).balance == -15
    assert throttle.peek("d", 25, allow_debt=True).retry_after == 2.5
    throttle.reset(tag="u")
    assert throttle.allow(tag="u", cost=10) is True
    assert throttle.charge(tag="u", cost=5) == 0.5
    assert throttle.charge("v", 10) == 0
    assert (throttle.peek("u").balance, throttle.peek("v").balance) == (-5, 0)
    with pytest.raises(TypeError, match="positional"):
        throttle.check("t", 1, 0.5)  # type: ignore[call-arg]


def test_text_and_its_bytes_are_one_tag(throttle: Throttle) -> None:
    assert throttle.allow("grün", 6)
    assert throttle.check("grün".encode(), 4).remaining == 0
    assert not throttle.allow("grün")


def test_tag_may_be_a_subclass_of_str_or_bytes(throttle: Throttle) -> None:
    class Text(str):
        __slots__ = ()

    assert throttle.check(Text("t"), 7).remaining == 3
    assert throttle.check("t", 3).remaining == 0


@pytest.mark.parametrize("tag", [None, 5, 1.5, ["t"], ("t",), bytearray(b"t"), memoryview(b"t")])
def test_tag_of_another_type_is_an_error(throttle: Throttle, tag: Any) -> None:
    for call in (throttle.check, throttle.allow, throttle.peek, throttle.refund, throttle.reset):
        with pytest.raises(ArgumentError, match="must be str or bytes"):
            call(tag)
    for charge in (throttle.charge_local, throttle.charge):
        with pytest.raises(ArgumentError, match="must be str or bytes"):
            charge(tag, 1)


def test_tag_with_a_lone_surrogate_is_an_error(throttle: Throttle) -> None:
    with pytest.raises(ArgumentError, match="lone surrogate"):
        throttle.check("\ud800")


class Three:
    """An integer that is not an int, like those of numpy."""

    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(("cost", "granted"), [(3, 3), (3.0, 3), (True, 1), (0, 0), (Three(), 3)])
def test_cost_may_be_any_whole_number(throttle: Throttle, cost: Any, granted: int) -> None:
    assert throttle.check("t", cost).granted == granted


@pytest.mark.parametrize(
    "cost",
    [-1, 2**64, -(2**70), 10**5000, 0.5, "1", b"1", None, [1], Decimal(1), 1j],
    ids=lambda cost: type(cost).__name__,  # an int may be too large for a text
)
def test_cost_that_is_not_a_whole_number_is_an_error(throttle: Throttle, cost: Any) -> None:
    calls = (throttle.check, throttle.allow, throttle.peek, throttle.refund)
    for call in (*calls, throttle.charge_local, throttle.charge):
        with pytest.raises(CostError, match=r"a whole number|an int from 0"):
            call("t", cost)
    assert throttle.peek("t").remaining == 10


def test_unlimited_domain_grants_the_largest_cost() -> None:
    decision = Throttle("unlimited").check("t", 2**64 - 1)
    assert decision.granted == 2**64 - 1
    assert decision.limit == decision.remaining == UNLIMITED == 2**64 - 1
    assert decision.balance == 2**63 - 1


@pytest.mark.parametrize("cost", [2**64, 2**70, -1])
def test_message_about_a_cost_names_its_range(throttle: Throttle, cost: int) -> None:
    message = rf"^`cost` must be an int from 0 to 2\*\*64 - 1, got {cost}$"
    with pytest.raises(CostError, match=message):
        throttle.check("t", cost)
    with pytest.raises(CostError, match=message):
        throttle.allow("t", cost)


def test_message_about_a_float_as_cost_names_its_range(throttle: Throttle) -> None:
    with pytest.raises(
        CostError, match=r"^`cost` must be a whole number from 0 to 2\^53, got 1.5$"
    ):
        throttle.check("t", 1.5)


@pytest.mark.parametrize("time", [-1, -0.5, timedelta(seconds=-1)])
def test_message_about_a_negative_time_names_its_range(throttle: Throttle, time: Any) -> None:
    message = r"^`max_delay` must be a number of seconds from 0 to 100 years, got -[01.5]+$"
    with pytest.raises(ArgumentError, match=message):
        throttle.check("t", max_delay=time)


def test_message_about_a_time_that_is_not_a_number_says_what_is_right(throttle: Throttle) -> None:
    with pytest.raises(ArgumentError, match=r"100 years, or a timedelta, got '1s'$"):
        throttle.check("t", max_delay="1s")  # type: ignore[arg-type]


def test_times_may_be_timedeltas(throttle: Throttle, clock: ManualClock) -> None:
    throttle.check("t", 10)
    assert throttle.check("t", max_delay=timedelta(milliseconds=100)).delay == 0.1
    clock.advance(timedelta(minutes=1))
    assert clock.now() == 60
    assert ManualClock(timedelta(seconds=5)).now() == 5
    assert Throttle("10/s", burst=timedelta(seconds=3)).rules[0].limit == 30


def test_unknown_keyword_of_a_throttle_suggests_the_right_one() -> None:
    with pytest.raises(ConfigError, match="did you mean `burst`") as raised:
        Throttle("1/s", brust=5)  # type: ignore[call-arg]
    assert raised.value.field == "brust"


@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))]
)
def test_decision_can_be_pickled(clock: ManualClock, copier: Any) -> None:
    rules: Any = [{"name": "a", "rate": "3/s"}, {"name": "b", "rate": "1/hour"}]
    throttle = Throttle(rules=rules, clock=clock)
    domain = Throttle(clock=clock, domains={"debt": {"rate": "7/s"}}).domain("debt")
    domain.charge("t", 20)
    decisions = [
        throttle.check("t"),
        throttle.check("t"),
        domain.peek("t"),
        Throttle(rules=[]).check("t"),
    ]
    for decision in decisions:
        found = copier(decision)
        assert found == decision
        assert repr(found) == repr(decision)
        assert hash(found) == hash(decision)
        assert bool(found) == bool(decision)


@pytest.mark.parametrize("seconds", [0, 2**64 - 1])
def test_pickled_time_with_too_many_nanoseconds_is_an_error(seconds: int) -> None:
    reduced: Any = Throttle("1/s").check("t").__reduce__()
    restore, ((*fields,),) = reduced
    position = fields.index((0, 0))
    fields[position] = (seconds, 999_999_999)
    restore(tuple(fields))
    fields[position] = (seconds, 1_000_000_000)
    with pytest.raises(ArgumentError, match="nanoseconds must be less than"):
        restore(tuple(fields))


@pytest.mark.parametrize("flag", [0, 1, None, "yes"])
@pytest.mark.parametrize("name", ["partial", "allow_debt"])
def test_flag_of_another_type_is_an_error(throttle: Throttle, name: str, flag: Any) -> None:
    with pytest.raises(ArgumentError, match=rf"`{name}` must be True or False"):
        throttle.check("t", **{name: flag})


def test_exception_of_an_argument_is_raised_unchanged(throttle: Throttle) -> None:
    class Stubborn:
        def __float__(self) -> float:
            raise ZeroDivisionError("mine")

        __index__ = __float__

    stubborn: Any = Stubborn()
    with pytest.raises(ZeroDivisionError, match="mine"):
        throttle.check("t", max_delay=stubborn)
    with pytest.raises(ZeroDivisionError, match="mine"):
        throttle.check("t", stubborn)


def test_throttle_has_the_calls_of_its_default_domain(throttle: Throttle) -> None:
    assert isinstance(throttle, Domain)
    assert issubclass(Throttle, Domain)
    default = throttle.domain("default")
    assert type(default) is Domain
    assert (throttle.name, throttle.rules) == (default.name, default.rules)
    assert default.check("t", 9).remaining == 1
    assert throttle.check("t").remaining == 0
    assert (
        repr(throttle) == "<Throttle 'default', rules=(Rule(name='rule1', limit=10, window=1.0),)>"
    )
    assert repr(default) == "<Domain 'default', rules=(Rule(name='rule1', limit=10, window=1.0),)>"


def test_domain_cannot_be_constructed(throttle: Throttle) -> None:
    with pytest.raises(TypeError):
        Domain()
    with pytest.raises(DomainError, match="known domains are default"):
        throttle.domain("other")


def test_rules_compare_by_value(throttle: Throttle) -> None:
    (rule,) = throttle.rules
    assert isinstance(rule, Rule)
    assert (rule.name, rule.limit) == ("rule1", 10)
    assert {rule} == set(Throttle(10, burst=10).rules) != set(Throttle(5, burst=10).rules)
    assert throttle.rules != Throttle("1/s").rules


def test_stats_count_allowed_and_refused_checks(throttle: Throttle) -> None:
    throttle.allow("t", 10)
    throttle.allow("t")
    stats = throttle.stats()
    assert (stats.allowed, stats.refused, stats.buckets) == (1, 1, 1)
    assert (stats.dry_run, stats.failed_open, stats.clamped, stats.evicted) == (0, 0, 0, 0)
    assert stats == throttle.stats()
    assert hash(stats) == hash(throttle.stats())
    assert repr(stats) == (
        "Stats(allowed=1, refused=1, dry_run=0, failed_open=0, clamped=0, evicted=0, buckets=1, "
        "unreported=0)"
    )


def test_stats_count_buckets_evicted_from_a_full_table(clock: ManualClock) -> None:
    throttle = Throttle("1/s", table={"private": True, "size": 1}, clock=clock)
    assert all(throttle.allow_many(str(index) for index in range(1000)))
    stats = throttle.stats()
    assert stats.buckets < 1000
    assert stats.buckets + stats.evicted == 1000


def test_allow_many_returns_what_single_calls_return(clock: ManualClock) -> None:
    one, many = (Throttle("1/s", burst=3, clock=clock) for _ in range(2))
    tags: list[str | bytes] = ["a", b"b", "a", "", "ü", "ü".encode(), "a", "a", "ü", b"\xff"] * 20
    want = [one.allow(tag) for tag in tags]
    assert many.allow_many(tags) == want
    assert set(want) == {True, False}
    assert many.stats() == one.stats()
    assert many.allow_many(iter(["new"])) == [True]
    assert many.allow_many({"newer": 1}) == [True]
    assert many.allow_many([]) == []


@pytest.mark.parametrize("tags", ["text", b"bytes", 5, None])
def test_allow_many_of_something_not_iterable_is_an_error(throttle: Throttle, tags: Any) -> None:
    with pytest.raises(ArgumentError, match="iterable of str or bytes"):
        throttle.allow_many(tags)


def test_allow_many_with_an_invalid_tag_charges_nothing(throttle: Throttle) -> None:
    bad: list[Any] = ["t", "t", 5]
    with pytest.raises(ArgumentError, match="`tag` must be str or bytes, got 5"):
        throttle.allow_many(bad)
    with pytest.raises(ArgumentError, match="lone surrogate"):
        throttle.allow_many(["t", "\ud800"])

    def failing() -> Any:
        yield "t"
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        throttle.allow_many(failing())
    assert throttle.peek("t").remaining == 10
    throttle.close()
    for tags in (["t"], []):
        with pytest.raises(ClosedError):
            throttle.allow_many(tags)


def test_with_statement_closes_the_throttle(clock: ManualClock) -> None:
    with Throttle("10/s", clock=clock) as throttle:
        domain = throttle.domain("default")
        assert domain.allow("t")
    for each in (throttle, domain):
        with pytest.raises(ClosedError):
            each.allow("t")
        with pytest.raises(ClosedError):
            each.charge("t", 1)
    throttle.close()


def test_with_statement_closes_after_an_exception(throttle: Throttle) -> None:
    def fail() -> None:
        with throttle as same:
            assert same is throttle
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(ClosedError):
        throttle.check("t")


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_throttle_and_domain_cannot_be_copied(throttle: Throttle, copier: Any) -> None:
    for each in (throttle, throttle.domain("default")):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copier(each)


def test_calls_keep_no_reference_to_their_arguments(throttle: Throttle) -> None:
    tag, cost = "a tag of its own " * 2, 2.0**20
    before = sys.getrefcount(tag), sys.getrefcount(cost)
    for _ in range(100):
        throttle.check(tag)
        throttle.peek(tag, cost, partial=True)
        with pytest.raises(CostError):
            throttle.check(tag, cost)
    assert (sys.getrefcount(tag), sys.getrefcount(cost)) == before


def test_everything_public_has_a_docstring() -> None:
    for name in dthrottle.__all__:
        public = getattr(dthrottle, name)
        if isinstance(public, type):
            assert public.__doc__, name
            for member, value in vars(public).items():
                if not member.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{member}"
    assert isinstance(Decision.__doc__, str)
