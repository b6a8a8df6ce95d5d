"""Sequences on one bucket: examples from documents of other projects, edges and costs."""

from __future__ import annotations

from rates import DAY, HOUR, MS, S
from sequence import Sequence

ONE = {"rate": "1/s", "burst": 10}  # the rule of the DThrottle and Smockron documents
TEN = {"rate": "10/s", "burst": 10}


def cases() -> list[Sequence]:
    return [*documents(), *edges(), *costs()]


def documents() -> list[Sequence]:
    worked = Sequence(
        "dthrottle_worked_example",
        "The worked example of the DThrottle document, with its nodes A and B and its client C.",
        ONE,
        throttles="AB",
    )
    for node in "AB":
        worked.peek(0, "C", on=node, balance=10)
    worked.check(0, "C", on="A", repeat=9, allowed=True)
    worked.peek(0, "C", on="A", balance=1)
    worked.check(0, "C", on="B", repeat=8, allowed=True)
    worked.peek(0, "C", on="B", balance=2)
    worked.check(0, "C", on="A", allowed=True, balance=0)
    worked.check(0, "C", on="A", allowed=False, balance=0, retry_after_ns=S)
    worked.charge_local(5 * S, 8, 5 * S, "C", on="A")
    worked.charge_local(5 * S, 10, 5 * S, "C", on="B")
    for node in "AB":
        worked.peek(5 * S, "C", on=node, balance=-3)
    for node in "AB":
        worked.check(5 * S, "C", on=node, allowed=False, balance=-3, retry_after_ns=4 * S)
    for second, balance in ((6, -2), (7, -1), (8, 0), (9, 1)):
        for node in "AB":
            worked.peek(second * S, "C", on=node, balance=balance)
    for node in "AB":
        worked.check(9 * S, "C", on=node, allowed=True, balance=0)
        worked.check(9 * S, "C", on=node, allowed=False, retry_after_ns=S)

    smockron = Sequence(
        "smockron_eleventh",
        "At 1/s with burst 10, ten checks pass at once and the 11th waits 1 s, as in Smockron.",
        ONE,
    )
    for left in range(9, -1, -1):
        smockron.check(0, allowed=True, remaining=left, retry_after_ns=0)
    smockron.check(0, allowed=False, retry_after_ns=S)
    smockron.check(0, max_delay_ns=5 * S, allowed=True, delay_ns=S)
    smockron.check(0, max_delay_ns=5 * S, allowed=True, delay_ns=2 * S)
    return [worked, smockron]


def edges() -> list[Sequence]:
    single = Sequence(
        "edge_burst_one",
        "With burst 1 the second unit passes exactly T after the first, not 1 ns sooner.",
        {"rate": "1/s", "burst": 1},
    )
    for second in range(4):
        if second:
            single.check(second * S - 1, allowed=False, retry_after_ns=1)
        single.check(second * S, allowed=True, reset_after_ns=S)
        single.check(second * S, allowed=False, retry_after_ns=S)

    sliding = Sequence(
        "edge_is_not_a_window",
        "A late check moves the next edge, because the interval starts at that check.",
        {"rate": "1/s", "burst": 1},
    )
    sliding.check(0, allowed=True)
    sliding.check(1500 * MS, allowed=True)
    sliding.check(2 * S, allowed=False, retry_after_ns=500 * MS)
    sliding.check(2500 * MS - 1, allowed=False, retry_after_ns=1)
    sliding.check(2500 * MS, allowed=True)
    sliding.check(7 * S + 1, allowed=True)
    sliding.check(8 * S, allowed=False, retry_after_ns=1)
    sliding.check(8 * S + 1, allowed=True)

    steady = Sequence(
        "burst_then_steady",
        "After the burst, one unit passes every T and is refused 1 ns earlier.",
        {"rate": "10/s", "burst": 5},
    )
    steady.allow(0, True, repeat=5)
    steady.allow(0, False, repeat=3)
    for turn in range(1, 7):
        steady.check(turn * 100 * MS - 1, allowed=False, retry_after_ns=1)
        steady.check(turn * 100 * MS, allowed=True, remaining=0, reset_after_ns=500 * MS)
        steady.check(turn * 100 * MS, allowed=False, retry_after_ns=100 * MS)

    capped = Sequence(
        "idle_refill_is_capped",
        "After any idle time, a bucket holds at most the burst.",
        {"rate": "10/s", "burst": 5},
    )
    for start in (0, HOUR, DAY, 9 * DAY):
        capped.peek(start, balance=5, reset_after_ns=0)
        capped.allow(start, True, repeat=5)
        capped.check(start, allowed=False, retry_after_ns=100 * MS)
    capped.peek(9 * DAY + 500 * MS - 1, balance=4, reset_after_ns=1)
    capped.peek(9 * DAY + 500 * MS, balance=5, reset_after_ns=0)

    floors = Sequence(
        "balance_is_rounded_down",
        "The balance counts whole units, and rises exactly when the next unit is complete.",
        {"rate": "4/s", "burst": 4},
    )
    floors.check(0, cost=4, allowed=True, balance=0)
    for unit in range(1, 5):
        floors.peek(unit * 250 * MS - 1, balance=unit - 1)
        floors.peek(unit * 250 * MS, balance=unit)

    free = Sequence(
        "refusals_are_free",
        "A thousand refused checks do not delay the next allowed check.",
        {"rate": "1/s", "burst": 1},
    )
    free.allow(0, True)
    free.allow(0, False, repeat=500)
    free.allow(S - 1, False, repeat=500)
    free.check(S, allowed=True)

    peeks = Sequence(
        "peek_takes_nothing",
        "A peek returns the decision of a check and does not change the bucket.",
        {"rate": "1/s", "burst": 2},
    )
    peeks.peek(0, repeat=50, allowed=True, granted=1, balance=2, reset_after_ns=0)
    peeks.peek(0, cost=2, allowed=True, granted=2, balance=2)
    peeks.check(0, cost=2, allowed=True, balance=0)
    peeks.peek(0, repeat=50, allowed=False, granted=0, retry_after_ns=S, reset_after_ns=2 * S)
    peeks.peek(S - 1, allowed=False, retry_after_ns=1, balance=0)
    peeks.peek(S, allowed=True, granted=1, balance=1, reset_after_ns=S)
    peeks.check(S, allowed=True, balance=0)
    return [single, sliding, steady, capped, floors, free, peeks]


def costs() -> list[Sequence]:
    several = Sequence(
        "cost_above_one",
        "A check takes its whole cost or nothing. retry_after is the wait for the whole cost.",
        TEN,
    )
    several.check(0, cost=4, allowed=True, balance=6)
    several.check(0, cost=4, allowed=True, balance=2)
    several.check(0, cost=4, allowed=False, balance=2, retry_after_ns=200 * MS)
    several.check(0, cost=2, allowed=True, balance=0)
    several.check(400 * MS - 1, cost=4, allowed=False, retry_after_ns=1, balance=3)
    several.check(400 * MS, cost=4, allowed=True, balance=0)
    several.check(400 * MS, cost=10, allowed=False, retry_after_ns=S)
    several.check(1400 * MS - 1, cost=10, allowed=False, retry_after_ns=1)
    several.check(1400 * MS, cost=10, allowed=True, balance=0)

    mixed = Sequence(
        "allow_with_cost",
        "allow takes a cost as check does.",
        TEN,
    )
    mixed.allow(0, True, cost=7)
    mixed.allow(0, False, cost=4)
    mixed.allow(0, True, cost=3)
    mixed.allow(300 * MS - 1, False, cost=3)
    mixed.allow(300 * MS, True, cost=3)

    zero = Sequence(
        "cost_zero",
        "A check of cost 0 takes nothing and passes, even on an empty bucket.",
        TEN,
    )
    zero.check(0, cost=0, allowed=True, granted=0, balance=10, reset_after_ns=0)
    zero.allow(0, True, cost=0, repeat=20)
    zero.check(0, cost=10, allowed=True)
    zero.check(0, cost=0, allowed=True, granted=0, balance=0, reset_after_ns=S)
    zero.check(0, allowed=False, retry_after_ns=100 * MS)

    debt = Sequence(
        "cost_zero_in_debt",
        "A check of cost 0 is refused until the debt is paid, exact to the nanosecond.",
        TEN,
    )
    debt.charge_local(0, 12, 0)
    debt.check(0, cost=0, allowed=False, granted=0, balance=-2, retry_after_ns=200 * MS)
    debt.check(200 * MS - 1, cost=0, allowed=False, balance=-1, retry_after_ns=1)
    debt.check(200 * MS, cost=0, allowed=True, balance=0)
    debt.check(200 * MS, allowed=False, retry_after_ns=100 * MS)

    above = Sequence(
        "cost_above_burst",
        "A cost above the burst is an error, even with max_delay, and takes nothing.",
        TEN,
    )
    for call in ("check", "peek", "allow"):
        above.fails("cost", call, 0, cost=11)
    for call in ("check", "peek"):
        above.fails("cost", call, 0, cost=11, max_delay_ns=HOUR)
    above.peek(0, balance=10, reset_after_ns=0)
    above.check(0, cost=10, allowed=True, balance=0)
    above.fails("cost", "check", 0, cost=2**40)
    above.check(S, cost=10, allowed=True)

    enough = Sequence(
        "retry_after_is_enough",
        "A check passes after retry_after, and is refused 1 ns earlier, for several costs.",
        {"rate": "8/s", "burst": 8},
    )
    enough.check(0, cost=8, allowed=True)
    now = 0
    for cost in (1, 3, 8, 2):
        wait = cost * 125 * MS
        enough.check(now, cost=cost, allowed=False, retry_after_ns=wait)
        enough.check(now + wait - 1, cost=cost, allowed=False, retry_after_ns=1)
        enough.check(now + wait, cost=cost, allowed=True, balance=0)
        now += wait
    return [several, mixed, zero, debt, above, enough]
