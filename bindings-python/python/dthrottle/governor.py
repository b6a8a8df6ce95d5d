"""EOM Governor for any WSGI application, with its files and without Redis.

    from dthrottle.governor import wrap

    application = wrap(application, "/etc/eom/eom.conf")

docs/governor.md describes the files and the differences.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from dthrottle._dthrottle import Decision, ManualClock
from dthrottle.config import ClusterConfig
from dthrottle.errors import ConfigError
from dthrottle.governor_files import Config, read_files
from dthrottle.governor_rules import Rule, open_rules
from dthrottle.middleware import Fields
from dthrottle.options import Kind, Table, check_names
from dthrottle.wsgi import DECISION, WsgiReader

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from typing_extensions import Unpack

__all__ = ["Config", "Counts", "Governor", "Options", "wrap"]

_HIT: Final = 'Hit limit of %s per sec. for project %s according to rate rule "%s"'
_EMPTY: Final = ("Content-Length", "0")
_MAX_SHOWN: Final = 200


class Options(TypedDict, total=False):
    """The options, for type checkers."""

    headers: Kind
    table: Table
    cluster: ClusterConfig
    logger: str
    clock: ManualClock


@dataclass
class Counts:
    """The requests of this process, by their result."""

    passed: int = 0
    refused: int = 0
    unmatched: int = 0
    """Passed because no rate matched."""
    without_project: int = 0
    """Got the status 400."""
    failed: int = 0
    """Passed because the throttle failed."""


class _RateDecision(NamedTuple):
    rule: Rule
    decision: Decision | None
    """None if the rate refuses every request."""
    fields: Fields

    @property
    def allowed(self) -> bool:
        return self.decision is not None and self.decision.allowed


class Governor:
    """Limits every project by its rates."""

    def __init__(self, app: WSGIApplication, config: Config, **options: Unpack[Options]) -> None:
        self.app = app
        self.counts = Counts()
        check_names(options, Options.__annotations__, more=False)
        kind = options.get("headers")
        kind = True if kind is None else kind
        self._logger = _logger(options.get("logger"))
        files = read_files(config, self._logger)
        opened = open_rules(
            files,
            kind,
            options.get("table"),
            options.get("cluster"),
            options.get("clock"),
            self._logger,
        )
        self._native = opened.native
        prefix = "[eom:redis] is not used any more: " if files.redis else ""
        self._logger.info("%sthe counts are %s", prefix, opened.shared)
        self._general, self._of_project = opened.general, opened.of_project
        self._sleep = files.sleep
        self._has_fields = kind not in (False, "none")
        self._reader: WsgiReader[WSGIEnvironment] = WsgiReader(lambda environ: environ)
        self._has_failed = False

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        project = self._reader.header(environ, "X-Project-ID")
        if project is None:
            self.counts.without_project += 1
            start_response("400 Bad Request", [_EMPTY])
            return []
        decided = self._decide(environ, _tag(project))
        if decided is None:
            return self.app(environ, start_response)
        if decided.allowed:
            environ[DECISION] = decided.decision
            return self.app(environ, _adding(start_response, decided))
        time.sleep(self._sleep)
        more = [*decided.rule.retry_after(decided.decision), *decided.fields]
        start_response("429 Too Many Requests", [_EMPTY, *(more if self._has_fields else [])])
        return []

    def _decide(self, environ: WSGIEnvironment, tag: bytes) -> _RateDecision | None:
        """Check the rate of a request. Return None if it passes without a decision."""
        try:
            project = tag.decode("utf-8", "replace")
            rule = self._rule(project, self._reader.method(environ), self._reader.path(environ))
            if rule is None:
                self.counts.unmatched += 1
                return None
            decision = rule.check(tag)
            decided = _RateDecision(rule, decision, rule.fields(decision))
            if not decided.allowed:
                self._logger.warning(_HIT, rule.rate.limit, _shown(project), rule.rate.name)
        except Exception:
            self.counts.failed += 1
            if not self._has_failed:
                self._has_failed = True
                self._logger.exception("the throttle failed; this is logged once, and counted")
            return None
        if decided.allowed:
            self.counts.passed += 1
        else:
            self.counts.refused += 1
        return decided

    def _rule(self, project: str, method: str, path: str) -> Rule | None:
        """Return the first matching rule: of the project, or else of the general ones."""
        for rules in (self._of_project.get(project, ()), self._general):
            for rule in rules:
                if rule.rate.applies(method, path):
                    return rule
        return None


def wrap(app: WSGIApplication, config: Config, **options: Unpack[Options]) -> Governor:
    """Wrap an application in a Governor. ``config`` is the path of the INI file."""
    return Governor(app, config, **options)


def _logger(name: object) -> logging.Logger:
    if name is not None and (not isinstance(name, str) or not name):
        raise ConfigError(f"`logger` must be the name of a logger, got {name!r}", field="logger")
    return logging.getLogger(name or "dthrottle.governor")


def _tag(project: str) -> bytes:
    """Return the bytes that were sent, which WSGI decodes as latin-1."""
    # Other blanks of latin-1 may be the last byte of a letter in UTF-8.
    return project.strip(" \t").encode("latin-1", "replace")


def _shown(project: str) -> str:
    """Escape a project id for the log, because clients choose it and must not add lines."""
    if project.isprintable() and len(project) <= _MAX_SHOWN:
        return project
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in project[:_MAX_SHOWN]
    )
    return shown if len(project) <= _MAX_SHOWN else shown + "..."


def _adding(start_response: StartResponse, decided: _RateDecision) -> StartResponse:
    fields, writer = decided.fields, decided.rule.headers
    if not fields:
        return start_response
    is_list = writer is not None and writer.is_list

    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None, /) -> Any:
        # Lists contain the entries of all throttles; other fields are those of the inner one.
        there = set() if is_list else {name.lower() for name, _ in headers}
        more = [field for field in fields if field[0].lower() not in there]
        if exc_info is None:
            return start_response(status, [*headers, *more])
        return start_response(status, [*headers, *more], exc_info)

    return start
