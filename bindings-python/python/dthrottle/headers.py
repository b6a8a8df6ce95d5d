"""What a response says about the throttle: header fields of several kinds, Retry-After, a problem.

The fields are written by native code (src/headers.rs), because every response has them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from dthrottle._dthrottle import Decision, Headers

__all__ = ["KINDS", "Fields", "Headers", "Kind", "Policy", "problem", "retry_after"]

Kind = Literal["standard", "draft-7", "draft-6", "x-ratelimit", "none"] | bool
"""Which fields to write; True: the standard ones, False: none."""

Fields = list[tuple[str, str]]

KINDS: Final = ("standard", "draft-7", "draft-6", "x-ratelimit", "none")
PROBLEM_TYPE: Final = "https://iana.org/assignments/http-problem-types#quota-exceeded"

# The largest integer of a structured field.
_LARGEST: Final = 10**15 - 1


class Policy(NamedTuple):
    """A rule as clients see it."""

    name: str
    quota: int
    window: float
    """How many seconds it takes to fill the bucket."""


def retry_after(decision: Decision, max_wait: float = 0.0) -> int:
    """Give the whole seconds after which the same check would pass, at least one."""
    # A nanosecond that comes of writing seconds as a float is no further second.
    return max(1, min(_LARGEST, math.ceil(decision.retry_after - max_wait - 1e-9)))


def problem(status: int, violated: Iterable[str], seconds: int) -> bytes:
    """Write a refusal as application/problem+json (RFC 9457)."""
    return json.dumps(
        {
            "type": PROBLEM_TYPE,
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": status,
            "detail": f"Try again in {seconds} s.",
            "violated-policies": list(violated),
        }
    ).encode()
