"""Parses rates and bursts as in docs/semantics.md, into exact fractions of a nanosecond."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite

NS = 1
US = 1_000
MS = 1_000_000
S = 1_000_000_000
MINUTE = 60 * S
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
MONTH = 30 * DAY
YEAR = 365 * DAY

SPELLINGS = {
    MS: "ms msec msecs millisecond milliseconds",
    S: "s sec secs second seconds",
    MINUTE: "m min mins minute minutes",
    HOUR: "h hr hrs hour hours",
    DAY: "d day days",
    WEEK: "w week weeks",
    MONTH: "month months",
    YEAR: "y year years",
}
UNITS = {word: ns for ns, words in SPELLINGS.items() for word in words.split()}

MAX_BURST = 2**40
MIN_INTERVAL = Fraction(1)  # ns per unit, at 1,000,000,000 units a second
MAX_PERIOD = 100 * YEAR

NUMBER = r"[0-9]+(?:\.[0-9]{1,9})?"
RATE = re.compile(
    rf" *({NUMBER})(?: *(?:/|per) *({NUMBER})? *([a-z]+))? *", re.IGNORECASE | re.ASCII
)
DURATION = re.compile(rf" *({NUMBER}) *([a-z]+) *", re.IGNORECASE | re.ASCII)


class Bad(Exception):
    """A value that must be refused as a `config` error."""


@dataclass(frozen=True)
class Rate:
    interval: Fraction  # T: nanoseconds per unit
    count: Fraction  # the count as written; the default burst is this, rounded up


def number(value: float | str) -> Fraction:
    """Return a decimal number. A float stands for its shortest decimal representation."""
    if isinstance(value, float):
        if not isfinite(value):
            raise Bad("not finite")
        exact = Fraction(Decimal(repr(value)))
        if (exact * 10**9).denominator != 1:
            raise Bad("more than nine digits after the point")
        return exact
    return Fraction(value)


def parse_rate(value: object) -> Rate:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Bad("neither text nor number")
    if isinstance(value, str):
        found = RATE.fullmatch(value)
        if not found:
            raise Bad("not a rate")
        count = number(found[1])
        if found[3] and found[3].lower() not in UNITS:
            raise Bad("no such unit")
        period = number(found[2] or "1") * UNITS[(found[3] or "s").lower()]
    else:
        count, period = number(value), Fraction(S)
    if count <= 0 or period <= 0:
        raise Bad("not above zero")
    interval = period / count
    if interval < MIN_INTERVAL:
        raise Bad("too fast")
    if period > MAX_PERIOD or interval > MAX_PERIOD:
        raise Bad("too long")
    return Rate(interval, count)


def parse_burst(value: object, rate: Rate) -> int:
    if value is None:
        burst = ceil(rate.count)
    elif isinstance(value, str):
        found = DURATION.fullmatch(value)
        if not found or found[2].lower() not in UNITS:
            raise Bad("not a duration")
        burst = floor(number(found[1]) * UNITS[found[2].lower()] / rate.interval)
    elif isinstance(value, int) and not isinstance(value, bool):
        burst = value
    elif isinstance(value, float) and value.is_integer():
        burst = int(value)
    else:
        raise Bad("not a whole number")
    if not 1 <= burst <= MAX_BURST:
        raise Bad("burst out of range")
    return burst
