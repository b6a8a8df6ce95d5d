"""`throttle.allow(tag)` against `hit(item, tag)` of `limits`: in memory and over Redis.

Both run in turns in this process, over lists of tags in a plain loop that is part of the figure.
"""

from __future__ import annotations

from report import SMALL, Rounds
from limiters import Limits, Ours, redis, redis_storage, stream, tag

ROUNDS, CALLS, REDIS_CALLS, MANY = (
    (1, 2_000, 100, 2_000) if SMALL else (7, 200_000, 10_000, 1_000_000)
)

# The same text for both. So that all pass, and so that buckets stay in use: one that is full again
# could be given away, and would be found by another path.
ONE_TAG = "100000000/day"
MANY_TAGS = "100/day"

Sides = dict[str, Ours | Limits]


def measure() -> Rounds:
    """Give nanoseconds a call."""
    with redis() as uri:
        hot: Sides = {
            "hot_ns": Ours(ONE_TAG),
            "limits_hot_ns": Limits(ONE_TAG),
            "limits_redis_ns": Limits(ONE_TAG, redis_storage(uri)),
        }
        times = _in_turns(hot, 1)
    many: Sides = {"1m_ns": Ours(MANY_TAGS), "limits_1m_ns": Limits(MANY_TAGS)}
    everyone = [tag(number) for number in range(MANY)]
    for side in many.values():
        side.time(everyone)
        side.check_nothing_refused()
    return {**times, **_in_turns(many, MANY)}


def _in_turns(sides: Sides, tags: int) -> Rounds:
    times: Rounds = {name: [] for name in sides}
    # The first round warms up and is not counted.
    for number in range(ROUNDS + 1):
        asked = stream(tags, CALLS, number)
        for name, side in sides.items():
            taken = side.time(asked[:REDIS_CALLS] if "redis" in name else asked)
            side.check_nothing_refused()
            if number:
                times[name].append(taken)
    return times
