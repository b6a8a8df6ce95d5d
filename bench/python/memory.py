"""Memory for a million tags, each side in a fresh process.

What the process has grown by, from before the first object is made; not the tags, of which only one
is there at a time. All of a shared table counts, touched or not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from report import SMALL, Rounds
from limiters import Limits, Ours, tag

TAGS = 10_000 if SMALL else 1_000_000
LIMIT = "100/day"


def measure() -> Rounds:
    """Give bytes a tag."""
    return {"tag_bytes": [_in_child("ours")], "limits_tag_bytes": [_in_child("limits")]}


def _in_child(side: str) -> float:
    done = subprocess.run([sys.executable, __file__, side], stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def _child(side: str) -> None:
    before = _bytes()
    if side == "ours":
        ours = Ours(LIMIT)
        for number in range(TAGS):
            ours.throttle.allow(tag(number))
        ours.check_nothing_refused()
    else:
        limits = Limits(LIMIT)
        for number in range(TAGS):
            limits.limiter.hit(limits.item, tag(number))
        limits.check_nothing_refused()
    print((_bytes() - before) / TAGS)


def _bytes() -> int:
    """Give what is private and resident, and the full size of what is shared."""
    total = 0
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("RssAnon", "RssFile"):
            total += int(value.split()[0]) * 1024
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, mode = line.split()[:2]
        if mode.endswith("s"):
            start, end = (int(part, 16) for part in span.split("-"))
            total += end - start
    return total


if __name__ == "__main__":
    _child(sys.argv[1])
