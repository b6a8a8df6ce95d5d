"""Draws the pictures of the README from docs/figures/: SVG that is readable in light and dark."""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

Figures = dict[str, Any]

STYLE = """<style>
 text { font: 13px system-ui, sans-serif; fill: #24292f }
 .title { font-weight: 600 } .soft { fill: #57606a } .end { text-anchor: end }
 .middle { text-anchor: middle } .grid { stroke: #d0d7de } .ours { fill: #0969da }
 .theirs { fill: #afb8c1 } path { fill: none; stroke-width: 2.5; stroke-linejoin: round }
 .shared { stroke: #0969da } .alone { stroke: #cf222e } .limit { stroke: #57606a; stroke-dasharray: 5 4 }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #3d444d } .ours { fill: #4493f8 }
  .theirs { fill: #656c76 } .shared { stroke: #4493f8 } .alone { stroke: #f85149 }
  .limit { stroke: #9198a1 }
 }
</style>"""


def speed(figures: dict[str, Figures]) -> str:
    """Draw the time per decision beside the libraries that applications use today."""
    core, python = figures["core"]["figures"], figures["python"]["figures"]
    node = {row["name"]: row for row in figures["node"]["figures"]}
    # A group for each language: what is measured, nanoseconds, whether it is dthrottle.
    groups = [
        [
            ("dthrottle in Rust", core["hot_ns"], True),
            ("governor", core["governor_hot_ns"], False),
        ],
        [
            ("dthrottle in Node", node["erl_hot"]["ours"], True),
            ("express-rate-limit, memory", node["erl_hot"]["theirs"], False),
            ("rate-limiter-flexible, Redis", node["rlf_redis"]["theirs"], False),
        ],
        [
            ("dthrottle in Python", python["hot_ns"], True),
            ("limits, memory", python["limits_hot_ns"], False),
            ("limits, Redis", python["limits_redis_ns"], False),
        ],
    ]
    left, width, low, high = 210, 430, 10, 1_000_000

    def x(ns: float) -> float:
        return left + width * math.log(ns / low) / math.log(high / low)

    rows, y = [], 52
    for group in groups:
        for name, ns, ours in group:
            kind = "ours" if ours else "theirs"
            rows += [
                f'<text class="end" x="{left - 10}" y="{y + 13}">{escape(name)}</text>',
                f'<rect class="{kind}" x="{left}" y="{y}" width="{x(ns) - left:.1f}" height="18"/>',
                f'<text x="{x(ns) + 8:.1f}" y="{y + 13}">{duration(ns)}</text>',
            ]
            y += 24
        y += 10
    grid = []
    for power in range(1, 7):
        at = x(10**power)
        grid += [
            f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="44" y2="{y}"/>',
            f'<text class="soft middle" x="{at:.1f}" y="{y + 18}">{duration(10**power)}</text>',
        ]
    title = '<text class="title" x="12" y="24">Time per decision for one client, log scale</text>'
    return svg(720, y + 30, "Time per decision", [title, *grid, *rows])


def demo(figures: dict[str, Figures]) -> str:
    """Draw what three nodes admitted in the demonstration, beside the limit."""
    seen = figures["demo"]["rows"]
    left, top, width, height = 60, 48, 470, 220
    seconds, most = seen[-1]["seconds"], max(row["alone"] for row in seen)

    def point(row: Figures, name: str) -> tuple[float, float]:
        return left + width * row["seconds"] / seconds, top + height * (1 - row[name] / most)

    parts = ['<text class="title" x="12" y="24">One client, three nodes, one limit</text>']
    for step in range(0, most + 1, 1000):
        y = top + height * (1 - step / most)
        parts += [
            f'<line class="grid" x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text class="soft end" x="{left - 8}" y="{y + 4:.1f}">{step:,}</text>',
        ]
    names = {"alone": "without sharing", "shared": "with dthrottle", "limit": "limit"}
    for name, label in names.items():
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (point(row, name) for row in seen))
        y = point(seen[-1], name)[1]
        # The limit is below the line of dthrottle, and so is its label.
        below = {"shared": -4, "limit": 16}.get(name, 4)
        total = f"{seen[-1][name]:,}"
        parts += [
            f'<path class="{name}" d="M{points}"/>',
            f'<text x="{left + width + 8}" y="{y + below:.1f}">{total} {label}</text>',
        ]
    axis = f"admitted requests in {seconds:g} seconds, in total"
    parts.append(f'<text class="soft" x="{left}" y="{top + height + 24}">{axis}</text>')
    return svg(720, top + height + 36, "Requests admitted by three nodes", parts)


def duration(ns: float) -> str:
    """Write nanoseconds with a unit that suits them."""
    for unit, size in (("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}".replace("us", "µs")
    return f"{ns:.0f} ns"


def svg(width: int, height: float, title: str, parts: list[str]) -> str:
    """Put the parts of a picture together."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'width="{width}" role="img"><title>{escape(title)}</title>'
    )
    return "\n".join([head, STYLE, *parts, "</svg>", ""])


# By file name: the figures that a picture needs, and what draws it.
PICTURES = {"speed": (("core", "node", "python"), speed), "demo": (("demo",), demo)}
