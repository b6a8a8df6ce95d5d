"""Computes figures and ratios from measurements, and prints them with their targets."""

from __future__ import annotations

import os
import statistics
from typing import NamedTuple

SMALL = bool(os.environ.get("BENCH_SMALL"))
"""Whether this is a short run of each part, which only checks that it works."""

Rounds = dict[str, list[float]]
"""The figures of each round, by name."""

Figures = dict[str, float]


class Line(NamedTuple):
    """A ratio of two figures."""

    name: str
    text: str
    above: str
    below: str
    unit: str
    target: float | None = None
    """The ratio to reach, if there is a target."""
    at_most: bool = False
    """Whether the target is a maximum."""


LINES = (
    Line("limits_hot", "allow, 1 tag: limits / ours", "limits_hot_ns", "hot_ns", "ns", 40),
    Line("limits_1m", "allow, 1 million tags: limits / ours", "limits_1m_ns", "1m_ns", "ns", 40),
    Line("limits_redis", "allow: limits on Redis / ours", "limits_redis_ns", "hot_ns", "ns", 500),
    Line(
        "memory", "memory a tag: limits / ours", "limits_tag_bytes", "tag_bytes", "bytes", 10
    ),
    Line("flask_cpu", "Flask: with ours / bare", "flask_us", "flask_bare_us", "us CPU", 1.06, True),
    Line(
        "flask_cpu_limiter",
        "Flask: with Flask-Limiter in memory / bare",
        "flask_limiter_memory_us",
        "flask_bare_us",
        "us CPU",
    ),
    Line(
        "flask_cpu_limiter_redis",
        "Flask: with Flask-Limiter on Redis / bare",
        "flask_limiter_redis_us",
        "flask_bare_us",
        "us CPU",
    ),
    Line(
        "flask_instructions",
        "Flask without a server: with ours / bare",
        "flask_instructions",
        "flask_bare_instructions",
        "instructions",
    ),
)  # fmt: skip


def show(rounds: Rounds) -> tuple[Figures, Figures]:
    """Print a line for each measured ratio; return ratios and figures, which are medians.

    Ratios are computed within a round, because a disturbance affects both of its measurements.
    """
    figures = {name: statistics.median(taken) for name, taken in rounds.items()}
    ratios: Figures = {}
    for line in LINES:
        if line.above not in rounds or line.below not in rounds:
            continue
        pairs = zip(rounds[line.above], rounds[line.below], strict=True)
        ratio = statistics.median(above / below for above, below in pairs)
        ratios[line.name] = round(ratio, 3)
        print(
            f"{line.text:<44} {figures[line.above]:>9,.0f} / {figures[line.below]:>7,.0f} "
            f"{line.unit:<12} {ratio:>8.2f}x  {_verdict(line, ratio)}".rstrip()
        )
    return ratios, {name: round(figure, 1) for name, figure in figures.items()}


def _verdict(line: Line, ratio: float) -> str:
    if line.target is None or SMALL:
        return ""
    bound = "at most" if line.at_most else "at least"
    reached = ratio <= line.target if line.at_most else ratio >= line.target
    return f"{bound} {line.target:g}: {'reached' if reached else 'MISSED'}"
