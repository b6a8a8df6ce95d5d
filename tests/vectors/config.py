"""Reads a configuration object into domains and rules. A BadConfig names the wrong field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from cluster import check_cluster
from rates import Bad, parse_burst, parse_rate
from shapes import BYTES, BadConfig, Config, check_keys, flag, proper_name

RULE_KEYS = ("name", "rate", "burst", "charge_refused")
DOMAIN_KEYS = ("rate", "burst", "charge_refused", "rules", "dry_run")
TOP_KEYS = (*DOMAIN_KEYS, "domains", "table", "cluster")
TABLE_KEYS = ("name", "size", "group", "dir", "default_name", "private")
MAX_RULES = 16
MAX_RULES_IN_ALL = 1000
MAX_TAGS = 2**36
# The approximate size of the smallest table. A named table, or one of a cluster (`True`), also has
# at least 2^16 cache lines.
FEWEST_BYTES = {True: 4_400_000, False: 200_000}


@dataclass(frozen=True)
class Rule:
    name: str
    interval: Fraction  # T: nanoseconds per unit
    burst: int
    charge_refused: bool


@dataclass(frozen=True)
class Domain:
    rules: tuple[Rule, ...]
    dry_run: bool


def load(config: Config) -> dict[str, Domain]:
    check_keys(config, TOP_KEYS, "")
    top_dry_run = flag(config, "dry_run", "", default=False)
    domains = {"default": Domain(rules_of(config, ""), top_dry_run)}
    if "table" in config:
        check_table(config["table"], "cluster" in config)
    if "cluster" in config:
        check_cluster(config["cluster"])
    tables = config.get("domains", {})
    if not isinstance(tables, Mapping):
        raise BadConfig("domains")
    for name, table in tables.items():
        path = f"domains.{name}"
        if not proper_name(name) or not isinstance(table, Mapping):
            raise BadConfig(path)
        if name == "default" and ("rate" in config or domains["default"].rules):
            raise BadConfig(path)
        check_keys(table, DOMAIN_KEYS, path + ".")
        dry_run = flag(table, "dry_run", path + ".", default=top_dry_run)
        domains[name] = Domain(rules_of(table, path + "."), dry_run)
    tables = [config, *tables.values()]
    if not any("rules" in table or "rate" in table for table in tables):
        raise BadConfig("rate")  # no domain has a limit
    if sum(len(domain.rules) for domain in domains.values()) > MAX_RULES_IN_ALL:
        raise BadConfig("domains")
    return domains


def rules_of(table: Config, path: str) -> tuple[Rule, ...]:
    """Return the rules of a domain. `path` is the prefix of its keys."""
    if "rate" in table and "rules" in table:
        raise BadConfig(path + "rate")
    if table.get("rate") == "unlimited" and not {"burst", "charge_refused"} & table.keys():
        return ()
    if "rate" in table:
        return (rule_of(table, path, "rule1"),)
    for key in ("burst", "charge_refused"):
        if key in table:
            raise BadConfig(path + key)
    listed = table.get("rules", [])
    if not isinstance(listed, list) or len(listed) > MAX_RULES:
        raise BadConfig(path + "rules")
    rules: list[Rule] = []
    for index, entry in enumerate(listed):
        here = f"{path}rules[{index}]"
        if not isinstance(entry, Mapping):
            raise BadConfig(here)
        check_keys(entry, RULE_KEYS, here + ".")
        name = entry.get("name", f"rule{index + 1}")
        if not proper_name(name) or name in [rule.name for rule in rules]:
            raise BadConfig(here + ".name")
        rules.append(rule_of(entry, here + ".", str(name)))
    return tuple(rules)


def rule_of(table: Config, path: str, name: str) -> Rule:
    try:
        rate = parse_rate(table.get("rate"))
    except Bad as bad:
        raise BadConfig(path + "rate") from bad
    if "burst" in table and table["burst"] is None:
        raise BadConfig(path + "burst")
    try:
        burst = parse_burst(table.get("burst"), rate)
    except Bad as bad:
        raise BadConfig(path + "burst") from bad
    return Rule(name, rate.interval, burst, flag(table, "charge_refused", path, default=False))


def check_table(table: object, clustered: bool) -> None:
    if isinstance(table, str):
        table = {"name": table}
    if not isinstance(table, Mapping):
        raise BadConfig("table")
    check_keys(table, TABLE_KEYS, "table.")
    private = flag(table, "private", "table.", default=False)
    if "name" in table and (private or not proper_table_name(table["name"])):
        raise BadConfig("table.name")
    for key, kinds in (("group", (str, int)), ("dir", (str,))):
        value = table.get(key, "")
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise BadConfig("table." + key)
        if key in table and "name" not in table:
            raise BadConfig("table." + key)
    if flag(table, "default_name", "table.", default=False) and "name" not in table:
        raise BadConfig("table.default_name")
    if "size" in table and not proper_size(table["size"], clustered or "name" in table):
        raise BadConfig("table.size")


def proper_table_name(name: object) -> bool:
    return isinstance(name, str) and bool(re.fullmatch(r"(?!\.)[A-Za-z0-9_.-]{1,100}", name))


def proper_size(size: object, large: bool) -> bool:
    """Return whether this is a number of tags, or text such as "5 tags" or "64 MB"."""
    if isinstance(size, bool) or not isinstance(size, int | float | str):
        return False
    if not isinstance(size, str):
        return size == int(size) and 1 <= size <= MAX_TAGS
    found = re.fullmatch(r"\s*([0-9]+)\s*([A-Za-z]*)\s*", size)
    if not found:
        return False
    number, unit = int(found[1]), found[2].lower()
    if unit == "tags":
        return 1 <= number <= MAX_TAGS
    return unit in BYTES and FEWEST_BYTES[large] < number * BYTES[unit] < 2**64
