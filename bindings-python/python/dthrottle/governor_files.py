"""The INI file of EOM Governor, and the files that it names: two with rates, one for logging.

A wrong file is a ConfigError, an unreadable file a FileError. docs/governor.md has the keys.
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
_MAX_MILLISECONDS: Final = 3_600_000


@dataclass(frozen=True)
class Files:
    """The content of all files."""

    rates: list[Rate]
    project_rates: list[Rate]
    sleep: float
    """Seconds before a refusal."""
    redis: bool
    """Whether the INI file has a section for Redis."""


def read_files(config: Config, logger: logging.Logger) -> Files:
    """Read the INI file, configure logging if it names a file for it, and read the rates."""
    ini = _given(config) if isinstance(config, Mapping) else _read(config)
    ini.check_names(logger)
    sleep = ini.milliseconds("throttle_milliseconds") / 1000
    _configure_logging(ini, logger)
    path = ini.path("rates_file")
    if path is None:
        ini.wrong("rates_file", "must be the path of a JSON file with rates, but is missing")
    rates = read_rates(path, "rates_file", logger)
    return Files(rates, _project_rates(ini, logger), sleep, ini.redis)


def _project_rates(ini: _Ini, logger: logging.Logger) -> list[Rate]:
    path = ini.path("project_rates_file")
    if path is None:
        logger.warning("project_rates_file is missing, so no project has its own rates")
    elif not path.exists():
        logger.warning(
            "project_rates_file %s does not exist, so no project has its own rates", path
        )
    else:
        return read_rates(path, "project_rates_file", logger)
    return []


def _configure_logging(ini: _Ini, logger: logging.Logger) -> None:
    path, disable = ini.path("log_config_file"), ini.flag("log_config_disable_existing")
    if path is None:
        return
    read_text(path, "log_config_file")  # its error is clearer than that of fileConfig
    try:
        logging.config.fileConfig(path, disable_existing_loggers=disable, encoding="utf-8")
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        ini.wrong("log_config_file", f"{path} does not configure logging: {why}", error)
    # Refusals are logged even if existing loggers are disabled.
    for name in (logger.name, "dthrottle"):
        logging.getLogger(name).disabled = False


def _given(sections: Mapping[str, Any]) -> _Ini:
    for name in (_GOVERNOR, _REDIS):
        if name in sections and not isinstance(sections[name], Mapping):
            right = "must be a dict of the keys of the section"
            raise ConfigError(f"`{name}` {right}, got {sections[name]!r}", field=name)
    return _Ini(sections, None, "")


def _read(path: object) -> _Ini:
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        right = "must be the path of an INI file, or a dict of its sections"
        raise ConfigError(f"`config` {right}, got {path!r}", field="config")
    where = Path(path)
    text = read_text(where, "config")
    # Like oslo.config: names are case-sensitive, % has no meaning, the last of equal keys counts, and
    # [DEFAULT] has no effect on other sections.
    parser = configparser.ConfigParser(interpolation=None, strict=False, default_section="\0")
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    try:
        parser.read_string(text, str(where))
    except configparser.Error as error:
        # ParsingError has a list of errors, the others one line number.
        line = next(iter(getattr(error, "errors", ())), [getattr(error, "lineno", None)])[0]
        what = f"{where}: line {line}: must be INI, [{_GOVERNOR}] and below it key = value"
        raise ConfigError(what, field="config", line=line) from error
    return _Ini(parser, where, text)


class _Ini:
    """The section of Governor in the INI file."""

    def __init__(
        self, sections: Mapping[str, Mapping[str, Any]], path: Path | None, text: str
    ) -> None:
        self._path, self._text = path, text
        if _GOVERNOR not in sections:
            what = f"{path or 'config'}: must have the section [{_GOVERNOR}]"
            raise ConfigError(what, field=_GOVERNOR)
        given = sections[_GOVERNOR].items()
        self._values = {key: _unquoted(str(value)) for key, value in given if value is not None}
        self.redis = _REDIS in sections

    def check_names(self, logger: logging.Logger) -> None:
        for key, near in unknown_names(self._values, _KEYS):
            if near:
                self.wrong(key, f"is an unknown key; did you mean {near}?")
            logger.warning("%s", self._message(key, "is an unknown key and is ignored"))

    def path(self, key: str) -> Path | None:
        """Return a path. Relative paths begin at the folder of the INI file."""
        value = self._values.get(key)
        return Path(self._path.parent if self._path else "", value) if value else None

    def flag(self, key: str) -> bool:
        value = self._values.get(key) or "False"
        if value.lower() not in _BOOLEANS:
            self.wrong(key, f"must be True or False, got {value!r}")
        return _BOOLEANS[value.lower()]

    def milliseconds(self, key: str) -> float:
        value = self._values.get(key) or "0"
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number <= _MAX_MILLISECONDS:
            self.wrong(key, f"must be a number from 0 to {_MAX_MILLISECONDS}, got {value!r}")
        return number

    def wrong(self, key: str, what: str, cause: BaseException | None = None) -> NoReturn:
        raise ConfigError(self._message(key, what), field=key, line=self._line(key)) from cause

    def _message(self, key: str, what: str) -> str:
        line = self._line(key)
        where = [str(self._path or "config"), f"line {line}" if line else ""]
        return ": ".join(filter(None, [*where, f"[{_GOVERNOR}] `{key}` {what}"]))

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
