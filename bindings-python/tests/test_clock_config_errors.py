"""The manual clock, configurations as Python objects, and the exceptions."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import dthrottle._dthrottle as native
from dthrottle import (
    ArgumentError,
    ConfigError,
    DthrottleError,
    FileError,
    InternalError,
    ManualClock,
    Throttle,
)
from dthrottle.errors import BY_KIND


def test_manual_clock_moves_when_told() -> None:
    clock = ManualClock(1.5)
    clock.advance(1)
    assert clock.now() == 2.5
    clock.set(4)
    assert clock.now() == 4.0
    assert repr(clock) == "ManualClock(4.0)"
    assert ManualClock().now() == ManualClock(start=0).now() == 0.0


def test_setting_a_clock_back_is_an_error() -> None:
    clock = ManualClock(2)
    with pytest.raises(ArgumentError, match="set back"):
        clock.set(1)
    assert clock.now() == 2.0


@pytest.mark.parametrize(
    "time", [-1, -0.5, float("nan"), float("inf"), 1e300, "1", None, 10**400, 1j]
)
def test_invalid_time_of_a_clock_is_an_error(time: Any) -> None:
    clock = ManualClock()
    for call in (ManualClock, clock.advance, clock.set):
        with pytest.raises(ArgumentError, match="number of seconds"):
            call(time)
    assert clock.now() == 0.0


def test_throttles_share_a_clock(clock: ManualClock) -> None:
    throttles = [Throttle("1/s", clock=clock), Throttle.from_toml('rate = "1/s"', clock=clock)]
    for throttle in throttles:
        assert throttle.allow("t")
        assert not throttle.allow("t")
    clock.advance(1)
    assert all(throttle.allow("t") for throttle in throttles)


@pytest.mark.parametrize("clock", [0, "system", ManualClock])
def test_clock_of_another_type_is_an_error(clock: Any) -> None:
    with pytest.raises(ArgumentError, match="must be a ManualClock"):
        Throttle("1/s", clock=clock)


def test_throttle_without_a_clock_uses_the_system_clock() -> None:
    throttle = Throttle("1000000/s", burst=1)
    assert throttle.allow("t")
    assert any(throttle.allow("t") for _ in range(1_000_000))


def test_configuration_accepts_any_mapping_and_tuple() -> None:
    domains: Any = MappingProxyType({"api": MappingProxyType({"rules": ({"rate": 5},)})})
    throttle = Throttle(domains=domains)
    assert [rule.limit for rule in throttle.domain("api").rules] == [5]
    assert throttle.rules == ()


def circular() -> list[Any]:
    """Return a list that contains itself."""
    items: list[Any] = [{"rate": 1}]
    items[0]["rate"] = items
    return items


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"rate": None}, "rate"),
        ({"burst": None, "rules": [{"rate": None}]}, "rules[0].rate"),
        ({"rules": [{"rate": circular()}]}, "rules[0].rate"),
        ({"rules": {"rate": 1}}, "rules"),
        ({"rules": {1, 2}}, "rules[0]"),
        ({"rules": iter([1, 2])}, "rules"),
        ({"rules": "1/s"}, "rules"),
        ({"rules": [{"rate": 1, 2: 3}]}, "rules[0]"),
        ({"domains": {1: {"rate": 1}}}, "domains"),
        ({"domains": {"api": {"rate": 1, "\ud800": 1}}}, "domains.api"),
        ({"domains": {"api": None}}, "domains.api"),
        ({"rate": "\ud800"}, "rate"),
        ({"rate": b"1/s"}, "rate"),
        ({"rate": True}, "rate"),
        ({"rate": 10**400}, "rate"),
        ({"rate": 1, "burst": object()}, "burst"),
        ({"rate": 1, "dry_run": 1}, "dry_run"),
        ({}, "rate"),
        ({"domains": {"api": {}}}, "rate"),
        ({"burst": 5}, "burst"),
    ],
)
def test_configuration_error_names_the_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Throttle(**options)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"`{field}` ")


def test_deeply_nested_configuration_is_an_error() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ConfigError):
        Throttle(rate=deep)
    while deep:  # freeing them all at once would be a deep recursion in Python
        deep = deep.pop()


@pytest.mark.parametrize("text", [None, 5, b'rate = "1/s"', "rate = \ud800"])
def test_toml_of_another_type_is_an_error(text: Any) -> None:
    with pytest.raises(ArgumentError, match="`text` must be "):
        Throttle.from_toml(text)


@pytest.mark.parametrize("path", [None, 5, b"dthrottle.toml", "\ud800"])
def test_path_of_another_type_is_an_error(path: Any) -> None:
    with pytest.raises(ArgumentError, match="`path` must be "):
        Throttle.from_file(path)


def test_unreadable_file_is_a_file_error(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    for path in (missing, str(missing), tmp_path, "nul\0"):
        with pytest.raises(FileError, match="cannot read") as caught:
            Throttle.from_file(path)
        assert isinstance(caught.value, OSError)


def test_file_that_is_not_utf_8_is_a_file_error(tmp_path: Path) -> None:
    path = tmp_path / "latin1.toml"
    path.write_bytes(b"# \xe9\n")
    with pytest.raises(FileError):
        Throttle.from_file(path)


def test_every_error_class_keeps_message_field_and_line() -> None:
    for kind, error in BY_KIND.items():
        one = error("a message", "field", 3)
        assert str(one) == "a message"
        assert (one.kind, one.field, one.line) == (kind, "field", 3)
        assert (error("x").field, error("x").line) == (None, None)


@pytest.mark.parametrize("kind", BY_KIND)
def test_errors_can_be_pickled(kind: str) -> None:
    one = BY_KIND[kind]("a message", "field", 3)
    other = pickle.loads(pickle.dumps(one))
    assert type(other) is type(one)
    assert (str(other), other.field, other.line) == (str(one), one.field, one.line)


def test_panic_becomes_an_internal_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InternalError, match=r"a bug in dthrottle.*: oops") as caught:
        native._panic("oops")
    assert isinstance(caught.value, Exception)
    assert isinstance(caught.value, DthrottleError)
    assert "oops" in capfd.readouterr().err
