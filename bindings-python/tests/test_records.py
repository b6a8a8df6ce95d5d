"""Python has every field of the records and every key of a configuration."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from vectors import read

import dthrottle
from dthrottle import busy, client, config, errors

LISTS = read("records")
RECORDS = ("Decision", "Stats", "ClusterStats", "PeerStats", "ClusterEvent")


def public(record: type) -> set[str]:
    return {name for name in dir(record) if not name.startswith("_")}


@pytest.mark.parametrize("name", RECORDS)
def test_record_has_every_field(name: str) -> None:
    assert public(getattr(dthrottle, name)) == set(LISTS[name]["names"])


def test_busy_stats_have_every_field() -> None:
    assert public(busy.BusyStats) == set(LISTS["BusyStats"]["names"])


def test_decision_of_a_daemon_has_every_field() -> None:
    fields = set(inspect.signature(client.ClientDecision).parameters)
    assert fields == {*LISTS["Decision"]["names"], "failed_open"}


@pytest.mark.parametrize(
    ("shape", "table"),
    [
        (config.RuleConfig, "rule"),
        (config.TableConfig, "table"),
        (config.ClusterConfig, "cluster"),
    ],
)
def test_typed_dict_has_every_key(shape: Any, table: str) -> None:
    keys = shape.__required_keys__ | shape.__optional_keys__
    assert keys == set(LISTS[table]["names"])


@pytest.mark.parametrize(
    ("made", "table"), [(dthrottle.Throttle, "throttle"), (busy.BusyThrottle, "busy")]
)
def test_constructor_takes_every_key(made: type, table: str) -> None:
    assert set(inspect.signature(made).parameters) == {*LISTS[table]["names"], "clock"}


def test_every_kind_of_error_has_a_class() -> None:
    assert list(errors.BY_KIND) == [entry["kind"] for entry in read("errors")]
