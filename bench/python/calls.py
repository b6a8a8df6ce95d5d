"""Compares `throttle.allow(tag)` with `hit(item, tag)` of `limits`, in memory and with Redis.

Both run alternately in this process, over lists of tags. The figures include the loop.
"""

from __future__ import annotations

from limiters import Limits, Ours, redis, redis_storage, stream, tag
from report import SMALL, Rounds

ROUNDS, CALLS, REDIS_CALLS, MANY = (
    (1, 2_000, 100, 2_000) if SMALL else (7, 200_000, 10_000, 1_000_000)
)

# Limits for both libraries. No check is refused, and no bucket becomes full again, because the slot
# of a full bucket can be reused.
ONE_TAG = "100000000/day"
MANY_TAGS = "100/day"

Sides = dict[str, Ours | Limits]


def measure() -> Rounds:
    """Return nanoseconds per call."""
    with redis() as uri:
        hot: Sides = {
            "hot_ns": Ours(ONE_TAG),
            "limits_hot_ns": Limits(ONE_TAG),
            "limits_redis_ns": Limits(ONE_TAG, redis_storage(uri)),
        }
        times = _alternate(hot, 1)
    many: Sides = {"1m_ns": Ours(MANY_TAGS), "limits_1m_ns": Limits(MANY_TAGS)}
    all_tags = [tag(number) for number in range(MANY)]
    for side in many.values():
        side.time(all_tags)
        side.check_nothing_refused()
    return {**times, **_alternate(many, MANY)}


def _alternate(sides: Sides, tags: int) -> Rounds:
    times: Rounds = {name: [] for name in sides}
    # The first round warms up and is not counted.
    for number in range(ROUNDS + 1):
        checked = stream(tags, CALLS, number)
        for name, side in sides.items():
            taken = side.time(checked[:REDIS_CALLS] if "redis" in name else checked)
            side.check_nothing_refused()
            if number:
                times[name].append(taken)
    return times
