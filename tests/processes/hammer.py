"""Checks every tag a number of times in each round, like hammer.js and hammer.c.

python hammer.py FOLDER TAGS CHECKS: for each line of input, the name of a round, prints how often
each tag passed.
"""

from __future__ import annotations

import sys

from dthrottle import Throttle


def main(folder: str, tags: int, checks: int) -> None:
    """Run rounds until the input ends."""
    table = f"table = {{ name = 'hammer', dir = '{folder}', size = 1000 }}"
    throttle = Throttle.from_toml(f"rate = '1 per 100 years'\nburst = 1000\n{table}")
    print("ready", flush=True)
    for line in sys.stdin:
        passed = [0] * tags
        for check in range(checks):
            for tag in range(tags):
                name = f"{line.strip()} {tag}"
                passed[tag] += throttle.allow(name) if check % 2 else bool(throttle.check(name))
        print(*passed, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
