"""Reads Retry-After, in the forms that JavaScript reads: tests/vectors/calls.json."""

from __future__ import annotations

import re
import time
from calendar import timegm
from datetime import date
from typing import Final

__all__ = ["LONGEST", "retry_after"]

LONGEST: Final = 86_400.0 * 365
"""The longest time that is returned, a year. The throttle limits pauses further."""

# The three forms of a date in RFC 9110.
_TIME: Final = "(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9]|60)"
_DAY: Final = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_WHOLE_DAY: Final = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH: Final = "(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_FORMS: Final = [
    re.compile(f"{_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(f"{_WHOLE_DAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(f"{_DAY} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
]
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"


def retry_after(value: str | None, now: float | None = None) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date; None if it is invalid.

    now: the Unix time with which a date is compared.
    """
    text = (value or "").strip(" \t")
    if text.isascii() and text.isdigit():
        # Very many digits are the longest time, and converting them would be slow.
        digits = text.lstrip("0")
        return min(float(digits or 0), LONGEST) if len(digits) < 20 else LONGEST
    now = time.time() if now is None else now
    then = _date(text, now)
    return None if then is None or then <= now else min(then - now, LONGEST)


def _date(text: str, now: float) -> float | None:
    """Return a date as seconds since 1970."""
    match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if match is None:
        return None
    year, day = int(match["year"]), int(match["day"])
    month = _MONTHS.index(match["month"]) // 3 + 1
    if len(match["year"]) == 2:
        # The latest year that is at most 50 years in the future.
        latest = time.gmtime(now).tm_year + 50
        year = latest - (latest - year) % 100
    try:
        date(year, month, day)
    except ValueError:
        return None
    times = (int(match["hour"]), int(match["minute"]), int(match["second"]))
    return float(timegm((year, month, day, *times)))
