"""`throttle.allow(tag)` against `hit(item, tag)` of `limits`: in memory and over Redis.

Both run in turns in this process, over lists of tags in a plain loop that is part of the figure.
"""

from __future__ import annotations

import statistics

from report import Figures
from rivals import Limits, Ours, redis, redis_storage, stream, tag

ROUNDS = 7
CALLS = 200_000
REDIS_CALLS = 10_000
MANY = 1_000_000

# The same text for both. So that all pass, and so that buckets stay in use: one that is full again
# could be given away, and would be found by another path.
ONE_TAG = "100000000/day"
MANY_TAGS = "100/day"


def measure() -> Figures:
    """Give nanoseconds a call."""
    hot, limits_hot = _in_turns(Ours(ONE_TAG), Limits(ONE_TAG), 1, CALLS)
    with redis() as uri:
        limits_redis = _over_redis(Limits(ONE_TAG, redis_storage(uri)))
    ours, limits = Ours(MANY_TAGS), Limits(MANY_TAGS)
    everyone = [tag(number) for number in range(MANY)]
    for one in (ours, limits):
        one.time(everyone)
        one.settle()
    many, limits_many = _in_turns(ours, limits, MANY, CALLS)
    return {
        "hot_ns": hot,
        "limits_hot_ns": limits_hot,
        "limits_redis_ns": limits_redis,
        "1m_ns": many,
        "limits_1m_ns": limits_many,
    }


def _in_turns(ours: Ours, limits: Limits, tags: int, count: int) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    # The first round warms up and is not counted.
    for number in range(ROUNDS + 1):
        asked = stream(tags, count, number)
        for one, taken in zip((ours, limits), times, strict=True):
            taken.append(one.time(asked))
            one.settle()
    return statistics.median(times[0][1:]), statistics.median(times[1][1:])


def _over_redis(limits: Limits) -> float:
    asked = stream(1, REDIS_CALLS, 0)
    times = [limits.time(asked) for _ in range(ROUNDS + 1)]
    limits.settle()
    return statistics.median(times[1:])
