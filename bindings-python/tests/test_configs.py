"""The vectors of configurations, errors and invalid arguments."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
import vectors

import dthrottle
from dthrottle import ConfigError, Decision, DthrottleError, ManualClock, Throttle
from dthrottle.errors import BY_KIND

CONFIGS = vectors.read("configs")
ERRORS = vectors.read("errors")
INPUTS = [case for case in vectors.read("inputs") if "python" in case["languages"]]


def has_domains(throttle: Throttle, domains: dict[str, list[dict[str, Any]]]) -> None:
    """Compare the domains and rules of a throttle with the expected ones."""
    for name, rules in domains.items():
        domain = throttle.domain(name)
        assert domain.name == name
        found = [{"name": rule.name, "limit": rule.limit} for rule in domain.rules]
        assert found == rules


@pytest.mark.parametrize("config", CONFIGS["good"], ids=lambda config: config["name"])
def test_valid_configuration_has_the_rules_of_the_vectors(
    config: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "dthrottle.toml"
    path.write_text(config["toml"], "utf-8")
    has_domains(Throttle.from_toml(config["toml"]), config["domains"])
    has_domains(Throttle.from_file(path), config["domains"])
    has_domains(Throttle.from_file(str(path)), config["domains"])
    has_domains(Throttle(**config["object"]), config["domains"])


def check_error(error: DthrottleError, config: dict[str, Any]) -> None:
    """Check the field, and that the message has all expected parts."""
    assert error.field == config["field"]
    for part in config["says"]:
        assert part in str(error)


@pytest.mark.parametrize(
    "config", [c for c in CONFIGS["bad"] if "toml" in c], ids=lambda config: config["name"]
)
def test_invalid_toml_is_an_error_with_field_and_line(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        Throttle.from_toml(config["toml"])
    check_error(caught.value, config)
    if config["line"] is not None:
        assert caught.value.line == config["line"]


@pytest.mark.parametrize(
    "config", [c for c in CONFIGS["bad"] if "object" in c], ids=lambda config: config["name"]
)
def test_invalid_object_is_an_error_with_its_field(config: dict[str, Any]) -> None:
    options = config["object"]
    given = {name: value for name, value in options.items() if value is not None}
    if given != options and options != {"rate": None}:
        # None means that an option was left out, but rate=None is an error.
        rest = {} if "rate" in given else {"rate": 1}
        assert Throttle(**options | rest).rules == Throttle(**given | rest).rules
        return
    with pytest.raises(ConfigError) as caught:
        Throttle(**options)
    check_error(caught.value, config)
    assert caught.value.line is None


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row["kind"])
def test_error_class_agrees_with_the_vectors(row: dict[str, Any]) -> None:
    error = getattr(dthrottle, row["python"])
    assert BY_KIND[row["kind"]] is error
    assert error.kind == row["kind"]
    assert error.__bases__ == (DthrottleError, getattr(builtins, row["python_base"]))
    assert row["python"] in dthrottle.__all__


def test_every_error_kind_of_the_vectors_has_a_class() -> None:
    assert list(BY_KIND) == [row["kind"] for row in ERRORS]


def argument(value: Any) -> Any:
    """Decode an argument of the vectors. Objects describe bytes, long texts and odd strings."""
    match value:
        case {"text": text}:
            return text
        case {"bytes_hex": digits}:
            return bytes.fromhex(digits)
        case {"repeat": text, "times": times}:
            return text * times
    return value


@pytest.mark.parametrize("case", INPUTS, ids=lambda case: case["name"])
def test_call_returns_or_raises_what_the_vectors_say(case: dict[str, Any]) -> None:
    clock = ManualClock()
    throttle = Throttle("10/s", burst=10, clock=clock)
    if case.get("closed"):
        throttle.close()
    if case["error"] is None:
        vectors.agrees(make(case, throttle, clock), case.get("expect"))
        return
    with vectors.raises(case["error"]):
        make(case, throttle, clock)


def make(case: dict[str, Any], throttle: Throttle, clock: ManualClock) -> Decision | bool | None:
    """Make the call of a case."""
    args = dict(case["args"])
    target: Any = throttle
    if case["call"] in ("advance", "set"):
        target = clock
    elif "domain" in args:
        target = throttle.domain(args.pop("domain"))
    positional = [argument(args.pop("tag"))] if "tag" in args else []
    options = {}
    for name, value in args.items():
        given = argument(vectors.number(value))
        if name in ("ms", "max_delay_ms", "age_ms"):
            name = {"ms": "seconds"}.get(name, name.removesuffix("_ms"))
            given = given / 1e3 if isinstance(given, int | float) else given
        options[name] = given
    answer: Decision | bool | None = getattr(target, case["call"])(*positional, **options)
    return answer
