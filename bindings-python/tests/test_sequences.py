"""The vectors of buckets: sequences of calls with their answers, and rates."""

from __future__ import annotations

from typing import Any

import pytest
import vectors

from dthrottle import ConfigError, Decision, Domain, ManualClock, Throttle

SEQUENCES = vectors.read("sequences")
RATES = vectors.read("rates")


def call(throttle: Throttle, step: dict[str, Any]) -> Decision | bool | None:
    """Make the call of a step; absent options have their defaults."""
    domain: Domain = throttle.domain(step["domain"]) if "domain" in step else throttle
    options: dict[str, Any] = {
        name: step[name] for name in ("cost", "partial", "allow_debt") if name in step
    }
    for name in ("max_delay", "age"):
        if f"{name}_ns" in step:
            options[name] = step[f"{name}_ns"] / 1e9
    answer: Decision | bool | None = getattr(domain, step["call"])(step["tag"], **options)
    return answer


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence["name"])
def test_calls_of_a_sequence_return_the_answers_of_the_vectors(sequence: dict[str, Any]) -> None:
    clock = ManualClock()
    throttles = {
        name: Throttle.from_toml(sequence["config"], clock=clock) for name in sequence["throttles"]
    }
    first = sequence["throttles"][0]
    for index, step in enumerate(sequence["steps"]):
        clock.set(step["at_ns"] / 1e9)
        throttle = throttles[step.get("throttle", first)]
        for _ in range(step.get("repeat", 1)):
            if "error" in step:
                with vectors.raises(step["error"]):
                    call(throttle, step)
            else:
                answer = call(throttle, step)
                try:
                    vectors.agrees(answer, step.get("expect"))
                except AssertionError as error:
                    raise AssertionError(f"step {index}: {step} got {answer}") from error


def build(rate: dict[str, Any]) -> Throttle:
    """Build a throttle from a rate as text or number."""
    given = rate["text"] if "text" in rate else vectors.number(rate["number"])
    return Throttle(given, burst=vectors.number(rate.get("burst")), clock=ManualClock())


def rate_id(rate: dict[str, Any]) -> str:
    """Return a test id for a rate."""
    burst = f" burst {rate['burst']}" if "burst" in rate else ""
    return ascii(rate.get("text", rate.get("number"))) + burst


@pytest.mark.parametrize("rate", RATES["good"], ids=rate_id)
def test_valid_rate_has_the_burst_and_wait_of_the_vectors(rate: dict[str, Any]) -> None:
    throttle = build(rate)
    limit = rate["limit"]
    vectors.agrees(throttle.check("t", limit), {"allowed": True, "granted": limit, "limit": limit})
    refused = {"allowed": False, "limit": limit, "retry_after_ns": rate["retry_after_ns"]}
    vectors.agrees(throttle.check("t"), refused)


@pytest.mark.parametrize("rate", RATES["bad"], ids=rate_id)
def test_invalid_rate_is_a_configuration_error(rate: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        build(rate)
