"""Measures the memory for a million tags, with each library in a new process.

The figure is the growth of the process. It does not include the tags, because only one exists at a
time. It includes the whole shared table, whether its pages are used or not.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from limiters import Limits, Ours, tag
from report import SMALL, Rounds

TAGS = 10_000 if SMALL else 1_000_000
LIMIT = "100/day"


def measure() -> Rounds:
    """Return bytes per tag."""
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
    """Return the resident private memory plus the full size of shared mappings."""
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
