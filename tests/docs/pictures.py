"""Draws the pictures of the README from docs/figures/, as SVG for light and dark backgrounds."""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

Figures = dict[str, Any]

STYLE = """<style>
 text { font: 13px system-ui, sans-serif; fill: #24292f }
 .title { font-size: 15px; font-weight: 600 } .strong { font-weight: 600 } .soft { fill: #57606a }
 .end { text-anchor: end } .middle { text-anchor: middle } line { stroke-width: 2 }
 .grid { stroke: #d0d7de; stroke-width: 1 } .ours { fill: #0969da; stroke: #0969da }
 .theirs { fill: #6e7781; stroke: #6e7781 } path { fill: none; stroke-width: 2.5 }
 .shared { stroke: #0969da } .alone { stroke: #cf222e }
 .limit { stroke: #57606a; stroke-dasharray: 5 4; stroke-width: 1.5 }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #3d444d }
  .ours { fill: #4493f8; stroke: #4493f8 } .theirs { fill: #9198a1; stroke: #9198a1 }
  .shared { stroke: #4493f8 } .alone { stroke: #f85149 } .limit { stroke: #9198a1 }
 }
</style>"""


def speed(figures: dict[str, Figures]) -> str:
    """Draw the time per decision of dthrottle and of the libraries that it replaces."""
    core, python = figures["core"]["figures"], figures["python"]["figures"]
    node = {row["name"]: row for row in figures["node"]["figures"]}
    # One group for each language: label, nanoseconds, whether it is dthrottle.
    groups = {
        "Rust": [
            ("dthrottle", core["hot_ns"], True),
            ("governor", core["governor_hot_ns"], False),
        ],
        "Node": [
            ("dthrottle", node["erl_hot"]["ours"], True),
            ("express-rate-limit", node["erl_hot"]["theirs"], False),
            # Its benchmark has 64 calls in progress; that of Python one call at a time.
            ("rate-limiter-flexible, Redis (64 at once)", node["rlf_redis"]["theirs"], False),
        ],
        "Python": [
            ("dthrottle", python["hot_ns"], True),
            ("limits", python["limits_hot_ns"], False),
            ("limits, Redis", python["limits_redis_ns"], False),
        ],
    }
    left, width, low, high = 340, 350, 10, 1_000_000

    def x(ns: float) -> float:
        return left + width * math.log(ns / low) / math.log(high / low)

    rows, y = [], 52
    for language, group in groups.items():
        rows.append(f'<text class="strong" x="12" y="{y + 13}">{language}</text>')
        for name, ns, ours in group:
            kind = "ours" if ours else "theirs"
            weight = " strong" if ours else ""
            rows += [
                f'<text class="end{weight}" x="{left - 10}" y="{y + 13}">{escape(name)}</text>',
                f'<line class="{kind}" x1="{left}" x2="{x(ns):.1f}" y1="{y + 9}" y2="{y + 9}"/>',
                f'<circle class="{kind}" cx="{x(ns):.1f}" cy="{y + 9}" r="5"/>',
                f'<text class="value{weight}" x="{x(ns) + 11:.1f}" y="{y + 13}">{duration(ns)}</text>',
            ]
            y += 24
        y += 10
    grid = [f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y - 4}" y2="{y - 4}"/>']
    for power in range(1, 7):
        at = x(10**power)
        grid += [
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{y - 4}" y2="{y + 2}"/>',
            f'<text class="soft middle" x="{at:.1f}" y="{y + 18}">{duration(10**power)}</text>',
        ]
    title = "Time per decision, one client, logarithmic scale (less is better)"
    heading = f'<text class="title" x="12" y="24">{title}</text>'
    return svg(720, y + 30, title, [heading, *grid, *rows])


def demo(figures: dict[str, Figures]) -> str:
    """Draw how many requests the three nodes of the demonstration admitted, and the limit."""
    record = figures["demo"]["rows"]
    left, top, width, height = 60, 48, 440, 200
    seconds, most = record[-1]["seconds"], max(row["alone"] for row in record)

    def point(row: Figures, name: str) -> tuple[float, float]:
        return left + width * row["seconds"] / seconds, top + height * (1 - row[name] / most)

    title = "Requests of one client that three nodes admitted, in total"
    parts = [f'<text class="title" x="12" y="24">{title}</text>']
    for step in range(0, most + 1, 1000):
        y = top + height * (1 - step / most)
        parts += [
            f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text class="soft end" x="{left - 8}" y="{y + 4:.1f}">{step:,}</text>',
        ]
    names = {"alone": "each node on its own", "shared": "with dthrottle", "limit": "limit"}
    for name, label in names.items():
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (point(row, name) for row in record))
        y = point(record[-1], name)[1]
        # The two lower lines nearly coincide, so their labels go above and below.
        shift = {"shared": -4, "limit": 16}.get(name, 4)
        weight = "strong" if name == "shared" else "soft"
        total = f"{record[-1][name]:,}"
        parts += [
            f'<path class="{name}" d="M{points}"/>',
            f'<text class="{weight}" x="{left + width + 8}" y="{y + shift:.1f}">{total} {label}</text>',
        ]
    for at in range(0, int(seconds) + 1, 3):
        x = left + width * at / seconds
        parts.append(f'<text class="soft middle" x="{x:.1f}" y="{top + height + 20}">{at} s</text>')
    return svg(720, top + height + 34, title, parts)


def duration(ns: float) -> str:
    """Format nanoseconds with a suitable unit."""
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def svg(width: int, height: float, title: str, parts: list[str]) -> str:
    """Return a whole SVG file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'width="{width}" role="img"><title>{escape(title)}</title>'
    )
    return "\n".join([head, STYLE, *parts, "</svg>", ""])


# For each picture: the files in docs/figures/ that it needs, and the function that draws it.
PICTURES = {"speed": (("core", "node", "python"), speed), "demo": (("demo",), demo)}
