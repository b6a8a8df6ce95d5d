"""Prints the nanoseconds of one `throttle.allow(tag)` from Python, on one hot tag.

Median of seven rounds of a million calls. Included: everything from the look-up of the method to
the answer. Not included: the loop around it, which is timed empty in each round and subtracted.
"""

from __future__ import annotations

import os
import statistics
import timeit

from dthrottle import Throttle

ROUNDS = 7
CALLS = 10_000 if os.environ.get("BENCH_SMALL") else 1_000_000


def main() -> None:
    """Measure."""
    throttle = Throttle("1000000/s", burst=100_000_000)
    call = timeit.Timer("throttle.allow(tag)", globals={"throttle": throttle, "tag": "203.0.113.7"})
    empty = timeit.Timer("pass")
    call.timeit(CALLS)
    times = [call.timeit(CALLS) - empty.timeit(CALLS) for _ in range(ROUNDS)]
    # A refusal is another path.
    if throttle.stats().refused:
        raise SystemExit("not all were admitted")
    print(f"{statistics.median(times) / CALLS * 1e9:.1f}")


if __name__ == "__main__":
    main()
