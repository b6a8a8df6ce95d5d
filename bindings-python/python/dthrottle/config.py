"""The types of the dicts that configure a Throttle, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict


class _Rate(TypedDict):
    rate: str | float


class RuleConfig(_Rate, total=False):
    """A rule. Only its rate is required."""

    # xtask: rule
    name: str
    burst: str | float
    charge_refused: bool
    # xtask: end


class DomainConfig(TypedDict, total=False):
    """A domain: one rule by its rate, or a list of rules; the rate "unlimited" allows everything."""

    # xtask: domain
    rate: str | float
    burst: str | float
    charge_refused: bool
    rules: list[RuleConfig] | tuple[RuleConfig, ...]
    dry_run: bool
    # xtask: end


class TableConfig(TypedDict, total=False):
    """A table: its size, and which processes share it."""

    # xtask: table
    name: str
    size: int | str
    group: str | int
    dir: str
    default_name: bool
    private: bool
    # xtask: end


class SecretFile(TypedDict):
    """The file that contains a secret."""

    file: str


class _Cluster(TypedDict):
    name: str


class ClusterConfig(_Cluster, total=False):
    """A cluster. Only its name is required. docs/configuration.md explains the keys."""

    # xtask: cluster
    secret: str | SecretFile
    packet_keys: list[str] | tuple[str, ...]
    without_secret: bool
    listen: str
    advertise: str
    peers: list[str] | tuple[str, ...]
    multicast: str
    interface: str
    multicast_ttl: int
    period: str
    reports: Literal["eager", "periodic"]
    tolerance: str
    pacing: bool
    busy: bool
    retention: str
    retention_bytes: int | str
    # xtask: end


Rules = list[RuleConfig] | tuple[RuleConfig, ...]
"""Rules. If several rules have equally few units left, the first one decides."""

Domains = Mapping[str, DomainConfig]
"""Domains by name."""
