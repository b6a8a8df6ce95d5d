"""From what a middleware was given to a throttle: a Throttle itself, a rate, a dict, or a file.

A throttle that is made here has its table named after the application, so that all workers share
it, unless told otherwise.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dthrottle._dthrottle import Domain, Throttle
from dthrottle.application import application_name
from dthrottle.config import TableConfig
from dthrottle.errors import ConfigError, DthrottleError
from dthrottle.headers import Policy
from dthrottle.near import known

__all__ = [
    "Opened",
    "Source",
    "Table",
    "log_table",
    "open_source",
    "policies",
    "table_config",
    "throttle_on",
]

Source = Domain | str | float | Mapping[str, Any] | os.PathLike[str]
"""A throttle, one of its domains, a rate, the keywords of a Throttle, or the path of a file."""

Table = str | TableConfig | bool | None
"""The name of a table, its description, False for a private one."""

_logger = logging.getLogger("dthrottle")

# Keys of a domain, which stand at the top where there is only one.
_OF_DOMAIN = ("rate", "burst", "charge_refused", "rules")
_OF_THROTTLE = (*_OF_DOMAIN, "domains", "dry_run", "table", "cluster", "clock")

# What has been opened in this process: rules by table and domain.
_opened: dict[tuple[str, str], tuple[Policy, ...]] = {}


class Opened(NamedTuple):
    """A domain, and what is known about it."""

    domain: Domain
    policies: dict[str, Policy]
    """What clients may know of its rules, by the name of the rule."""
    table: str | None
    """The table's name; None: it has none, or the throttle came with it."""


def open_source(source: object, domain: str | None, table: Table, label: str) -> Opened:
    """Open a throttle. The label names the domain of a source that has only one, and no name."""
    if isinstance(source, Domain):
        return _given(source, domain, table)
    if isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".toml")):
        return _from_file(Path(source), domain or "default", table)
    if isinstance(source, (str, float, int)) and not isinstance(source, bool):
        source = {"rate": source}
    if isinstance(source, Mapping):
        return _from_mapping(dict(source), domain, table, label)
    right = "a Throttle, a rate, a dict, or the path of a file"
    raise ConfigError(f"throttle: {source!r} cannot be; must be {right}", field="throttle")


def _given(source: Domain, domain: str | None, table: Table) -> Opened:
    if table is not None:
        raise ConfigError("table: the throttle has one already; give it there", field="table")
    if domain is not None:
        if not isinstance(source, Throttle):
            raise ConfigError("domain: the throttle is a domain already", field="domain")
        source = source.domain(domain)
    return Opened(source, policies(source), None)


def _from_file(path: Path, domain: str, table: Table) -> Opened:
    try:
        throttle, name = throttle_on(lambda made: Throttle.from_file(path, table=made), table)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", field=error.field, line=error.line) from None
    found = throttle.domain(domain)
    return _remembered(Opened(found, policies(found), name))


def _from_mapping(config: dict[str, Any], domain: str | None, table: Table, label: str) -> Opened:
    known("throttle", config, _OF_THROTTLE)
    name = None
    if "table" in config and table is not None:
        raise ConfigError("table: the configuration has one already", field="table")
    # A clock moved by hand has a table of its own.
    has_table = "table" in config or "clock" in config
    if "domains" not in config:
        domain = domain or label
        if domain != "default":
            config["domains"] = {
                domain: {key: config.pop(key) for key in _OF_DOMAIN if key in config}
            }
    if has_table:
        throttle = Throttle(**config)
    else:
        throttle, name = throttle_on(lambda made: Throttle(**config, table=made), table)
    found = throttle.domain(domain or "default")
    return _remembered(Opened(found, policies(found), name))


def table_config(table: Table, made_in: str | None = None) -> TableConfig:
    """Describe a table, by default the application's.

    ``made_in`` says what makes the throttle where it is not the calling file.
    """
    if table is False:
        return {"private": True}
    if isinstance(table, str):
        return {"name": table}
    if table is not None and not isinstance(table, Mapping):
        right = "a name, a dict, or False for a private one"
        raise ConfigError(f"table: {table!r} cannot be; must be {right}", field="table")
    made: TableConfig = {**table} if table else {}
    if "name" not in made and not made.get("private"):
        name = application_name(made_in)
        if name:
            # Whoever joins a cluster, or changes its secret, has another table, and all workers
            # the same.
            made["name"], made["usual"] = name, True
    return made


def throttle_on(
    make: Callable[[TableConfig], Throttle], table: Table
) -> tuple[Throttle, str | None]:
    """Make a throttle on a table, and give the name of that.

    A name that nobody chose may be taken by something that is no table, or is another's: that must
    not keep the application from starting.
    """
    made = table_config(table)
    try:
        throttle = make(made)
        return throttle, throttle.table_name
    except DthrottleError as error:
        if table is not None or "name" not in made:
            raise
        throttle = make({})  # or what is wrong is something else
        message = f"{error}; counts are shared only with forked children"
        warnings.warn(message, RuntimeWarning, stacklevel=6)
        return throttle, None


def policies(domain: Domain) -> dict[str, Policy]:
    """Give what clients may know of the rules of a domain, by the name of the rule."""
    rules = domain.rules
    # A rule that nobody named is known by the domain's name.
    alone = len(rules) == 1 and rules[0].name == "rule1"
    return {
        rule.name: Policy(domain.name if alone else rule.name, rule.limit, rule.window)
        for rule in rules
    }


def log_table(what: str, opened: Opened) -> None:
    """Say where something is counted."""
    table = opened.table
    where = f"shared in table {table}" if table else "in a table without a name"
    _logger.info("throttling by %s, %s", what, where)


def _remembered(opened: Opened) -> Opened:
    """Say so when two middlewares would count under one name by different rules."""
    if opened.table is not None:
        key, rules = (opened.table, opened.domain.name), tuple(opened.policies.values())
        if _opened.setdefault(key, rules) != rules:
            _logger.warning(
                "another middleware of this application counts under domain %r of table %s by other "
                "rules, and they will disturb each other: give one of them domain=..., or give one "
                "middleware all the rules",
                opened.domain.name,
                opened.table,
            )
    return opened
