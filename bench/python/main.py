"""Compares dthrottle with `limits` and Flask-Limiter.

Prints a table and writes `bench/out/python.json`. Arguments select parts (calls, memory, flask,
instructions); then no file is written.

On a busy machine times vary. The ratio of two alternating measurements varies less.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import calls
import instructions
import memory
import servers
from report import SMALL, Rounds, show

OUT = Path("target/bench/small" if SMALL else "bench/out") / "python.json"

PARTS: dict[str, Callable[[], Rounds]] = {
    "calls": calls.measure,
    "memory": memory.measure,
    "flask": servers.measure,
    "instructions": instructions.measure,
}


def main(wanted: list[str]) -> None:
    """Measure the given parts, or all parts."""
    unknown = set(wanted) - set(PARTS)
    if unknown:
        raise SystemExit(f"unknown parts {', '.join(unknown)}; known parts are {', '.join(PARTS)}")
    load = [round(part, 2) for part in os.getloadavg()]
    print(f"load average at the start {load[0]}, {os.cpu_count()} cores")
    rounds: Rounds = {}
    for name, measure in PARTS.items():
        if not wanted or name in wanted:
            print(f"measuring: {name}", file=sys.stderr)
            rounds.update(measure())
    ratios, figures = show(rounds)
    if wanted:
        return
    report = {"ratios": ratios, "figures": figures, "load_average": load}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written: {OUT}")


if __name__ == "__main__":
    main(sys.argv[1:])
