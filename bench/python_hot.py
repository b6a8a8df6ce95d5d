"""Prints the nanoseconds of one `throttle.allow(tag)` in Python for one tag.

The figure is the median of seven rounds of a million calls. It includes the lookup of the method,
but not the loop: an empty loop is timed in each round and subtracted.
"""

from __future__ import annotations

import os
import statistics
import timeit

from dthrottle import Throttle

ROUNDS = 7
CALLS = 10_000 if os.environ.get("BENCH_SMALL") else 1_000_000


def main() -> None:
    """Measure and print."""
    throttle = Throttle("1000000/s", burst=100_000_000)
    call = timeit.Timer("throttle.allow(tag)", globals={"throttle": throttle, "tag": "203.0.113.7"})
    empty = timeit.Timer("pass")
    call.timeit(CALLS)
    times = [call.timeit(CALLS) - empty.timeit(CALLS) for _ in range(ROUNDS)]
    # A refusal takes another code path.
    if throttle.stats().refused:
        raise SystemExit("a check was refused")
    print(f"{statistics.median(times) / CALLS * 1e9:.1f}")


if __name__ == "__main__":
    main()
