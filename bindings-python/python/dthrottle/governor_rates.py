"""The rates of EOM Governor: a JSON file with a list of them.

A wrong file is a ConfigError that names file, line, entry and field. An unreadable file is a
FileError.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn

from dthrottle.errors import ConfigError, FileError

__all__ = ["Rate", "read_rates", "read_text", "unknown_names"]

_FIELDS: Final = ("name", "limit", "drain_velocity", "route", "methods")
_METHODS: Final = 'a list such as ["GET", "POST"]; leave it out for all methods'

# The limits of a rule of dthrottle.
_MAX_LIMIT: Final = 2**40
_MAX_VELOCITY: Final = 10**9
_MIN_VELOCITY: Final = 1 / (100 * 365 * 86_400)
_VELOCITY: Final = (
    f"a number of requests per second: 0, or from one in 100 years to {_MAX_VELOCITY}"
)
_MAX_NAME: Final = 200


@dataclass(frozen=True)
class Rate:
    """A rate of one of the files."""

    name: str
    limit: float
    """The number in the file."""
    drain_velocity: float
    route: re.Pattern[str] | None
    methods: frozenset[str] | None
    project: str | None

    @property
    def burst(self) -> int:
        """The limit in whole requests; 0 refuses every request."""
        return int(self.limit)

    @property
    def fraction_seconds(self) -> float:
        """The seconds in which the fraction of the limit drains, rounded up to a nanosecond.

        A count that never drains is a whole number, so the fraction has no effect.
        """
        if not self.drain_velocity:
            return 0.0
        fraction = Fraction(str(self.limit)) % 1
        return math.ceil(10**9 * fraction / Fraction(str(self.drain_velocity))) / 1e9

    def applies(self, method: str, path: str) -> bool:
        """Return whether the rate applies to a request."""
        if self.methods is not None and method not in self.methods:
            return False
        return self.route is None or self.route.fullmatch(path) is not None


def read_rates(path: Path, key: str, logger: logging.Logger) -> list[Rate]:
    """Read the file that the INI file names with ``key``."""
    text = read_text(path, key)
    try:
        entries = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"{path}: line {error.lineno}, column {error.colno}: must be JSON: {error.msg}"
        raise ConfigError(what, field=key, line=error.lineno) from error
    except (
        RecursionError,
        ValueError,
    ) as error:  # nested too deeply, or a number with too many digits
        raise ConfigError(f"{path}: must be a list of rates: {error}", field=key) from error
    if not isinstance(entries, list):
        what = f'{path}: must be a list of rates, such as [{{"name": ...}}, ...]'
        raise ConfigError(what, field=key, line=1)
    rates = []
    decoder, blank = json.JSONDecoder(), re.compile(r"[\s,]*")
    end = text.index("[") + 1
    for index, entry in enumerate(entries):
        # Each entry is decoded again, because this tells its position in the text.
        start = end + len(blank.match(text, end)[0])  # type: ignore[index]
        _, end = decoder.raw_decode(text, start)
        rates.append(_Entry(path, key, index, entry, (text, start, end), logger).rate())
    return rates


def read_text(path: Path, field: str) -> str:
    """Read a file of text."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise ConfigError(f"{path}: must be UTF-8: {error}", field=field) from error
        why = getattr(error, "strerror", None) or error
        raise FileError(f"`{field}` cannot be read from {path}: {why}", field=field) from error


def unknown_names(given: Iterable[str], names: tuple[str, ...]) -> list[tuple[str, str | None]]:
    """Return the unknown names, each with a similar known name if there is one."""
    return [
        (name, next(iter(get_close_matches(name.lower(), names, 1, cutoff=0.8)), None))
        for name in given
        if name not in names
    ]


class _Entry:
    """One entry of a file."""

    def __init__(
        self,
        path: Path,
        key: str,
        index: int,
        entry: Any,
        span: tuple[str, int, int],
        logger: logging.Logger,
    ) -> None:
        self._path, self._key, self._index, self._entry = path, key, index, entry
        self._span, self._logger = span, logger

    def rate(self) -> Rate:
        if not isinstance(self._entry, dict):
            self._wrong("", 'must be an object such as {"name": ..., "limit": ...}')
        of_project = self._key == "project_rates_file"
        names = (*_FIELDS, "project") if of_project else _FIELDS
        for field, near in unknown_names(self._entry, names):
            if near:
                self._wrong(field, f"is an unknown field; did you mean {near}?")
            self._logger.warning("%s", self._message(field, "is an unknown field and is ignored"))
        return Rate(
            name=self._name(),
            limit=self._number("limit", 0, _MAX_LIMIT, f"a number from 0 to {_MAX_LIMIT}"),
            drain_velocity=float(
                self._number("drain_velocity", _MIN_VELOCITY, _MAX_VELOCITY, _VELOCITY)
            ),
            route=self._route(),
            methods=self._methods(),
            project=self._text("project") if of_project else None,
        )

    def _name(self) -> str:
        name = self._text("name")
        if not name or not name.isprintable() or len(name.encode()) > _MAX_NAME:
            self._must_be("name", f"printable text of 1 to {_MAX_NAME} bytes")
        return name

    def _text(self, field: str) -> str:
        value = self._entry.get(field)
        if not isinstance(value, str):
            self._must_be(field, "text")
        return value

    def _number(self, field: str, least: float, most: float, right: str) -> float:
        """Return a number that is 0 or from ``least`` to ``most``."""
        value = self._entry.get(field)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not (value == 0 or least <= value <= most):
            self._must_be(field, right)
        return value  # type: ignore[no-any-return]

    def _route(self) -> re.Pattern[str] | None:
        if self._entry.get("route") is None:
            return None
        try:
            # The dot also matches a line break in a path, %0A.
            return re.compile(self._text("route"), re.DOTALL)
        except (re.error, OverflowError, RecursionError) as error:
            self._must_be("route", f"a regular expression of Python ({error})", error)

    def _methods(self) -> frozenset[str] | None:
        values = self._entry.get("methods")
        if values is None:
            return None
        if isinstance(values, str):
            # Governor makes a set of the letters.
            what = f"is text, so the rate matches no request; write {[values]!r}"
            self._logger.warning("%s", self._message("methods", what))
        elif not isinstance(values, list):
            self._must_be("methods", _METHODS)
        else:
            for value in values:
                if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z-]*", value):
                    self._must_be("methods", _METHODS)
        return frozenset(value.upper() for value in values)

    # Errors.

    def _must_be(self, field: str, right: str, cause: BaseException | None = None) -> NoReturn:
        if field not in self._entry:
            self._wrong(field, f"must be {right}, but is missing")
        value = repr(self._entry[field])
        shown = value if len(value) <= 80 else value[:80] + "..."
        self._wrong(field, f"must be {right}, got {shown}", cause)

    def _wrong(self, field: str, what: str, cause: BaseException | None = None) -> NoReturn:
        name = f"{self._key}[{self._index}]" + (f".{field}" if field else "")
        raise ConfigError(self._message(field, what), field=name, line=self._line(field)) from cause

    def _message(self, field: str, what: str) -> str:
        name = self._entry.get("name") if isinstance(self._entry, dict) else None
        entry = f"rate {self._index + 1}" + (f" ({name!r:.80})" if isinstance(name, str) else "")
        return ": ".join(
            [
                str(self._path),
                f"line {self._line(field)}",
                entry,
                f"`{field}` {what}" if field else what,
            ]
        )

    def _line(self, field: str) -> int:
        text, start, end = self._span
        # Inside a JSON string the quotes would be escaped.
        found = re.compile(rf"{re.escape(json.dumps(field))}\s*:").search(text, start, end)
        return text.count("\n", 0, found.start() if found else start) + 1
