"""Sequences on the options of rules and domains: charge_refused and dry_run."""

from __future__ import annotations

from typing import Any

from rates import MINUTE, MS, S
from sequence import Sequence

GOVERNOR = {"rate": "1/s", "burst": 3, "charge_refused": True}


def cases() -> list[Sequence]:
    return [*charged(), *charged_of_several(), *dry_runs()]


def charged() -> list[Sequence]:
    governor = Sequence(
        "charge_refused_governor",
        "With charge_refused, steady checks stay refused until a pause, as in Governor.",
        GOVERNOR,
    )
    governor.allow(0, True, repeat=3)
    governor.check(0, allowed=False, balance=-1, retry_after_ns=2 * S, reset_after_ns=4 * S)
    for second in range(1, 6):
        governor.check(second * S, allowed=False, balance=-1, retry_after_ns=2 * S)
    governor.check(6 * S + 500 * MS, allowed=False, balance=-1, retry_after_ns=1500 * MS)
    governor.check(8 * S, allowed=True, balance=0, reset_after_ns=3 * S)
    governor.check(9 * S - 1, allowed=False, balance=-1, retry_after_ns=S + 1)
    governor.check(10 * S, allowed=True, balance=0)

    sinking = Sequence(
        "charge_refused_sinks",
        "Each refusal lowers the balance by its cost, without a limit.",
        GOVERNOR,
    )
    sinking.check(0, cost=2, allowed=True, balance=1)
    sinking.check(0, cost=3, allowed=False, granted=0, balance=-2, retry_after_ns=5 * S)
    sinking.check(0, cost=2, allowed=False, balance=-4, retry_after_ns=6 * S)
    sinking.allow(0, False, repeat=100)
    sinking.peek(0, balance=-104, retry_after_ns=105 * S, reset_after_ns=107 * S)
    sinking.check(105 * S - 1, allowed=False, balance=-1, retry_after_ns=S + 1)
    sinking.check(106 * S, allowed=True, balance=0)

    peeks = Sequence(
        "charge_refused_does_not_charge_peek",
        "A refused peek is not charged. A check that is refused despite max_delay is charged.",
        GOVERNOR,
    )
    peeks.check(0, cost=3, allowed=True, balance=0)
    peeks.peek(0, repeat=20, allowed=False, balance=0, retry_after_ns=S)
    peeks.check(0, max_delay_ns=S, allowed=True, delay_ns=S, balance=-1)
    peeks.check(0, max_delay_ns=S, allowed=False, delay_ns=0, balance=-2, retry_after_ns=3 * S)
    peeks.fails("cost", "check", 0, cost=4)
    peeks.peek(0, balance=-2, reset_after_ns=5 * S)
    peeks.refund(0, cost=2)
    peeks.check(S, allowed=True, balance=0)
    return [governor, sinking, peeks]


def charged_of_several() -> list[Sequence]:
    other = Sequence(
        "charge_refused_second_rule",
        "A refusal is charged only to rules with charge_refused.",
        {
            "rules": [
                {"name": "gate", "rate": "1/s", "burst": 1},
                {"name": "count", "rate": "1/minute", "burst": 100, "charge_refused": True},
            ]
        },
    )
    other.check(0, allowed=True, limit=1, remaining=0, reset_after_ns=MINUTE)
    other.check(0, allowed=False, rule="gate", retry_after_ns=S, reset_after_ns=2 * MINUTE)
    other.allow(0, False, repeat=10)
    other.peek(0, rule="gate", retry_after_ns=S, balance=0, reset_after_ns=12 * MINUTE)
    other.check(S, allowed=True, limit=1, reset_after_ns=13 * MINUTE - S)

    itself = Sequence(
        "charge_refused_refusing_rule",
        "A rule that refuses and has charge_refused is charged. The other rule is not.",
        {
            "rules": [
                {"name": "wide", "rate": "1/s", "burst": 5},
                {"name": "gate", "rate": "1/s", "burst": 2, "charge_refused": True},
            ]
        },
    )
    itself.check(0, cost=2, allowed=True, limit=2, remaining=0)
    itself.check(0, allowed=False, rule="gate", balance=-1, retry_after_ns=2 * S)
    itself.check(0, allowed=False, rule="gate", balance=-2, retry_after_ns=3 * S)
    itself.check(3 * S, allowed=True, limit=2, remaining=0, reset_after_ns=2 * S)
    itself.peek(3 * S, rule="gate", retry_after_ns=S)

    later = Sequence(
        "charge_refused_longest_retry",
        "A charge may empty a rule that did not refuse, so retry_after considers all rules.",
        {
            "rules": [
                {"name": "gate", "rate": "1/s", "burst": 2},
                {"name": "count", "rate": "1/minute", "burst": 4, "charge_refused": True},
            ]
        },
    )
    later.check(0, cost=2, allowed=True, limit=2, remaining=0)
    later.check(0, cost=2, allowed=False, rule="gate", limit=2, retry_after_ns=2 * MINUTE)
    later.check(2 * S, cost=2, allowed=False, rule="count", limit=4, balance=-2)

    partial = Sequence(
        "charge_refused_partial",
        "A refused partial check is charged its cost, but at most the burst.",
        {"rate": "1/s", "burst": 5, "charge_refused": True},
    )
    partial.check(0, cost=9, partial=True, allowed=True, granted=5, balance=0)
    partial.check(0, cost=3, partial=True, allowed=False, balance=-3, retry_after_ns=4 * S)
    partial.check(0, cost=2**40, partial=True, allowed=False, balance=-8, retry_after_ns=9 * S)
    partial.check(9 * S, cost=2**40, partial=True, allowed=True, granted=1, balance=0)
    return [other, itself, later, partial]


def dry_runs() -> list[Sequence]:
    top = Sequence(
        "dry_run_top",
        "Dry run counts every check and refuses none. The decision shows the refusal.",
        {"rate": "1/s", "burst": 2, "dry_run": True},
    )
    top.check(0, allowed=True, granted=1, dry_run=False, rule=None)
    top.check(0, allowed=True, granted=1, dry_run=False, balance=0)
    top.check(0, allowed=True, granted=0, dry_run=True, rule="rule1", retry_after_ns=S)
    top.peek(0, allowed=True, granted=0, dry_run=True, rule="rule1", balance=0)
    top.allow(0, True, repeat=10)
    top.check(S - 1, allowed=True, granted=0, dry_run=True, retry_after_ns=1)
    top.check(S, allowed=True, granted=1, dry_run=False, balance=0)
    top.check(S, max_delay_ns=S - 1, granted=0, dry_run=True, delay_ns=0, retry_after_ns=S)
    top.check(S, max_delay_ns=S, granted=1, dry_run=True, rule=None, delay_ns=0, retry_after_ns=S)
    top.check(S, cost=5, partial=True, granted=0, dry_run=True, retry_after_ns=2 * S)
    top.fails("cost", "check", S, cost=3)

    domain = Sequence(
        "dry_run_one_domain",
        "dry_run in a domain applies only to that domain.",
        {
            "rate": "1/s",
            "burst": 1,
            "domains": {
                "trial": {"rate": "1/s", "burst": 1, "dry_run": True},
                "api": {"rate": "1/s", "burst": 1},
            },
        },
    )
    for name in ("default", "trial", "api"):
        domain.allow(0, True, domain=name)
    domain.check(0, allowed=False, dry_run=False)
    domain.check(0, domain="trial", allowed=True, granted=0, dry_run=True, rule="rule1")
    domain.check(0, domain="api", allowed=False, dry_run=False)

    override = Sequence(
        "dry_run_override",
        "dry_run at the top applies to every domain that does not set dry_run = false.",
        {
            "rate": "1/s",
            "burst": 1,
            "dry_run": True,
            "domains": {
                "api": {"rate": "1/s", "burst": 1},
                "strict": {"rate": "1/s", "burst": 1, "dry_run": False},
                "free": {},
            },
        },
    )
    for name in ("default", "api", "strict", "free"):
        override.check(0, domain=name, allowed=True, granted=1, dry_run=False)
    override.check(0, allowed=True, granted=0, dry_run=True, retry_after_ns=S)
    override.check(0, domain="api", allowed=True, granted=0, dry_run=True)
    override.check(0, domain="strict", allowed=False, granted=0, dry_run=False)
    override.check(0, domain="free", allowed=True, granted=1, dry_run=False)

    both = Sequence(
        "dry_run_charge_refused",
        "In dry run, refusals are charged to rules with charge_refused.",
        {"rate": "1/s", "burst": 1, "charge_refused": True, "dry_run": True},
    )
    both.check(0, allowed=True, granted=1, dry_run=False)
    for debt in range(1, 4):
        both.check(0, allowed=True, granted=0, dry_run=True, balance=-debt)
    both.peek(0, dry_run=True, balance=-3, retry_after_ns=4 * S)
    both.check(4 * S, allowed=True, granted=1, dry_run=False, balance=0)
    return [top, domain, override, both, dry_run_waits()]


def dry_run_waits() -> Sequence:
    waits = Sequence(
        "dry_run_waits",
        "Dry run delays no check. retry_after has the delay that would have been necessary.",
        {
            "rules": [{"rate": "1/s", "burst": 1}, {"rate": "1/s", "burst": 2}],
            "dry_run": True,
            "domains": {"strict": {"rate": "1/s", "burst": 1, "dry_run": False}},
        },
    )
    waits.check(0, max_delay_ns=3 * S, granted=1, dry_run=False, delay_ns=0, retry_after_ns=0)
    for seconds in range(1, 4):
        expected: dict[str, Any] = {
            "granted": 1,
            "dry_run": True,
            "rule": None,
            "retry_after_ns": seconds * S,
        }
        waits.peek(0, max_delay_ns=3 * S, allowed=True, delay_ns=0, **expected)
        waits.check(0, max_delay_ns=3 * S, allowed=True, delay_ns=0, **expected)
    # The whole cost was charged, so the next check would be refused.
    waits.check(0, max_delay_ns=3 * S, granted=0, dry_run=True, rule="rule1", retry_after_ns=4 * S)
    waits.check(0, cost=0, max_delay_ns=3 * S, granted=0, dry_run=True, rule=None, delay_ns=0)
    waits.check(2 * S, cost=9, partial=True, max_delay_ns=3 * S, granted=2, retry_after_ns=3 * S)
    waits.check(5 * S, max_delay_ns=3 * S, granted=1, dry_run=True, retry_after_ns=S)
    waits.check(9 * S, max_delay_ns=3 * S, granted=1, dry_run=False, retry_after_ns=0)
    waits.allow(9 * S, True, domain="strict")
    waits.check(9 * S, domain="strict", max_delay_ns=S, dry_run=False, delay_ns=S, retry_after_ns=0)
    return waits
