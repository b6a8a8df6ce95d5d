"""Sequences on domains and tags: several rules, the deciding rule, separate buckets."""

from __future__ import annotations

from rates import HOUR, MINUTE, MS, S
from sequence import Sequence

FAST = {"name": "fast", "rate": "10/s", "burst": 3}
SLOW = {"name": "slow", "rate": "6/minute", "burst": 5}


def cases() -> list[Sequence]:
    return [*both_orders(), *several_rules(), *deciders(), *domains(), *tags()]


def both_orders() -> list[Sequence]:
    made = []
    for name, rules in (("fast_first", [FAST, SLOW]), ("slow_first", [SLOW, FAST])):
        two = Sequence(
            f"two_rules_{name}",
            "A check passes if every rule allows it. The order of the rules changes no decision.",
            {"rules": rules},
        )
        two.check(0, allowed=True, limit=3, remaining=2, reset_after_ns=10 * S)
        two.check(0, cost=2, allowed=True, limit=3, remaining=0)
        two.check(0, allowed=False, rule="fast", limit=3, retry_after_ns=100 * MS)
        two.check(100 * MS - 1, allowed=False, rule="fast", retry_after_ns=1)
        two.check(100 * MS, allowed=True, limit=3, remaining=0)
        two.check(300 * MS, allowed=True, limit=5, remaining=0)
        two.check(300 * MS, allowed=False, rule="slow", limit=5, retry_after_ns=9700 * MS)
        two.check(10 * S - 1, allowed=False, rule="slow", retry_after_ns=1)
        two.check(10 * S, allowed=True, limit=5, remaining=0, reset_after_ns=50 * S)
        made.append(two)
    return made


def several_rules() -> list[Sequence]:
    nothing = Sequence(
        "refusal_takes_from_no_rule",
        "A thousand refusals by one rule do not change the bucket of the other.",
        {"rules": [FAST, SLOW]},
    )
    nothing.check(0, cost=3, allowed=True)
    nothing.allow(0, False, repeat=1000)
    nothing.check(200 * MS, cost=2, allowed=True)
    nothing.check(500 * MS, allowed=False, rule="slow", retry_after_ns=9500 * MS, balance=0)
    nothing.allow(500 * MS, False, repeat=1000)
    nothing.peek(500 * MS, cost=0, allowed=True, limit=5, balance=0, reset_after_ns=49500 * MS)

    above = Sequence(
        "cost_above_smallest_burst",
        "The smallest burst of the domain limits the cost, at any position of its rule.",
        {"rules": [SLOW, FAST]},
    )
    above.fails("cost", "check", 0, cost=4)
    above.fails("cost", "check", 0, cost=4, max_delay_ns=HOUR)
    above.check(0, cost=4, partial=True, allowed=True, granted=3)
    above.fails("cost", "allow", 0, cost=6)

    every = Sequence(
        "refund_reset_charge_local_reach_every_rule",
        "refund, reset and charge_local act on the tag's bucket of every rule.",
        {"rules": [FAST, SLOW]},
    )
    every.check(0, cost=3, allowed=True, limit=3, balance=0, reset_after_ns=30 * S)
    every.refund(0, cost=2)
    every.peek(0, limit=3, balance=2, reset_after_ns=10 * S)
    every.charge_local(0, 6, 0)
    every.check(0, allowed=False, rule="slow", balance=-2, retry_after_ns=30 * S)
    every.peek(400 * MS, cost=0, allowed=False, rule="slow", retry_after_ns=19600 * MS)
    every.reset(400 * MS)
    every.peek(400 * MS, allowed=True, limit=3, balance=3, reset_after_ns=0)
    every.check(400 * MS, cost=3, allowed=True)
    return [nothing, above, every]


def deciders() -> list[Sequence]:
    longest = Sequence(
        "decider_longest_retry_after",
        "When several rules refuse, the one with the longest retry_after decides.",
        {
            "rules": [
                {"name": "second", "rate": "1/s", "burst": 2},
                {"name": "minute", "rate": "1/minute", "burst": 2},
                {"name": "ten", "rate": "1/10 s", "burst": 2},
            ]
        },
    )
    longest.check(0, cost=2, allowed=True, limit=2)
    longest.check(0, allowed=False, rule="minute", retry_after_ns=MINUTE)
    longest.check(10 * S, allowed=False, rule="minute", retry_after_ns=50 * S, balance=0)
    longest.check(MINUTE, allowed=True, limit=2, remaining=0)

    ties = Sequence(
        "decider_ties",
        "Of equal rules, the one with the smallest limit decides, then the first in the list.",
        {
            "rules": [
                {"name": "wide", "rate": "1/s", "burst": 4},
                {"name": "one", "rate": "1/s", "burst": 2},
                {"name": "two", "rate": "1/s", "burst": 2},
            ]
        },
    )
    ties.peek(0, limit=2, remaining=2)
    ties.check(0, cost=2, allowed=True, limit=2, remaining=0)
    ties.check(0, allowed=False, rule="one", limit=2, retry_after_ns=S)
    ties.charge_local(0, 2, 0)
    ties.check(0, allowed=False, rule="one", limit=2, balance=-2, retry_after_ns=3 * S)
    ties.check(3 * S, allowed=True, limit=2, remaining=0)

    smaller = Sequence(
        "decider_equal_retry_smaller_limit",
        "If two rules have the same retry_after, the one with the smaller limit decides.",
        {
            "rules": [
                {"name": "big", "rate": "1/2 s", "burst": 3},
                {"name": "small", "rate": "1/s", "burst": 2},
            ]
        },
    )
    smaller.charge_local(0, 3, 0)
    smaller.check(0, allowed=False, rule="small", limit=2, balance=-1, retry_after_ns=2 * S)
    smaller.charge_local(0, 1, 0)
    smaller.check(0, allowed=False, rule="big", limit=3, balance=-1, retry_after_ns=4 * S)
    smaller.check(4 * S, allowed=True, limit=3, remaining=0)

    least = Sequence(
        "decider_least_remaining",
        "When a check passes, the rule that has the fewest units left decides.",
        {
            "rules": [
                {"name": "wide", "rate": "1/minute", "burst": 6},
                {"name": "tight", "rate": "2/s", "burst": 4},
            ]
        },
    )
    least.check(0, allowed=True, limit=4, remaining=3)
    least.check(500 * MS, allowed=True, limit=4, remaining=3)
    least.check(S, allowed=True, limit=4, remaining=3)
    least.check(1500 * MS, allowed=True, limit=6, remaining=2)
    least.peek(1500 * MS, cost=2, allowed=True, granted=2, limit=6, remaining=2)

    unnamed = Sequence(
        "rules_without_names",
        "A rule without a name is named after its position: rule1, rule2 and so on.",
        {
            "rules": [
                {"rate": "10/s", "burst": 2},
                {"name": "mine", "rate": "1/s", "burst": 3},
                {"rate": "1/minute", "burst": 4},
            ]
        },
    )
    unnamed.check(0, cost=2, allowed=True)
    unnamed.check(0, allowed=False, rule="rule1", retry_after_ns=100 * MS)
    unnamed.check(100 * MS, allowed=True)
    unnamed.check(200 * MS, allowed=False, rule="mine", retry_after_ns=800 * MS)
    unnamed.check(S, allowed=True)
    unnamed.check(2 * S, allowed=False, rule="rule3", limit=4, retry_after_ns=58 * S)
    return [longest, ties, smaller, least, unnamed]


def domains() -> list[Sequence]:
    free = Sequence(
        "domain_without_rules",
        "A domain allows everything if it has no rules or its rate is unlimited.",
        {"rate": "unlimited", "domains": {"free": {"rules": []}}},
    )
    for domain in ({}, {"domain": "default"}, {"domain": "free"}):
        free.check(0, allowed=True, granted=1, remaining="unlimited", **domain)
        free.check(0, cost=10**12, allowed=True, granted=10**12, **domain)
        free.check(0, cost=10**12, partial=True, granted=10**12, balance="unlimited", **domain)
        free.charge_local(0, 10**15, 0, **domain)
        free.refund(0, cost=5, **domain)
        free.reset(0, **domain)
        free.peek(0, cost=0, allowed=True, granted=0, reset_after_ns=0, **domain)
        free.check(0, max_delay_ns=S, delay_ns=0, rule=None, dry_run=False, **domain)
        free.allow(0, True, repeat=1000, **domain)

    apart = Sequence(
        "domains_are_separate",
        "A tag has separate buckets in each domain.",
        {
            "rate": "1/s",
            "burst": 2,
            "domains": {
                "api": {"rate": "1/s", "burst": 2},
                "login": {"rules": [{"name": "tries", "rate": "1/minute", "burst": 1}]},
            },
        },
    )
    apart.check(0, cost=2, allowed=True, balance=0)
    apart.check(0, allowed=False, rule="rule1")
    apart.check(0, domain="default", allowed=False)
    apart.check(0, domain="api", allowed=True, balance=1)
    apart.check(0, domain="login", allowed=True, balance=0)
    apart.check(0, domain="login", allowed=False, rule="tries", retry_after_ns=MINUTE)
    apart.check(0, domain="api", allowed=True, balance=0)
    apart.reset(0, domain="login")
    apart.check(0, domain="login", allowed=True)
    apart.check(0, domain="api", allowed=False, retry_after_ns=S)

    unknown = Sequence(
        "domain_unknown",
        "A domain that is not configured is an error in every call; names are case-sensitive.",
        {"rate": "1/s", "burst": 1, "domains": {"api": {"rate": "1/s"}}},
    )
    for name in ("nope", "", "API", "api "):
        unknown.fails("domain", "check", 0, domain=name)
    for call in ("allow", "peek", "refund", "reset"):
        unknown.fails("domain", call, 0, domain="nope")
    unknown.fails("domain", "charge_local", 0, domain="nope", cost=1, age_ns=0)
    unknown.check(0, domain="api", allowed=True)
    unknown.check(0, allowed=True)
    return [free, apart, unknown]


def tags() -> list[Sequence]:
    separate = Sequence(
        "tags_are_separate",
        "Every tag has its own bucket.",
        {"rate": "1/s", "burst": 1},
    )
    for number in range(1, 13):
        separate.allow(0, True, f"203.0.113.{number}")
    for number in range(1, 13):
        separate.allow(0, False, f"203.0.113.{number}")
    separate.reset(0, "203.0.113.7")
    separate.allow(0, True, "203.0.113.7")
    separate.allow(0, False, "203.0.113.8")

    odd = Sequence(
        "tags_are_bytes",
        "A tag may be empty, long or not ASCII, or contain a NUL. Each has its own bucket.",
        {"rate": "1/s", "burst": 1},
    )
    names = ["", " ", "a", "A", "a\0", "a\0b", "\0", "a b", "é", "e\u0301", "日本語", "🦀", "\n"]
    names += ["x" * 1023, "x" * 1024, "x" * 1023 + "y"]
    for name in names:
        odd.check(0, name, allowed=True, remaining=0)
    for name in names:
        odd.check(0, name, allowed=False, retry_after_ns=S)
    for name in names:
        odd.allow(S, True, name)
    return [separate, odd]
