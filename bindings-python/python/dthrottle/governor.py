"""EOM Governor for any WSGI application, by the files that it always had, without Redis.

    from dthrottle.governor import wrap

    application = wrap(application, "/etc/eom/eom.conf")

docs/governor.md has the files, and what is different.
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
_LONGEST: Final = 200


class Options(TypedDict, total=False):
    """The options, for type checkers."""

    headers: Kind
    table: Table
    cluster: ClusterConfig
    logger: str
    clock: ManualClock


@dataclass
class Counts:
    """What happened in this process."""

    passed: int = 0
    refused: int = 0
    unmatched: int = 0
    """Passed because no rate is for them."""
    without_project: int = 0
    """Were answered with 400."""
    failed: int = 0
    """Errors of the throttle, each of which let a request pass."""


class _Verdict(NamedTuple):
    rule: Rule
    decision: Decision | None
    """None: the rate lets nobody pass."""
    fields: Fields

    @property
    def allowed(self) -> bool:
        return self.decision is not None and self.decision.allowed


class Governor:
    """Holds every project to its rates."""

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
        instead = "[eom:redis] is not used any more: " if files.redis else ""
        self._logger.info("%sthe counts are %s", instead, opened.shared)
        self._general, self._of_project = opened.general, opened.of_project
        self._sleep = files.sleep
        self._says_more = kind not in (False, "none")
        self._reader: WsgiReader[WSGIEnvironment] = WsgiReader(lambda environ: environ)
        self._has_failed = False

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        project = self._reader.header(environ, "X-Project-ID")
        if project is None:
            self.counts.without_project += 1
            start_response("400 Bad Request", [_EMPTY])
            return []
        verdict = self._judge(environ, _tag(project))
        if verdict is None:
            return self.app(environ, start_response)
        if verdict.allowed:
            environ[DECISION] = verdict.decision
            return self.app(environ, _adding(start_response, verdict))
        time.sleep(self._sleep)
        more = [*verdict.rule.retry_after(verdict.decision), *verdict.fields]
        start_response("429 Too Many Requests", [_EMPTY, *(more if self._says_more else [])])
        return []

    def _judge(self, environ: WSGIEnvironment, tag: bytes) -> _Verdict | None:
        """Ask the throttle; None: the request passes, and nothing is to be said about it."""
        try:
            project = tag.decode("utf-8", "replace")
            rule = self._rule(project, self._reader.method(environ), self._reader.path(environ))
            if rule is None:
                self.counts.unmatched += 1
                return None
            decision = rule.check(tag)
            verdict = _Verdict(rule, decision, rule.fields(decision))
            if not verdict.allowed:
                self._logger.warning(_HIT, rule.rate.limit, _shown(project), rule.rate.name)
        except Exception:
            self.counts.failed += 1
            if not self._has_failed:
                self._has_failed = True
                self._logger.exception("the throttle failed; this is logged once, and counted")
            return None
        if verdict.allowed:
            self.counts.passed += 1
        else:
            self.counts.refused += 1
        return verdict

    def _rule(self, project: str, method: str, path: str) -> Rule | None:
        """Give the first rule for a request: of its project's own, then of the general ones."""
        for rules in (self._of_project.get(project, ()), self._general):
            for rule in rules:
                if rule.rate.applies(method, path):
                    return rule
        return None


def wrap(app: WSGIApplication, config: Config, **options: Unpack[Options]) -> Governor:
    """Put a Governor around an application. ``config`` is the path of the INI file."""
    return Governor(app, config, **options)


def _logger(name: object) -> logging.Logger:
    if name is not None and (not isinstance(name, str) or not name):
        raise ConfigError(f"logger: must be the name of one, got {name!r}", field="logger")
    return logging.getLogger(name or "dthrottle.governor")


def _tag(project: str) -> bytes:
    """Give the bytes that were sent, which WSGI decodes as latin-1."""
    # Other blanks of latin-1 may be the last byte of a letter.
    return project.strip(" \t").encode("latin-1", "replace")


def _shown(project: str) -> str:
    """Give a project's id as it may stand in a log: clients choose it, and must not add lines."""
    if project.isprintable() and len(project) <= _LONGEST:
        return project
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in project[:_LONGEST]
    )
    return shown if len(project) <= _LONGEST else shown + "..."


def _adding(start_response: StartResponse, verdict: _Verdict) -> StartResponse:
    fields, writer = verdict.fields, verdict.rule.headers
    if not fields:
        return start_response
    is_list = writer is not None and writer.is_list

    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None, /) -> Any:
        # Two throttles may both speak in a list; otherwise the inner one does.
        there = set() if is_list else {name.lower() for name, _ in headers}
        more = [field for field in fields if field[0].lower() not in there]
        if exc_info is None:
            return start_response(status, [*headers, *more])
        return start_response(status, [*headers, *more], exc_info)

    return start
