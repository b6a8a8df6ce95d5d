"""An exact model of docs/semantics.md: buckets, domains and calls. It computes with fractions.

It is independent of the Rust code. A call whose result the page does not define raises `Ambiguous`,
so that no vector depends on it. Times are in nanoseconds. The times of a decision are rounded up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from config import Domain, Rule, load
from shapes import Config

UNLIMITED = "unlimited"
MAX_DEBT = 2**40  # with `allow_debt`, a larger cost counts as this
NEVER = Fraction(-(10**40))  # the TAT of a new bucket, which is full


class Ambiguous(Exception):
    """The result is not defined in docs/semantics.md, so no vector may depend on it."""


class Failed(Exception):
    """The call fails. The text is the kind of the error."""


@dataclass
class Bucket:
    """The state of one tag under one rule.

    `tat` is the TAT of docs/semantics.md. A `tat` in the past affects only `charge_local` with an
    age. After a reset, a refund above the burst or a cost of 0, docs/semantics.md allows several
    values of `tat`, and `low` is the lowest. `origin` is when the bucket was last found full.
    """

    rule: Rule
    tat: Fraction = NEVER
    low: Fraction = NEVER
    origin: int = 0

    def head(self, now: int) -> Fraction:
        """Return `z` of docs/semantics.md: the TAT, or `now` if that is later."""
        return max(self.tat, Fraction(now))

    def due(self, now: int, units: int) -> Fraction:
        """Return the time at which this number of units would pass without a delay."""
        return self.head(now) + (units - self.rule.burst) * self.rule.interval

    def needed(self, cost: int, allow_debt: bool) -> int:
        """Return the units that must be available. With `allow_debt` the rest becomes debt."""
        return min(cost, self.rule.burst) if allow_debt else cost

    def most(self, until: int, now: int) -> int:
        """Return how many units could pass at `until`. The number is negative in debt."""
        return floor((until - self.due(now, 0)) / self.rule.interval)

    def take(self, now: int, units: int) -> None:
        if self.tat <= now:
            self.origin = now
        low = self.low
        self.tat = self.low = self.head(now) + units * self.rule.interval
        if units == 0:
            self.low = low

    def refund(self, now: int, units: int) -> None:
        self.low -= units * self.rule.interval
        if self.tat > now:
            self.tat = max(self.tat - units * self.rule.interval, Fraction(now))

    def reset(self, now: int) -> None:
        self.tat, self.low = min(self.tat, Fraction(now)), NEVER

    def charge_local(self, now: int, cost: int, age: int) -> None:
        since = Fraction(now - age)
        if max(self.tat, since) != max(self.low, since) or (since < 0 and self.tat < 0):
            raise Ambiguous("a local charge at a time for which the TAT is not defined")
        if self.tat <= since:
            self.origin = now - age
        self.tat = self.low = max(self.tat, since) + cost * self.rule.interval

    def balance(self, now: int) -> int:
        return floor(self.rule.burst - (self.head(now) - now) / self.rule.interval)

    def remaining(self, now: int) -> int:
        return max(0, self.balance(now))


@dataclass(frozen=True)
class Decision:
    allowed: bool
    granted: int
    delay_ns: int
    retry_after_ns: int
    reset_after_ns: int
    limit: int | str
    remaining: int | str
    balance: int | str
    rule: str | None
    dry_run: bool


def longest(times: list[Fraction]) -> int:
    """Return the longest of these times, rounded up, or 0 if all are negative."""
    return ceil(max([Fraction(0), *times]))


class Throttle:
    def __init__(self, config: Config) -> None:
        self.domains = load(config)
        self.buckets: dict[tuple[str, str], list[Bucket]] = {}

    def domain(self, name: str) -> Domain:
        if name not in self.domains:
            raise Failed("domain")
        return self.domains[name]

    def tag_buckets(self, domain: str, tag: str) -> list[Bucket]:
        """Return the tag's buckets, one for each rule."""
        rules = self.domain(domain).rules
        return self.buckets.setdefault((domain, tag), [Bucket(rule) for rule in rules])

    def check(
        self,
        now: int,
        domain: str,
        tag: str,
        cost: int = 1,
        max_delay: int = 0,
        partial: bool = False,
        allow_debt: bool = False,
        take: bool = True,
    ) -> Decision:
        buckets = self.tag_buckets(domain, tag)
        allow_debt = allow_debt and not partial
        if allow_debt:
            cost = min(cost, MAX_DEBT)
        if not buckets:
            return Decision(True, cost, 0, 0, 0, UNLIMITED, UNLIMITED, UNLIMITED, None, False)
        if not (partial or allow_debt) and any(cost > bucket.rule.burst for bucket in buckets):
            raise Failed("cost")
        until = now + max_delay
        ask = min(cost, 1) if partial else cost  # the smallest cost that can pass
        if any(bucket.due(now, bucket.needed(ask, allow_debt)) > until for bucket in buckets):
            return self.refuse(now, domain, buckets, until, cost, ask, allow_debt, take)

        units = min([cost, *(b.most(until, now) for b in buckets)]) if partial else cost
        delay = longest([b.due(now, b.needed(units, allow_debt)) - now for b in buckets])
        if take:
            for bucket in buckets:
                bucket.take(now, units)
        decider = min(buckets, key=lambda b: (b.remaining(now), b.rule.burst))
        if self.domains[domain].dry_run and delay > 0:
            # Dry run delays no request, and reports the delay as the time to retry.
            return self.answer(now, buckets, decider, granted=units, retry=delay, dry_run=True)
        return self.answer(now, buckets, decider, granted=units, delay=delay)

    def refuse(
        self,
        now: int,
        domain: str,
        buckets: list[Bucket],
        until: int,
        cost: int,
        ask: int,
        allow_debt: bool,
        take: bool,
    ) -> Decision:
        def due(bucket: Bucket) -> Fraction:
            return bucket.due(now, bucket.needed(ask, allow_debt))

        refusing = [bucket for bucket in buckets if due(bucket) > until]
        for bucket in buckets:
            if take and bucket.rule.charge_refused:
                bucket.take(now, min(cost, bucket.rule.burst))
        decider = min(refusing, key=lambda b: (-due(b), b.rule.burst))
        retry = longest([due(bucket) - now for bucket in buckets])
        dry_run = self.domains[domain].dry_run
        return self.answer(now, buckets, decider, retry=retry, refused=True, dry_run=dry_run)

    @staticmethod
    def answer(
        now: int,
        buckets: list[Bucket],
        decider: Bucket,
        *,
        granted: int = 0,
        delay: int = 0,
        retry: int = 0,
        refused: bool = False,
        dry_run: bool = False,
    ) -> Decision:
        return Decision(
            allowed=dry_run or not refused,
            granted=granted,
            delay_ns=delay,
            retry_after_ns=retry,
            reset_after_ns=longest([bucket.tat - now for bucket in buckets]),
            limit=decider.rule.burst,
            remaining=decider.remaining(now),
            balance=decider.balance(now),
            rule=decider.rule.name if refused else None,
            dry_run=dry_run,
        )

    def refund(self, now: int, domain: str, tag: str, cost: int = 1) -> None:
        for bucket in self.tag_buckets(domain, tag):
            bucket.refund(now, cost)

    def reset(self, now: int, domain: str, tag: str) -> None:
        for bucket in self.tag_buckets(domain, tag):
            bucket.reset(now)

    def charge_local(self, now: int, domain: str, tag: str, cost: int, age: int) -> None:
        for bucket in self.tag_buckets(domain, tag):
            bucket.charge_local(now, cost, age)
