"""What a response says about the throttle: header fields of several kinds, Retry-After, a problem.

The standard kind is that of draft-ietf-httpapi-ratelimit-headers, versions 08 to 11, in structured
fields (RFC 9651):

    RateLimit-Policy: "default";q=200;w=2
    RateLimit: "default";r=199;t=1

A leaky bucket has no window that begins and ends. ``q`` is the burst and ``w`` the time in which an
empty bucket fills; ``r`` is what is left, and ``t`` the time until there is more.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from dthrottle._dthrottle import Decision

__all__ = ["KINDS", "Fields", "Headers", "Kind", "Policy", "more_after", "problem", "retry_after"]

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


@dataclass(frozen=True, slots=True)
class _Known:
    """A rule, and what of its fields can be written beforehand."""

    policy: Policy
    quota: int
    begin: str
    """The standard field up to what is left."""
    soon: bool
    """Whether a unit comes back within a second, whatever the bucket has."""


class Headers:
    """Writes the fields of one kind for the rules of a domain, of which it must know all."""

    def __init__(self, kind: str, policies: Mapping[str, Policy]) -> None:
        self._by_rule = {rule: _known(policy) for rule, policy in policies.items()}
        # Which rule decided when none refused: a decision has its limit.
        self._by_limit: dict[int, _Known] = {}
        for known in self._by_rule.values():
            self._by_limit.setdefault(known.quota, known)
        self._only = next(iter(self._by_rule.values())) if len(self._by_rule) == 1 else None
        writers: dict[str, Callable[[_Known, int, int], Fields]] = {
            "standard": self._standard,
            "draft-7": self._draft_7,
            "draft-6": self._draft_6,
            "x-ratelimit": self._x_ratelimit,
        }
        self._write = writers.get(kind)
        named = [f"{_string(p.name)};q={_integer(p.quota)}{_window(p)}" for p in policies.values()]
        bare = [f"{_integer(p.quota)}{_window(p)}" for p in policies.values()]
        self._policy = ("RateLimit-Policy", ", ".join(named if kind == "standard" else bare))
        self.is_list = kind == "standard"
        """Whether fields of several throttles may stand in one response."""

    def fields(self, decision: Decision) -> Fields:
        """Write the fields for a decision; none for a domain without rules."""
        # Runs for every request: figures of the decision are read once, and only if needed.
        write = self._write
        if write is None:
            return []
        rule = decision.rule
        if rule is not None:
            known = self._by_rule.get(rule)
        else:
            known = self._only or self._by_limit.get(decision.limit)
        if known is None:
            return []
        left = decision.remaining
        if rule is None and known.soon:
            more = 1 if left < known.quota else 0
        else:
            more = more_after(decision, known.policy)
        return write(known, left, more)

    def policy(self, decision: Decision) -> Policy | None:
        """Give the rule that decided."""
        rule = decision.rule
        known = self._by_limit.get(decision.limit) if rule is None else self._by_rule.get(rule)
        return None if known is None else known.policy

    # The fields for what is left, and the time until there is more: see `more_after`.

    def _standard(self, known: _Known, left: int, more: int) -> Fields:
        text = known.begin + str(left if left < _LARGEST else _LARGEST)
        if more:
            text += ";t=1" if more == 1 else f";t={more}"
        return [self._policy, ("RateLimit", text)]

    def _draft_7(self, known: _Known, left: int, more: int) -> Fields:
        limit, left = _integer(known.quota), _integer(left)
        return [self._policy, ("RateLimit", f"limit={limit}, remaining={left}, reset={more}")]

    def _draft_6(self, known: _Known, left: int, more: int) -> Fields:
        return [
            self._policy,
            ("RateLimit-Limit", str(_integer(known.quota))),
            ("RateLimit-Remaining", str(_integer(left))),
            ("RateLimit-Reset", str(more)),
        ]

    def _x_ratelimit(self, known: _Known, left: int, more: int) -> Fields:
        # Its reset is a time of day, in seconds since 1970.
        return [
            ("X-RateLimit-Limit", str(known.quota)),
            ("X-RateLimit-Remaining", str(left)),
            ("X-RateLimit-Reset", str(math.ceil(time.time()) + more)),
        ]


def _known(policy: Policy) -> _Known:
    soon = _seconds(policy.window / policy.quota) <= 1
    return _Known(policy, policy.quota, f"{_string(policy.name)};r=", soon)


def retry_after(decision: Decision) -> int:
    """Give the whole seconds after which the same request would pass, at least one."""
    return max(1, _seconds(decision.retry_after))


def more_after(decision: Decision, policy: Policy) -> int:
    """Give whole seconds after which more is left than now; 0 when the bucket is full.

    What is missing comes back in ``reset_after``, unit by unit, and the first no later than the
    average of all.
    """
    if decision.rule is not None:
        return retry_after(decision)
    missing = decision.limit - decision.balance
    if missing <= 0:
        return 0
    # With several rules the reset may be another's.
    return max(1, _seconds(min(decision.reset_after / missing, policy.window / policy.quota)))


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


# Structured fields.


def _seconds(seconds: float) -> int:
    # A nanosecond that comes of writing seconds as a float is no further second.
    return min(_LARGEST, math.ceil(seconds - 1e-9))


def _integer(number: int) -> int:
    return min(_LARGEST, number)


def _window(policy: Policy) -> str:
    return f";w={max(1, _seconds(policy.window))}"


def _string(text: str) -> str:
    # Strings are of printable ASCII; the rest is percent-encoded.
    printable = "".join(chr(code) for code in range(0x20, 0x7F))
    escaped = quote(text, safe=printable).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
