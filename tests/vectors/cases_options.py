"""Sequences on the options of a check: max_delay, partial and allow_debt."""

from __future__ import annotations

from typing import Any

from rates import HOUR, MS, S
from sequence import Sequence

ONE = {"rate": "1/s", "burst": 10}
TEN = {"rate": "10/s", "burst": 10}
PACED = {"rate": "1/s", "burst": 1}
TWO = {
    "rules": [
        {"name": "burst", "rate": "10/s", "burst": 5},
        {"name": "slow", "rate": "1/s", "burst": 12},
    ]
}


def cases() -> list[Sequence]:
    return [
        *waits(),
        *waits_of_several(),
        *partials(),
        *partials_of_several(),
        *debts(),
        *debts_of_several(),
    ]


def waits() -> list[Sequence]:
    spaced = Sequence(
        "max_delay_spaces_callers",
        "Delayed checks are charged immediately, and their turns are one T apart.",
        PACED,
    )
    for turn in range(5):
        spaced.check(0, max_delay_ns=5 * S, allowed=True, granted=1, delay_ns=turn * S)
    spaced.peek(0, balance=-4, remaining=0, reset_after_ns=5 * S)
    spaced.check(0, allowed=False, delay_ns=0, retry_after_ns=5 * S)
    spaced.check(500 * MS, max_delay_ns=5 * S, allowed=True, delay_ns=4500 * MS)
    spaced.check(500 * MS, max_delay_ns=5 * S, allowed=False, retry_after_ns=5500 * MS)
    spaced.check(6 * S - 1, allowed=False, retry_after_ns=1)
    spaced.check(6 * S, allowed=True)

    boundary = Sequence(
        "max_delay_boundary",
        "A check passes if its delay is max_delay. If it is 1 ns more, the check takes nothing.",
        PACED,
    )
    boundary.check(0, allowed=True)
    boundary.check(0, max_delay_ns=S - 1, allowed=False, delay_ns=0, retry_after_ns=S)
    boundary.check(1, max_delay_ns=S - 2, allowed=False, retry_after_ns=S - 1)
    boundary.check(1, max_delay_ns=S - 1, allowed=True, delay_ns=S - 1)
    boundary.check(1, max_delay_ns=2 * S - 2, allowed=False, retry_after_ns=2 * S - 1)
    boundary.peek(1, max_delay_ns=2 * S - 1, allowed=True, granted=1, delay_ns=2 * S - 1)
    boundary.check(1, max_delay_ns=2 * S - 1, allowed=True, delay_ns=2 * S - 1)

    unused = Sequence(
        "max_delay_unused",
        "A check is not delayed while the bucket has units. A max_delay of 0 has no effect.",
        {"rate": "1/s", "burst": 2},
    )
    unused.check(0, max_delay_ns=HOUR, allowed=True, delay_ns=0, balance=1)
    unused.check(0, max_delay_ns=0, allowed=True, delay_ns=0, balance=0)
    unused.check(0, max_delay_ns=0, allowed=False, delay_ns=0, retry_after_ns=S)
    unused.check(S, max_delay_ns=0, allowed=True)

    gives_up = Sequence(
        "max_delay_given_up",
        "A caller that gives up refunds its units, and the next caller gets its turn.",
        PACED,
    )
    for turn in range(4):
        gives_up.check(0, max_delay_ns=10 * S, allowed=True, delay_ns=turn * S)
    gives_up.refund(0)
    gives_up.check(0, max_delay_ns=10 * S, allowed=True, delay_ns=3 * S)
    gives_up.refund(500 * MS, cost=2)
    gives_up.check(500 * MS, max_delay_ns=10 * S, allowed=True, delay_ns=1500 * MS)
    gives_up.refund(500 * MS, cost=3)
    gives_up.peek(500 * MS, balance=1, reset_after_ns=0)

    costly = Sequence(
        "max_delay_with_cost",
        "The delay ends when the bucket has the whole cost.",
        TEN,
    )
    costly.check(0, cost=7, max_delay_ns=S, allowed=True, delay_ns=0, balance=3)
    costly.check(0, cost=8, max_delay_ns=500 * MS - 1, allowed=False, retry_after_ns=500 * MS)
    costly.check(0, cost=8, max_delay_ns=500 * MS, allowed=True, delay_ns=500 * MS, balance=-5)
    costly.check(0, cost=0, max_delay_ns=500 * MS - 1, allowed=False, retry_after_ns=500 * MS)
    costly.check(0, cost=0, max_delay_ns=500 * MS, allowed=True, granted=0, delay_ns=500 * MS)
    costly.check(0, cost=10, max_delay_ns=2 * S, allowed=True, delay_ns=1500 * MS, balance=-15)

    debt = Sequence(
        "max_delay_in_debt",
        "The delay includes the time until a debt is paid.",
        ONE,
    )
    debt.charge_local(0, 13, 0)
    debt.check(0, max_delay_ns=4 * S - 1, allowed=False, balance=-3, retry_after_ns=4 * S)
    debt.check(0, max_delay_ns=4 * S, allowed=True, delay_ns=4 * S, balance=-4)
    debt.check(3 * S, max_delay_ns=2 * S, allowed=True, delay_ns=2 * S, balance=-2)
    return [spaced, boundary, unused, gives_up, costly, debt]


def waits_of_several() -> list[Sequence]:
    both = Sequence(
        "max_delay_two_rules",
        "With two rules, the longer delay applies. If one rule refuses, neither is charged.",
        {
            "rules": [
                {"name": "fast", "rate": "10/s", "burst": 1},
                {"name": "slow", "rate": "1/s", "burst": 3},
            ]
        },
    )
    both.check(0, max_delay_ns=S, allowed=True, delay_ns=0, limit=1, balance=0)
    both.check(0, max_delay_ns=S, allowed=True, delay_ns=100 * MS, limit=1, balance=-1)
    both.check(0, max_delay_ns=S, allowed=True, delay_ns=200 * MS, limit=1, balance=-2)
    both.check(0, max_delay_ns=S - 1, allowed=False, rule="slow", retry_after_ns=S, balance=0)
    both.check(0, max_delay_ns=S, allowed=True, delay_ns=S, limit=1, balance=-3)
    both.check(0, allowed=False, rule="slow", limit=3, balance=-1, retry_after_ns=2 * S)

    figures = Sequence(
        "max_delay_decider",
        "If no rule has units left, the smaller limit decides, even if the other owes more.",
        {
            "rules": [
                {"name": "big", "rate": "1/s", "burst": 3},
                {"name": "small", "rate": "10/s", "burst": 2},
            ]
        },
    )
    figures.check(0, cost=2, allowed=True, limit=2, balance=0)
    figures.check(200 * MS, cost=2, max_delay_ns=S, delay_ns=800 * MS, limit=2, balance=0)
    figures.check(200 * MS, allowed=False, rule="big", balance=-1, retry_after_ns=1800 * MS)
    return [both, figures]


def partials() -> list[Sequence]:
    most = Sequence(
        "partial_ask_15_get_10",
        "A partial check for 15 units grants the 10 that are left, as in the gossip document.",
        TEN,
    )
    most.peek(0, cost=15, partial=True, allowed=True, granted=10, balance=10)
    most.check(0, cost=15, partial=True, allowed=True, granted=10, balance=0, rule=None)
    most.check(0, cost=15, partial=True, allowed=False, granted=0, retry_after_ns=100 * MS)
    most.check(100 * MS - 1, cost=15, partial=True, allowed=False, retry_after_ns=1)
    most.check(100 * MS, cost=15, partial=True, allowed=True, granted=1, balance=0)
    most.check(400 * MS - 1, cost=15, partial=True, allowed=True, granted=2, balance=0)
    most.check(400 * MS, cost=15, partial=True, allowed=True, granted=1, balance=0)

    fewer = Sequence(
        "partial_within_balance",
        "A partial check grants the cost if the bucket has enough units.",
        TEN,
    )
    fewer.check(0, cost=4, partial=True, allowed=True, granted=4, balance=6)
    fewer.check(0, cost=6, partial=True, allowed=True, granted=6, balance=0)
    fewer.check(0, cost=0, partial=True, allowed=True, granted=0, balance=0)
    fewer.check(0, partial=True, allowed=False, granted=0, retry_after_ns=100 * MS)
    fewer.check(350 * MS, cost=3, partial=True, allowed=True, granted=3, balance=0)
    fewer.check(400 * MS, cost=3, partial=True, allowed=True, granted=1)

    huge = Sequence(
        "partial_above_burst",
        "With partial, a cost far above the burst is not an error.",
        TEN,
    )
    huge.fails("cost", "check", 0, cost=11)
    huge.check(0, cost=2**40, partial=True, allowed=True, granted=10, balance=0)
    huge.check(0, cost=2**40, partial=True, allowed=False, granted=0, retry_after_ns=100 * MS)
    huge.check(S, cost=11, partial=True, allowed=True, granted=10)
    huge.check(60 * S, cost=2**40, partial=True, allowed=True, granted=10, balance=0)

    debt = Sequence(
        "partial_in_debt",
        "A partial check in debt is refused. retry_after is the time until there is one unit.",
        TEN,
    )
    debt.charge_local(0, 13, 0)
    debt.check(0, cost=5, partial=True, allowed=False, balance=-3, retry_after_ns=400 * MS)
    debt.check(400 * MS - 1, cost=5, partial=True, allowed=False, retry_after_ns=1)
    debt.check(400 * MS, cost=5, partial=True, allowed=True, granted=1, balance=0)

    waiting = Sequence(
        "partial_with_max_delay",
        "A partial check also grants units that refill within max_delay, and waits for them.",
        TEN,
    )
    waiting.check(0, cost=7, allowed=True, balance=3)
    waiting.peek(0, cost=8, partial=True, max_delay_ns=200 * MS, granted=5, delay_ns=200 * MS)
    waiting.check(0, cost=8, partial=True, max_delay_ns=200 * MS, granted=5, delay_ns=200 * MS)
    waiting.peek(0, balance=-2)
    waiting.check(0, cost=8, partial=True, max_delay_ns=300 * MS - 1, allowed=False)
    waiting.check(0, cost=8, partial=True, max_delay_ns=300 * MS, granted=1, delay_ns=300 * MS)
    waiting.check(0, cost=2, partial=True, max_delay_ns=S, granted=2, delay_ns=500 * MS)

    ahead = Sequence(
        "partial_with_max_delay_above_burst",
        "With a large max_delay, a partial check grants more than the burst.",
        TEN,
    )
    ahead.check(0, cost=30, partial=True, max_delay_ns=S, granted=20, delay_ns=S, balance=-10)
    ahead.check(0, cost=30, partial=True, max_delay_ns=S, allowed=False, retry_after_ns=1100 * MS)

    nothing = Sequence(
        "partial_cost_zero_in_debt",
        "A partial check of cost 0 is refused until the debt is paid.",
        TEN,
    )
    nothing.charge_local(0, 12, 0)
    nothing.check(0, cost=0, partial=True, allowed=False, retry_after_ns=200 * MS, balance=-2)
    nothing.check(200 * MS, cost=0, partial=True, allowed=True, granted=0, balance=0)
    return [most, fewer, huge, debt, waiting, ahead, nothing]


def partials_of_several() -> list[Sequence]:
    least = Sequence(
        "partial_two_rules",
        "A partial check grants the units that every rule has, and takes them from each.",
        TWO,
    )
    least.check(0, cost=9, partial=True, allowed=True, granted=5, limit=5, remaining=0)
    least.check(0, cost=9, partial=True, allowed=False, rule="burst", retry_after_ns=100 * MS)
    least.check(500 * MS, cost=9, partial=True, allowed=True, granted=5, limit=5, remaining=0)
    least.check(S, cost=9, partial=True, allowed=True, granted=3, limit=12, remaining=0)
    least.check(S, cost=9, partial=True, allowed=False, rule="slow", retry_after_ns=S)
    least.check(2 * S - 1, cost=9, partial=True, allowed=False, rule="slow", retry_after_ns=1)
    least.check(2 * S, cost=9, partial=True, allowed=True, granted=1)

    waiting = Sequence(
        "partial_two_rules_max_delay",
        "With max_delay, a partial check grants the units that both rules have in time.",
        TWO,
    )
    waiting.check(0, cost=4, partial=True, max_delay_ns=S, granted=4, delay_ns=0)
    waiting.check(0, cost=9, partial=True, max_delay_ns=300 * MS, granted=4, delay_ns=300 * MS)
    waiting.check(S, cost=5, max_delay_ns=S, allowed=True, delay_ns=0)
    waiting.check(S, cost=4, partial=True, max_delay_ns=S, granted=1, delay_ns=S, limit=5)
    return [least, waiting]


def debts() -> list[Sequence]:
    above = Sequence(
        "allow_debt_above_burst",
        "With allow_debt a cost above the burst needs a full bucket and leaves it in debt.",
        TEN,
    )
    above.fails("cost", "check", 0, cost=25)
    above.peek(0, cost=25, allow_debt=True, allowed=True, granted=25, balance=10)
    above.check(0, cost=25, allow_debt=True, allowed=True, granted=25, balance=-15, delay_ns=0)
    above.check(0, cost=25, allow_debt=True, allowed=False, granted=0, retry_after_ns=2500 * MS)
    above.check(0, allowed=False, retry_after_ns=1600 * MS)
    above.check(2500 * MS - 1, cost=25, allow_debt=True, allowed=False, retry_after_ns=1)
    above.check(2500 * MS, cost=25, allow_debt=True, allowed=True, granted=25, balance=-15)

    within = Sequence(
        "allow_debt_within_burst",
        "A cost within the burst needs all its units, with and without allow_debt.",
        TEN,
    )
    within.check(0, cost=4, allow_debt=True, allowed=True, granted=4, balance=6)
    within.check(0, cost=7, allow_debt=True, allowed=False, balance=6, retry_after_ns=100 * MS)
    within.check(0, cost=11, allow_debt=True, allowed=False, retry_after_ns=400 * MS)
    within.check(0, cost=6, allow_debt=True, allowed=True, granted=6, balance=0)
    within.check(0, cost=0, allow_debt=True, allowed=True, granted=0, balance=0)
    within.check(0, allow_debt=True, allowed=False, retry_after_ns=100 * MS)

    most = Sequence(
        "allow_debt_cost_above_2_to_the_40",
        "With allow_debt, a cost counts as at most 2^40, even in a domain without rules.",
        {"rate": "1000000000/s", "burst": 10, "domains": {"free": {}}},
    )
    most.check(0, cost=2**40 + 1, allow_debt=True, granted=2**40, balance=10 - 2**40)
    most.check(0, cost=2**41, allow_debt=True, domain="free", granted=2**40)
    most.fails("cost", "check", 0, cost=2**40)

    partial = Sequence(
        "allow_debt_and_partial",
        "With partial, allow_debt has no effect.",
        TEN,
    )
    partial.check(0, cost=15, partial=True, allow_debt=True, granted=10, balance=0)
    partial.check(0, cost=15, partial=True, allow_debt=True, granted=0, retry_after_ns=100 * MS)
    partial.check(0, cost=30, partial=True, allow_debt=True, max_delay_ns=2 * S, granted=20)

    back = Sequence(
        "allow_debt_refund",
        "A refund of the cost returns all units, including the debt.",
        TEN,
    )
    back.check(0, cost=25, allow_debt=True, allowed=True, balance=-15)
    back.refund(0, cost=20)
    back.peek(0, balance=5)
    back.refund(0, cost=5)
    back.peek(0, balance=10, reset_after_ns=0)
    back.check(0, cost=30, allow_debt=True, allowed=True, balance=-20)

    waiting = Sequence(
        "allow_debt_max_delay",
        "With max_delay, the delay ends when the bucket is full. The new debt adds no delay.",
        TEN,
    )
    full: dict[str, Any] = {"cost": 25, "allow_debt": True, "granted": 25}
    waiting.check(0, cost=3, allowed=True, balance=7)
    waiting.check(0, cost=25, allow_debt=True, max_delay_ns=300 * MS - 1, allowed=False)
    waiting.peek(0, max_delay_ns=300 * MS, delay_ns=300 * MS, **full)
    waiting.check(0, max_delay_ns=300 * MS, delay_ns=300 * MS, balance=-18, **full)
    waiting.peek(0, max_delay_ns=HOUR, delay_ns=2800 * MS, **full)
    waiting.check(0, max_delay_ns=HOUR, delay_ns=2800 * MS, balance=-43, **full)
    waiting.check(0, max_delay_ns=HOUR, delay_ns=4400 * MS)
    waiting.refund(0, cost=26)
    waiting.check(0, cost=25, allow_debt=True, max_delay_ns=2 * S, retry_after_ns=2800 * MS)

    dry = Sequence(
        "allow_debt_dry_run",
        "In dry run, a check may take a debt. It is never delayed or refused.",
        {**TEN, "dry_run": True},
    )
    dry.check(0, cost=25, allow_debt=True, granted=25, balance=-15, dry_run=False)
    dry.check(0, cost=25, allow_debt=True, granted=0, dry_run=True, retry_after_ns=2500 * MS)
    dry.check(0, max_delay_ns=3 * S, dry_run=True, delay_ns=0, retry_after_ns=2500 * MS, **full)

    charged = Sequence(
        "allow_debt_charge_refused",
        "A refused check that allows debt is charged its cost, but at most the burst.",
        {**ONE, "charge_refused": True},
    )
    charged.check(0, cost=12, allow_debt=True, allowed=True, balance=-2)
    charged.check(0, cost=12, allow_debt=True, allowed=False, balance=-12, retry_after_ns=22 * S)
    charged.check(0, cost=3, allow_debt=True, allowed=False, balance=-15, retry_after_ns=18 * S)
    return [above, within, most, partial, back, waiting, dry, charged]


def debts_of_several() -> list[Sequence]:
    each = Sequence(
        "allow_debt_two_rules",
        "Each rule needs the cost or its burst, whichever is less, and is charged the full cost.",
        TWO,
    )
    each.check(0, cost=4, allowed=True, balance=1)
    each.check(0, cost=8, allow_debt=True, rule="burst", retry_after_ns=400 * MS)
    each.check(400 * MS, cost=8, allow_debt=True, granted=8, balance=-3, limit=5)
    each.check(800 * MS, cost=0, allowed=True, limit=12, remaining=0)
    each.check(8 * S, cost=20, allow_debt=True, rule="slow", retry_after_ns=4 * S)
    each.check(12 * S, cost=20, allow_debt=True, granted=20, limit=5, balance=-15)
    each.peek(14 * S, cost=20, allow_debt=True, rule="slow", balance=-6, retry_after_ns=18 * S)
    each.refund(14 * S, cost=20)
    each.peek(14 * S, limit=5, balance=5)

    waiting = Sequence(
        "allow_debt_two_rules_max_delay",
        "The delay ends when every rule has the units that it needs.",
        TWO,
    )
    waiting.check(0, cost=5, allowed=True)
    both: dict[str, Any] = {"cost": 20, "allow_debt": True}
    waiting.check(0, max_delay_ns=5 * S - 1, rule="slow", retry_after_ns=5 * S, **both)
    waiting.check(0, max_delay_ns=5 * S, granted=20, delay_ns=5 * S, balance=-20, limit=5, **both)

    charged = Sequence(
        "allow_debt_two_rules_charge_refused",
        "A refusal charges at most the burst, and only to rules with charge_refused.",
        {
            "rules": [
                {"name": "strict", "rate": "1/s", "burst": 2, "charge_refused": True},
                {"name": "wide", "rate": "10/s", "burst": 6},
            ]
        },
    )
    charged.check(0, cost=2, allowed=True)
    charged.check(0, cost=5, allow_debt=True, rule="strict", balance=-2, retry_after_ns=4 * S)
    charged.check(4 * S, cost=7, allow_debt=True, granted=7, limit=2, balance=-5)
    charged.peek(4 * S, cost=7, allow_debt=True, rule="strict", retry_after_ns=7 * S)
    return [each, waiting, charged]
