"""Builds a sequence. It runs each step on the model and records the answer.

An edge is a time at which an answer changes. Steps are on an edge or 1 ns beside it if every
language computes that edge exactly. `Sequence.guard` rejects steps that are too near to others.
"""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction

from model import Bucket, Decision, Failed, Throttle
from rates import DAY, HOUR, US, S
from shapes import Config

Step = dict[str, object]

KEYS = (
    "domain",
    "tag",
    "cost",
    "max_delay_ns",
    "partial",
    "allow_debt",
    "age_ns",
    "repeat",
)
TIMES = ("delay_ns", "retry_after_ns", "reset_after_ns")
SURE_SPAN = 10 * HOUR  # the longest B*T of a rule that can count in quarter nanoseconds
MAX_TIME = 2**63 - 1  # 292 years, the longest time that every language can represent
LATE = 10 * DAY  # after this, a float of seconds or milliseconds is less precise than 1 ns


def counts_exactly(bucket: Bucket) -> bool:
    """Return whether "a tick divides the nanosecond", as docs/semantics.md defines it."""
    interval = bucket.rule.interval
    return (4 * interval).denominator == 1 and bucket.rule.burst * interval <= SURE_SPAN


def drifts(bucket: Bucket) -> bool:
    """Return whether the bucket may be off by a tick, as it was found full between two ticks."""
    whole = (bucket.origin / bucket.rule.interval).denominator == 1
    return not counts_exactly(bucket) and not whole


class Sequence:
    def __init__(self, name: str, why: str, config: Config, throttles: str = "A") -> None:
        self.name, self.why, self.config = name, why, config
        self.throttles = {letter: Throttle(config) for letter in throttles}
        self.steps: list[Step] = []
        self.now = 0

    # One method for each call. `at` is in ns. Arguments that are not options are expected fields.

    def check(self, at: int, tag: str = "t", **rest: object) -> None:
        self.decide("check", at, tag, rest)

    def peek(self, at: int, tag: str = "t", **rest: object) -> None:
        self.decide("peek", at, tag, rest)

    def allow(self, at: int, answer: bool, tag: str = "t", **rest: object) -> None:
        self.decide("allow", at, tag, {**rest, "allowed": answer})

    def refund(self, at: int, tag: str = "t", cost: int = 1, **rest: str) -> None:
        throttle, domain, step = self.begin("refund", at, tag, {**rest, "cost": cost})
        throttle.refund(at, domain, tag, cost)
        self.steps.append(step)

    def reset(self, at: int, tag: str = "t", **rest: str) -> None:
        throttle, domain, step = self.begin("reset", at, tag, dict(rest))
        throttle.reset(at, domain, tag)
        self.steps.append(step)

    def charge_local(self, at: int, cost: int, age: int, tag: str = "t", **rest: str) -> None:
        options: Step = {**rest, "cost": cost, "age_ns": age}
        throttle, domain, step = self.begin("charge_local", at, tag, options)
        throttle.charge_local(at, domain, tag, cost, age)
        self.steps.append(step)

    def fails(self, kind: str, call: str, at: int, tag: str = "t", **rest: object) -> None:
        """Expect that a call fails and does not change the buckets."""
        throttle, domain, step = self.begin(call, at, tag, rest)
        try:
            if call in ("refund", "reset", "charge_local"):
                throttle.domain(domain)
            else:
                throttle.check(at, domain, tag, **self.options(step))  # type: ignore[arg-type]
        except Failed as failed:
            assert str(failed) == kind, f"{self.name}: {failed}, not {kind}"
        else:
            raise AssertionError(f"{self.name}: {call} at {at} does not fail")
        self.steps.append({**step, "error": kind})

    # Creating steps.

    def begin(
        self, call: str, at: int, tag: str, rest: dict[str, object]
    ) -> tuple[Throttle, str, Step]:
        assert at >= self.now, f"{self.name}: the clock goes back at {at}"
        assert at <= LATE or at % S == 0, f"{self.name}: a float has no exact value for {at}"
        self.now = at
        step: Step = {"throttle": rest.pop("on", "A"), "at_ns": at, "call": call}
        throttle = self.throttles[str(step["throttle"])]
        if len(self.throttles) == 1:
            del step["throttle"]
        domain = str(rest.get("domain", "default"))
        for key in KEYS:
            if key == "tag":
                step["tag"] = tag
            elif key in rest:
                step[key] = rest.pop(key)
        return throttle, domain, step

    @staticmethod
    def options(step: Step) -> dict[str, object]:
        names = ("cost", "max_delay_ns", "partial", "allow_debt")
        return {name.removesuffix("_ns"): step[name] for name in names if name in step}

    def decide(self, call: str, at: int, tag: str, rest: dict[str, object]) -> None:
        throttle, domain, step = self.begin(call, at, tag, rest)
        times = int(str(step.get("repeat", 1)))
        answers = [self.once(throttle, domain, tag, at, step) for _ in range(times)]
        same = {k: v for k, v in answers[0].items() if all(a[k] == v for a in answers)}
        for key, value in rest.items():
            assert same.get(key) == value, f"{self.name}: {key} is {same.get(key)} at {at}: {step}"
        expect: object = same["allowed"] if call == "allow" else same
        self.steps.append({**step, "expect": expect})

    def once(self, throttle: Throttle, domain: str, tag: str, at: int, step: Step) -> Step:
        take = step["call"] != "peek"
        for bucket in throttle.tag_buckets(domain, tag):
            self.guard_pass(bucket, step)
        options = self.options(step)
        answer: Decision = throttle.check(at, domain, tag, take=take, **options)  # type: ignore[arg-type]
        for bucket in throttle.tag_buckets(domain, tag) if step["call"] != "allow" else []:
            units = bucket.rule.burst - (bucket.head(at) - at) / bucket.rule.interval
            self.guard(bucket, units % 1 * bucket.rule.interval)
            self.guard(bucket, (1 - units % 1) * bucket.rule.interval)
        fields = asdict(answer)
        vague = any(drifts(bucket) for bucket in throttle.tag_buckets(domain, tag))
        for key in TIMES:
            if vague or fields[key] > MAX_TIME:
                del fields[key]
        return fields

    def guard_pass(self, bucket: Bucket, step: Step) -> None:
        cost, max_delay = int(str(step.get("cost", 1))), int(str(step.get("max_delay_ns", 0)))
        until = self.now + max_delay
        if step.get("partial"):
            cost = max(0, min(cost, bucket.most(until, self.now)))
            self.guard(bucket, until - bucket.due(self.now, cost + 1))
        elif step.get("allow_debt"):
            cost = min(cost, bucket.rule.burst)
        self.guard(bucket, until - bucket.due(self.now, cost))

    def guard(self, bucket: Bucket, distance: Fraction) -> None:
        """Reject a step that is too near to an edge, `distance` ns away."""
        if bucket.tat <= self.now or bucket.origin == self.now:
            return  # the bucket was found full at this time, so rounding has no effect
        near = Fraction(0)
        if not counts_exactly(bucket):
            near = Fraction(10)
        if drifts(bucket):
            near = max(near, bucket.rule.interval / 1_000_000)
        if self.now > LATE:
            near = max(near, Fraction(US))
        assert abs(distance) >= near, f"{self.name}: {distance} ns from an edge at {self.now}"
