"""Sequences on calls that change a bucket without a check: refund, reset, charge_local."""

from __future__ import annotations

from rates import DAY, MS, S
from sequence import Sequence

ONE = {"rate": "1/s", "burst": 10}
TEN = {"rate": "10/s", "burst": 10}


def cases() -> list[Sequence]:
    return [*refunds(), *charges()]


def refunds() -> list[Sequence]:
    refund = Sequence(
        "refund_gives_back",
        "After a refund the bucket is as if the units had not been taken.",
        TEN,
    )
    refund.check(0, cost=10, allowed=True)
    refund.refund(0)
    refund.peek(0, balance=1, reset_after_ns=900 * MS)
    refund.refund(0, cost=4)
    refund.check(0, cost=5, allowed=True, balance=0)
    refund.check(0, allowed=False, retry_after_ns=100 * MS)
    refund.refund(50 * MS, cost=2)
    refund.peek(50 * MS, balance=2, reset_after_ns=750 * MS)

    full = Sequence(
        "refund_never_above_burst",
        "A refund never fills a bucket above its burst. The cost of a refund has no limit.",
        TEN,
    )
    full.refund(0, "new", cost=100)
    full.check(0, "new", cost=10, allowed=True, balance=0)
    full.check(0, "new", allowed=False)
    full.check(0, cost=3, allowed=True, balance=7)
    full.refund(0, cost=50)
    full.peek(0, balance=10, reset_after_ns=0)
    full.check(0, cost=10, allowed=True, balance=0)
    full.refund(0, cost=2**40)
    full.peek(0, balance=10)
    full.allow(0, True, repeat=10)
    full.allow(0, False)

    owed = Sequence("refund_pays_debt", "A refund also pays the debt of a bucket.", TEN)
    owed.charge_local(0, 15, 0)
    owed.peek(0, balance=-5, reset_after_ns=1500 * MS)
    owed.refund(0, cost=3)
    owed.peek(0, balance=-2)
    owed.refund(0, cost=3)
    owed.check(0, allowed=True, balance=0)

    reset = Sequence(
        "reset_fills",
        "A reset fills the bucket of its tag, even if it is in debt, and no other bucket.",
        TEN,
    )
    reset.reset(0, "new")
    reset.peek(0, "new", balance=10)
    reset.check(0, cost=10, allowed=True)
    reset.check(0, "other", cost=6, balance=4)
    reset.reset(0)
    reset.peek(0, balance=10, reset_after_ns=0)
    reset.peek(0, "other", balance=4)
    reset.charge_local(S, 500, 0)
    reset.peek(S, balance=-490)
    reset.reset(S)
    reset.check(S, cost=10, allowed=True, balance=0)
    reset.check(S, allowed=False, retry_after_ns=100 * MS)
    return [refund, full, owed, reset]


def charges() -> list[Sequence]:
    debt = Sequence(
        "charge_local_into_debt",
        "A local charge is never refused, and can lower the balance below 0 without a limit.",
        TEN,
    )
    debt.charge_local(0, 4, 0)
    debt.peek(0, balance=6, remaining=6)
    debt.charge_local(0, 10, 0)
    debt.check(0, allowed=False, balance=-4, remaining=0, retry_after_ns=500 * MS)
    debt.charge_local(0, 1000, 0)
    debt.check(0, allowed=False, balance=-1004, retry_after_ns=100 * S + 500 * MS)
    debt.check(100 * S + 500 * MS - 1, allowed=False, balance=0, retry_after_ns=1)
    debt.check(100 * S + 500 * MS, allowed=True, balance=0)

    lost = Sequence(
        "charge_local_age_lost_to_full_bucket",
        "Hits of 5 s ago are charged to a bucket that was full then and has refilled for 5 s.",
        ONE,
    )
    lost.charge_local(5 * S, 8, 5 * S, "some left")
    lost.peek(5 * S, "some left", balance=7, reset_after_ns=3 * S)
    lost.charge_local(5 * S, 3, 5 * S, "all refilled")
    lost.peek(5 * S, "all refilled", balance=10, reset_after_ns=0)
    lost.charge_local(5 * S, 5, 5 * S, "just refilled")
    lost.peek(5 * S, "just refilled", balance=10, reset_after_ns=0)
    lost.charge_local(5 * S, 8, 0, "no age")
    lost.peek(5 * S, "no age", balance=2, reset_after_ns=8 * S)
    lost.charge_local(5 * S, 8, 5 * S - 1, "an ns younger")
    lost.peek(5 * S, "an ns younger", balance=6, reset_after_ns=3 * S + 1)

    past = Sequence(
        "charge_local_age_after_use",
        "Hits that are older than the last check are added to the current TAT.",
        ONE,
    )
    past.check(0, cost=3, allowed=True)
    past.charge_local(5 * S, 8, 5 * S)
    past.peek(5 * S, balance=4, reset_after_ns=6 * S)
    past.charge_local(6 * S, 2, 6 * S)
    past.peek(6 * S, balance=3, reset_after_ns=7 * S)

    huge = Sequence(
        "charge_local_huge",
        "After a local charge of 10^15 units the tag stays refused; other tags are not affected.",
        ONE,
    )
    huge.charge_local(0, 10**15, 0)
    for at in (0, S, 30 * DAY):
        huge.allow(at, False)
        huge.check(at, "other", allowed=True)
    huge.reset(30 * DAY)
    huge.check(30 * DAY, allowed=True, balance=9)
    return [debt, lost, past, huge]
