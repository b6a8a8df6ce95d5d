"""Compares the model with the specifications and with simpler implementations."""

from __future__ import annotations

import random
from fractions import Fraction
from importlib import import_module

import list_clusters
import list_tables
from list_bad_configs import bad
from list_configs import good
from model import Throttle
from rates import S

Entry = dict[str, object]


def run() -> None:
    worked_example()
    smockron()
    governor()
    token_bucket()
    toml_equals_object()


def worked_example() -> None:
    """Check the bucket columns of the DThrottle document."""
    nodes = {name: Throttle({"rate": "1/s", "burst": 10}) for name in "AB"}

    def balances(second: int) -> tuple[object, object]:
        a, b = (node.check(second * S, "default", "C", take=False) for node in nodes.values())
        return a.balance, b.balance

    def count_allowed(node: str, second: int, times: int) -> int:
        answers = [nodes[node].check(second * S, "default", "C") for _ in range(times)]
        return sum(answer.allowed for answer in answers)

    assert balances(0) == (10, 10)
    assert (count_allowed("A", 0, 9), count_allowed("B", 0, 8)) == (9, 8)
    assert balances(0) == (1, 2)
    assert count_allowed("A", 0, 2) == 1
    assert balances(0) == (0, 2)
    nodes["A"].charge_local(5 * S, "default", "C", cost=8, age=5 * S)
    nodes["B"].charge_local(5 * S, "default", "C", cost=10, age=5 * S)
    assert balances(5) == (-3, -3)
    assert count_allowed("A", 5, 1) == count_allowed("B", 5, 1) == 0
    assert [balances(t) for t in (6, 7, 8, 9)] == [(-2, -2), (-1, -1), (0, 0), (1, 1)]
    assert count_allowed("A", 9, 1) == count_allowed("B", 9, 1) == 1


def smockron() -> None:
    """Check Smockron's formula, `next = max(prev, now - burst) + interval`.

    At 1/s with burst 10, the 11th request waits 1000 ms.
    """
    throttle = Throttle({"rate": "1/s", "burst": 10})
    answers = [throttle.check(0, "default", "t", max_delay=5 * S) for _ in range(11)]
    assert [answer.delay_ns for answer in answers] == [0] * 10 + [S]

    dice = random.Random(4)
    for _ in range(200):
        burst, now, prev = dice.randint(1, 9), 0, Fraction(-(10**30))
        throttle = Throttle({"rate": "3/s", "burst": burst})
        interval = Fraction(S, 3)
        for _ in range(30):
            now += dice.choice((0, 1, S // 3, S // 2, dice.randint(0, 4 * S)))
            prev = max(prev, now - burst * interval) + interval
            throttle.charge_local(now, "default", "t", cost=1, age=0)
            assert throttle.tag_buckets("default", "t")[0].due(now, 0) == prev


def governor() -> None:
    """Check Governor's formula, `new_count = max(0, count - (now - last) * v) + 1`.

    Governor refuses a request if the new count is above the limit.
    """
    dice = random.Random(5)
    for _ in range(300):
        limit, velocity = dice.randint(1, 6), dice.randint(1, 7)
        config = {"rate": f"{velocity}/s", "burst": limit, "charge_refused": True}
        throttle, count, last, now = Throttle(config), Fraction(0), 0, 0
        for _ in range(40):
            now += dice.choice((0, 1, S // velocity, S, dice.randint(0, 2 * S)))
            count = max(Fraction(0), count - Fraction(now - last, S) * velocity) + 1
            last = now
            answer = throttle.check(now, "default", "t")
            assert answer.allowed == (count <= limit)
            assert answer.balance == (limit - count).__floor__()


def token_bucket() -> None:
    """Compare with a textbook token bucket, which counts tokens and adds them over time."""
    dice = random.Random(6)
    for _ in range(300):
        burst, per_second = dice.randint(1, 8), dice.randint(1, 9)
        throttle = Throttle({"rate": f"{per_second}/s", "burst": burst})
        tokens, last, now = Fraction(burst), 0, 0
        for _ in range(60):
            now += dice.choice((0, 1, S // per_second, S, dice.randint(0, 2 * S)))
            tokens = min(Fraction(burst), tokens + Fraction(now - last, S) * per_second)
            last, units = now, dice.randint(0, burst)
            match dice.choice(("check", "check", "partial", "refund", "charge_local", "reset")):
                case "check":
                    answer = throttle.check(now, "default", "t", cost=units)
                    assert answer.allowed == (tokens >= units)
                    tokens -= units if tokens >= units else 0
                case "partial":
                    units = dice.randint(1, 2 * burst)
                    answer = throttle.check(now, "default", "t", cost=units, partial=True)
                    assert answer.granted == max(0, min(units, tokens.__floor__()))
                    tokens -= answer.granted
                case "refund":
                    throttle.refund(now, "default", "t", units)
                    tokens = min(Fraction(burst), tokens + units)
                case "charge_local":
                    throttle.charge_local(now, "default", "t", cost=units, age=0)
                    tokens -= units
                case "reset":
                    throttle.reset(now, "default", "t")
                    tokens = Fraction(burst)
            seen = throttle.check(now, "default", "t", cost=0, take=False)
            assert seen.balance == tokens.__floor__()


def toml_equals_object() -> None:
    """Check that the TOML of a case equals its object, and that syntax errors name the line."""
    try:
        tomllib = import_module("tomllib")
    except ModuleNotFoundError:  # Python 3.10
        return
    entries = [*good(), *bad()]
    for part in (list_tables, list_clusters):
        entries += [*part.good(), *part.bad()]
    for entry in entries:
        if "toml" not in entry:
            continue
        try:
            parsed = tomllib.loads(entry["toml"])
        except tomllib.TOMLDecodeError as error:
            assert entry.get("field") is None, f"{entry['name']}: {error}"
            assert f"line {entry['line']}," in str(error), f"{entry['name']}: {error}"
            continue
        assert "domains" in entry or entry["field"] is not None, f"{entry['name']} is TOML"
        assert parsed == entry.get("object", parsed), f"{entry['name']}: {parsed}"
