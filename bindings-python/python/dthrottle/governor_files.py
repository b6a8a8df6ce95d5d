"""The INI file of EOM Governor, and what it names: two files of rates, and one for logging.

A file that is wrong is a ConfigError, one that cannot be read a FileError; both say what would be
right. docs/governor.md has the keys.
"""

from __future__ import annotations

import configparser
import logging
import logging.config
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from dthrottle.errors import ConfigError
from dthrottle.governor_rates import Rate, read_rates, read_text, unknown_names

__all__ = ["Config", "Files", "read_files"]

Config = str | os.PathLike[str] | Mapping[str, Mapping[str, Any]]
"""The path of an INI file, or its sections: a ConfigParser, or a dict of dicts."""

_GOVERNOR: Final = "eom:governor"
_REDIS: Final = "eom:redis"
_KEYS: Final = (
    "rates_file",
    "project_rates_file",
    "throttle_milliseconds",
    "log_config_file",
    "log_config_disable_existing",
)
_BOOLEANS: Final = configparser.ConfigParser.BOOLEAN_STATES
_LONGEST: Final = 3_600_000


@dataclass(frozen=True)
class Files:
    """All that the files say."""

    rates: list[Rate]
    project_rates: list[Rate]
    sleep: float
    """Seconds before a refusal."""
    redis: bool
    """Whether there is a section about Redis."""


def read_files(config: Config, logger: logging.Logger) -> Files:
    """Read the INI file, configure logging if it says so, and read the rates."""
    ini = _given(config) if isinstance(config, Mapping) else _read(config)
    ini.check_names(logger)
    sleep = ini.milliseconds("throttle_milliseconds") / 1000
    _configure_logging(ini, logger)
    path = ini.path("rates_file")
    if path is None:
        ini.wrong("rates_file", "is missing; must be the path of a JSON file with rates")
    rates = read_rates(path, "rates_file", logger)
    return Files(rates, _project_rates(ini, logger), sleep, ini.redis)


def _project_rates(ini: _Ini, logger: logging.Logger) -> list[Rate]:
    path = ini.path("project_rates_file")
    if path is None:
        logger.warning("project_rates_file is not given: no project has rates of its own")
    elif not path.exists():
        logger.warning("project_rates_file %s is not there: no project has rates of its own", path)
    else:
        return read_rates(path, "project_rates_file", logger)
    return []


def _configure_logging(ini: _Ini, logger: logging.Logger) -> None:
    path, disable = ini.path("log_config_file"), ini.flag("log_config_disable_existing")
    if path is None:
        return
    read_text(path, "log_config_file")  # says what is wrong, which fileConfig does not
    try:
        logging.config.fileConfig(path, disable_existing_loggers=disable, encoding="utf-8")
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        ini.wrong("log_config_file", f"{path} does not configure logging: {why}", error)
    # Who wants the others silent still wants to hear of limits.
    for name in (logger.name, "dthrottle"):
        logging.getLogger(name).disabled = False


def _given(sections: Mapping[str, Any]) -> _Ini:
    for name in (_GOVERNOR, _REDIS):
        if name in sections and not isinstance(sections[name], Mapping):
            right = "must be a dict with its keys"
            raise ConfigError(f"config: {name}: {sections[name]!r} cannot be; {right}", field=name)
    return _Ini(sections, None, "")


def _read(path: object) -> _Ini:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        right = "must be the path of an INI file, or a dict of its sections"
        raise ConfigError(f"config: {path!r} cannot be; {right}", field="config")
    where = Path(path)
    text = read_text(where, "config")
    # As oslo.config does: names have a case, % is a sign like any other, the last of two counts,
    # and [DEFAULT] is for nobody else.
    parser = configparser.ConfigParser(interpolation=None, strict=False, default_section="\0")
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    try:
        parser.read_string(text, str(where))
    except configparser.Error as error:
        # The first of several, or the only one.
        line = next(iter(getattr(error, "errors", ())), [getattr(error, "lineno", None)])[0]
        what = f"{where}: line {line}: not INI: write [{_GOVERNOR}], and below it key = value"
        raise ConfigError(what, field="config", line=line) from error
    return _Ini(parser, where, text)


class _Ini:
    """The section of Governor."""

    def __init__(
        self, sections: Mapping[str, Mapping[str, Any]], path: Path | None, text: str
    ) -> None:
        self._path, self._text = path, text
        if _GOVERNOR not in sections:
            what = f"{path or 'config'}: there is no section [{_GOVERNOR}]"
            raise ConfigError(what, field=_GOVERNOR)
        given = sections[_GOVERNOR].items()
        self._values = {key: _unquoted(str(value)) for key, value in given if value is not None}
        self.redis = _REDIS in sections

    def check_names(self, logger: logging.Logger) -> None:
        for key, near in unknown_names(self._values, _KEYS):
            if near:
                self.wrong(key, f"is unknown; did you mean {near}?")
            logger.warning("%s", self._says(key, "is not known, and left aside"))

    def path(self, key: str) -> Path | None:
        """Give a path; what is relative begins at the folder of the file."""
        value = self._values.get(key)
        return Path(self._path.parent if self._path else "", value) if value else None

    def flag(self, key: str) -> bool:
        value = self._values.get(key) or "False"
        if value.lower() not in _BOOLEANS:
            self.wrong(key, f"{value!r} cannot be; must be True or False")
        return _BOOLEANS[value.lower()]

    def milliseconds(self, key: str) -> float:
        value = self._values.get(key) or "0"
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number <= _LONGEST:
            self.wrong(key, f"{value!r} cannot be; must be a number from 0 to {_LONGEST}")
        return number

    def wrong(self, key: str, what: str, cause: BaseException | None = None) -> NoReturn:
        raise ConfigError(self._says(key, what), field=key, line=self._line(key)) from cause

    def _says(self, key: str, what: str) -> str:
        line = self._line(key)
        where = [str(self._path or "config"), f"line {line}" if line else ""]
        return ": ".join(filter(None, [*where, f"[{_GOVERNOR}] {key}", what]))

    def _line(self, key: str) -> int | None:
        found, inside = None, False
        for number, line in enumerate(self._text.splitlines(), 1):
            if line.startswith("["):
                inside = line.startswith(f"[{_GOVERNOR}]")
            elif inside and re.match(rf"{re.escape(key)}\s*[=:]", line):
                found = number
        return found


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value
