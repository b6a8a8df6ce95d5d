"""Checks keys, flags and names for all parts of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

BYTES = {"b": 1, "bytes": 1, "k": 10**3, "kb": 10**3, "kib": 2**10, "m": 10**6, "mb": 10**6,
         "mib": 2**20, "g": 10**9, "gb": 10**9, "gib": 2**30}  # fmt: skip

Config = Mapping[str, object]


class BadConfig(Exception):
    """The configuration is wrong. The text is the path of the wrong field."""


def check_keys(table: Config, known: tuple[str, ...], path: str) -> None:
    for key in table:
        if key not in known:
            raise BadConfig(path + key)


def flag(table: Config, key: str, path: str, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise BadConfig(path + key)
    return value


def proper_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and 1 <= len(name.encode()) <= 255
        and not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name)
    )
