"""Sequences on rates from one a year to one a nanosecond, and on bursts."""

from __future__ import annotations

from rates import DAY, HOUR, MINUTE, MS, YEAR, S
from sequence import Sequence


def cases() -> list[Sequence]:
    return [*fast(), *uneven(), *slow(), *bursts()]


def fast() -> list[Sequence]:
    single = Sequence(
        "rate_10_million_burst_1",
        "At ten million a second, one unit passes every 100 ns, exact to the nanosecond.",
        {"rate": "10000000/s", "burst": 1},
    )
    for turn in range(6):
        if turn:
            single.check(turn * 100 - 1, allowed=False, retry_after_ns=1)
        single.check(turn * 100, allowed=True, reset_after_ns=100)
        single.check(turn * 100 + 1, allowed=False, retry_after_ns=99)

    burst = Sequence(
        "rate_10_million_burst_1000",
        "At ten million a second with a burst, one unit refills every 100 ns.",
        {"rate": "10000000/s", "burst": 1000},
    )
    burst.allow(0, True, repeat=1000)
    burst.check(0, allowed=False, retry_after_ns=100, reset_after_ns=100_000)
    for start in (0, 100_300, 100 * MS, DAY):
        if start:
            burst.check(start, cost=1000, allowed=True, balance=0, reset_after_ns=100_000)
        burst.check(start + 99, allowed=False, retry_after_ns=1)
        burst.check(start + 100, allowed=True, balance=0)
        burst.check(start + 250, cost=2, allowed=False, retry_after_ns=50, balance=1)
        burst.check(start + 300, cost=2, allowed=True, balance=0)

    fastest = Sequence(
        "rate_fastest",
        "At a billion a second, one unit refills every nanosecond.",
        {"rate": "1000000000/s", "burst": 5},
    )
    fastest.check(0, cost=5, allowed=True, reset_after_ns=5)
    fastest.check(0, allowed=False, retry_after_ns=1)
    fastest.check(1, allowed=True, balance=0)
    fastest.check(1, cost=3, allowed=False, retry_after_ns=3)
    fastest.check(3, cost=3, allowed=False, retry_after_ns=1, balance=2)
    fastest.check(4, cost=3, allowed=True, balance=0)
    fastest.charge_local(4, 10**9, 0)
    fastest.check(4, allowed=False, balance=-(10**9), retry_after_ns=10**9 + 1)
    fastest.check(S + 4, cost=0, allowed=True, balance=0)

    quarters = Sequence(
        "rate_quarter_nanoseconds",
        "One unit refills every 1.25 ns. Times are rounded up, but the bucket keeps fractions.",
        {"rate": "800000000/s", "burst": 2},
    )
    quarters.check(0, cost=2, allowed=True, reset_after_ns=3)
    quarters.check(0, allowed=False, retry_after_ns=2, reset_after_ns=3)
    quarters.check(1, allowed=False, retry_after_ns=1, reset_after_ns=2)
    quarters.check(2, allowed=True, balance=0, reset_after_ns=2)
    quarters.check(2, allowed=False, retry_after_ns=1)
    quarters.check(3, allowed=True, balance=0)
    quarters.check(4, allowed=True, balance=0)
    quarters.check(4, allowed=False, retry_after_ns=1)
    quarters.check(5, allowed=True, balance=0, reset_after_ns=3)
    return [single, burst, fastest, quarters]


def uneven() -> list[Sequence]:
    prime = Sequence(
        "rate_9999991",
        "T is not a whole number of nanoseconds, but after 100 s no unit is lost.",
        {"rate": "9999991/s", "burst": 1_000_000_000},
    )
    prime.check(0, cost=1_000_000_000, allowed=True, balance=0)
    prime.check(0, allowed=False, retry_after_ns=101)
    prime.check(90, allowed=False, retry_after_ns=11)
    prime.check(111, allowed=True, balance=0)
    for second in (1, 10, 100):
        taken = 1 if second == 1 else second // 10 * 9_999_991
        due = second * 9_999_991 - taken
        prime.check(second * S - 10, cost=due, allowed=False, retry_after_ns=10)
        prime.check(second * S + 10, cost=due, allowed=True, balance=0)
        prime.check(second * S + 10, allowed=False, retry_after_ns=91)

    third = Sequence(
        "rate_3_per_second",
        "At three a second, T is 333333333.3 ns. The fractions do not add up to an error.",
        {"rate": "3/s", "burst": 3},
    )
    third.check(0, cost=3, allowed=True, reset_after_ns=S)
    third.check(0, allowed=False, retry_after_ns=333_333_334)
    for turn in range(1, 8):
        edge = turn * S // 3
        third.check(edge - 10, allowed=False, balance=0)
        third.check(edge + 11, allowed=True, balance=0)

    long_run = Sequence(
        "rate_3_per_second_long_run",
        "At three a second, exactly 300,000 units refill in 100,000 seconds.",
        {"rate": "3/s", "burst": 300_001},
    )
    long_run.check(0, cost=300_001, allowed=True, balance=0)
    long_run.check(100_000 * S - 10, cost=300_000, allowed=False, retry_after_ns=10)
    long_run.check(100_000 * S + 10, cost=300_000, allowed=True, balance=0)
    long_run.check(100_000 * S + 10, allowed=False, retry_after_ns=333_333_324)

    hourly = Sequence(
        "rate_7_per_hour",
        "At seven an hour, the edges of a bucket that stays empty are exact after 200 hours.",
        {"rate": "7/hour", "burst": 8},
    )
    hourly.check(0, cost=8, allowed=True, balance=0)
    hourly.check(0, allowed=False, retry_after_ns=514_285_714_286)
    for hour in (1, 2, 3):
        hourly.check(hour * HOUR - 10, cost=7, allowed=False, retry_after_ns=10)
        hourly.check(hour * HOUR + 10, cost=7, allowed=True, balance=0)
    hourly.charge_local(3 * HOUR + 10, 197 * 7, 0)
    hourly.check(200 * HOUR - 10, cost=0, allowed=False, balance=-1, retry_after_ns=10)
    hourly.check(200 * HOUR + 10, cost=0, allowed=True, balance=0)
    hourly.check(200 * HOUR + 10, allowed=False, retry_after_ns=514_285_714_276)
    return [prime, third, long_run, hourly]


def slow() -> list[Sequence]:
    single = Sequence(
        "rate_1_per_year_burst_1",
        "At one a year with burst 1, the second unit is refused for a year.",
        {"rate": "1/year", "burst": 1},
    )
    single.check(0, allowed=True, reset_after_ns=YEAR)
    single.check(0, allowed=False, retry_after_ns=YEAR)
    single.check(DAY, allowed=False, retry_after_ns=364 * DAY)
    single.check(YEAR - S, allowed=False, retry_after_ns=S)
    single.check(YEAR + S, allowed=True, balance=0)
    single.check(YEAR + 100 * DAY, allowed=False, balance=0)

    three = Sequence(
        "rate_1_per_year_burst_3",
        "Three units pass at once, then one a year. After ten years, three pass at once again.",
        {"rate": "1/year", "burst": 3},
    )
    three.allow(0, True, repeat=3)
    three.check(0, allowed=False, retry_after_ns=YEAR, reset_after_ns=3 * YEAR)
    for year in (1, 2):
        three.check(year * YEAR - S, allowed=False, retry_after_ns=S)
        three.check(year * YEAR + S, allowed=True, balance=0)
    three.check(10 * YEAR, cost=3, allowed=True, balance=0)
    three.check(10 * YEAR, allowed=False, retry_after_ns=YEAR)

    million = Sequence(
        "rate_1_per_day_burst_million",
        "The bucket of a slow rate with a burst of a million takes 2,700 years to fill.",
        {"rate": "1/day", "burst": 1_000_000},
    )
    million.check(0, cost=1_000_000, allowed=True, balance=0)
    million.check(0, allowed=False, retry_after_ns=DAY)
    million.check(DAY - 10, allowed=False, retry_after_ns=10)
    million.check(DAY + 10, allowed=True, balance=0)
    million.check(5 * DAY - 10, cost=4, allowed=False, balance=3, retry_after_ns=10)
    million.check(5 * DAY + 10, cost=4, allowed=True, balance=0)
    million.refund(5 * DAY + 10, cost=999_999)
    million.peek(5 * DAY + 10, balance=999_999)
    return [single, three, million]


def bursts() -> list[Sequence]:
    default = Sequence(
        "burst_by_default",
        "The default burst is the count of the rate, rounded up.",
        {
            "rate": "5 per 2 minutes",
            "domains": {
                "half": {"rate": "0.5/s"},
                "two and a half": {"rate": "2.5/s"},
                "number": {"rate": 4},
                "decimal": {"rate": 0.25},
            },
        },
    )
    default.check(0, cost=5, allowed=True, limit=5, reset_after_ns=2 * MINUTE)
    default.check(24 * S - 1, allowed=False, retry_after_ns=1)
    default.check(24 * S, allowed=True)
    default.check(24 * S, domain="half", allowed=True, limit=1, reset_after_ns=2 * S)
    default.check(24 * S, domain="two and a half", cost=3, limit=3, reset_after_ns=1200 * MS)
    default.check(24 * S, domain="number", cost=4, limit=4, reset_after_ns=S)
    default.check(24 * S, domain="decimal", limit=1, reset_after_ns=4 * S)
    default.check(28 * S - 1, domain="decimal", allowed=False, retry_after_ns=1)
    default.check(28 * S, domain="decimal", allowed=True)

    duration = Sequence(
        "burst_as_duration",
        "A burst given as a duration is the number of units that refill in it, rounded down.",
        {
            "rate": "100/s",
            "burst": "250ms",
            "domains": {
                "thirds": {"rate": "3/s", "burst": "1s"},
                "down": {"rate": "1.5/s", "burst": "1 second"},
                "sevenths": {"rate": "7/hour", "burst": "1 day"},
                "long": {"rate": "10/s", "burst": "2 minutes"},
            },
        },
    )
    duration.check(0, cost=25, allowed=True, limit=25, balance=0, reset_after_ns=250 * MS)
    duration.fails("cost", "check", 0, cost=26)
    duration.check(10 * MS - 1, allowed=False, retry_after_ns=1)
    duration.check(10 * MS, allowed=True)
    duration.peek(10 * MS, domain="thirds", limit=3)
    duration.peek(10 * MS, domain="down", limit=1)
    duration.peek(10 * MS, domain="sevenths", limit=168)
    duration.check(10 * MS, domain="long", cost=1200, limit=1200, reset_after_ns=120 * S)
    return [default, duration]
