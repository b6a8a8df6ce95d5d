"""Sequences on clocks with any epoch: a throttle counts time from its first reading."""

from __future__ import annotations

from rates import DAY, HOUR, MINUTE, YEAR, S
from sequence import Sequence

TODAY = 1_760_000_000 * S  # Unix time
EPOCHS = {
    "above_2_to_the_60_ns": (2**60 // S + 1) * S,
    "unix_time": TODAY,
    "99_years": 99 * YEAR,
}


def cases() -> list[Sequence]:
    return [*(epoch(name, start) for name, start in EPOCHS.items()), two_throttles(), charges()]


def epoch(name: str, start: int) -> Sequence:
    made = Sequence(
        f"epoch_{name}",
        "A clock may count from any epoch. The limit is the same as on a clock that starts at 0.",
        {"rate": "5/minute", "domains": {"fast": {"rate": "4/s", "burst": 4}}},
    )
    made.allow(start, True, repeat=5)
    made.allow(start, False, repeat=45)
    made.check(start, allowed=False, balance=0, retry_after_ns=12 * S, reset_after_ns=MINUTE)
    made.check(start, cost=4, domain="fast", allowed=True, balance=0)
    made.check(start, domain="fast", allowed=False, retry_after_ns=S // 4)
    made.check(start + 11 * S, allowed=False, retry_after_ns=S)
    made.check(start + 13 * S, allowed=True, balance=0)
    made.check(start + HOUR, cost=5, allowed=True, balance=0)
    made.check(start + HOUR, domain="fast", cost=4, allowed=True, balance=0)
    made.allow(start + HOUR, False, domain="fast")
    made.check(start + 300 * DAY, cost=5, allowed=True, balance=0)
    made.allow(start + 300 * DAY, False)
    return made


def two_throttles() -> Sequence:
    made = Sequence(
        "epoch_two_throttles_on_one_clock",
        "Each throttle counts time from its own first reading of a shared clock.",
        {"rate": "5/minute"},
        throttles="AB",
    )
    made.allow(0, True, on="A", repeat=5)
    made.allow(0, False, on="A")
    made.allow(TODAY, True, on="B", repeat=5)
    made.allow(TODAY, False, on="B", repeat=20)
    made.check(TODAY + 13 * S, on="B", allowed=True, balance=0)
    made.allow(TODAY + 13 * S, False, on="B")
    return made


def charges() -> Sequence:
    made = Sequence(
        "epoch_charge_local_before_the_first_reading",
        "Hits that are older than the throttle's first reading are charged from their own time.",
        {"rate": "10/day"},
    )
    made.charge_local(TODAY, 15, 8 * HOUR)
    made.check(TODAY, cost=0, allowed=False, balance=-2)
    made.charge_local(TODAY, 15, 20 * DAY, "old")
    made.check(TODAY, "old", cost=10, allowed=True, balance=0)
    return made
