"""Limits that are written at the routes of an application.

Each is checked where it is written. All of them are opened together, by the first request that is
asked about: one throttle, with a domain for each different limit, in one table. So there is one
exchange with the cluster, however many routes have a limit, and nothing is opened in a process that
only loads the application.

A limit counts for each route apart: what is counted is the tag in the scope of the route.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, Final, Generic, TypeVar

from dthrottle._dthrottle import Domain, ManualClock, Throttle
from dthrottle.config import ClusterConfig, DomainConfig, RuleConfig, TableConfig
from dthrottle.errors import ConfigError, DthrottleError
from dthrottle.forked import in_child
from dthrottle.gate import Counts, Gate
from dthrottle.near import known
from dthrottle.options import ELSEWHERE, LIMIT_OPTIONS, Settings, label_of, read_options
from dthrottle.source import Opened, Table, log_table, policies, table_config

__all__ = ["Limit", "Limits", "Rate", "shared"]

Rate = str | float | Mapping[str, Any] | Iterable[str] | Domain
"""A rate, several of them (``"5/minute; 100/hour"`` or a list), a dict with the keys of a domain,
or a domain of a throttle that the application has."""

G = TypeVar("G", bound=Gate[Any])

_logger = logging.getLogger("dthrottle")

_OF_DOMAIN: Final = ("rate", "burst", "charge_refused", "rules")
# Options of middleware that limits do not have, since they share a throttle; what there is instead.
_INSTEAD: Final = {
    "domain": "shared_limit(..., scope=...)",
    "scope": "shared_limit(..., scope=...)",
    "table": "the table of the whole application",
}


class Limits:
    """The limits of an application."""

    def __init__(
        self,
        table: TableConfig,
        cluster: ClusterConfig | None,
        options: Mapping[str, Any],
        *,
        more_follows: bool = False,
    ) -> None:
        """Check what is known of the application; ``configure`` may have to tell more."""
        self._config: dict[str, Any] = {"table": table}
        self._options: dict[str, Any] = {}
        self._waiting: dict[str, DomainConfig] = {}
        self._opened: dict[str, Opened] = {}
        self._gates: list[Gate[Any]] = []
        self._made: list[tuple[Mapping[str, Any], bool]] = []
        self._failed = 0
        self._unlock()
        in_child(self, Limits._unlock)
        self.configure(None, cluster, options)
        self._knows_tags = not more_follows

    def _unlock(self) -> None:
        self._lock = Lock()

    def configure(
        self, table: Table, cluster: ClusterConfig | None, options: Mapping[str, Any]
    ) -> None:
        """Take what is known of the whole application; before its first request."""
        if self._opened and (table is not None or cluster is not None):
            name = "cluster" if table is None else "table"
            raise ConfigError(f"{name}: a request was asked about already; say it before", name)
        config, merged = self._config.copy(), {**self._options, **options}
        if table is not None:
            config["table"] = table_config(table)
        if cluster is not None:
            config["cluster"] = cluster
        # What is allowed is for each limit to check: it may have another tag.
        self._read(merged, can_await=True)
        for of_limit, can_await in self._made:
            self._read({**merged, **of_limit}, can_await=can_await).check_allow()
        _check({"rate": "1/s"}, config)
        _check_table(config["table"])
        self._config, self._options, self._knows_tags = config, merged, True

    @property
    def counts(self) -> Counts:
        """What happened to requests in this process, by all limits together."""
        total = Counts(failed=self._failed)
        for gate in self._gates:
            total.add(gate.counts)
        return total

    def limit(
        self,
        rate: Rate,
        options: Mapping[str, Any],
        make: Callable[[Settings, Opened], G],
        *,
        can_await: bool,
    ) -> Limit[G]:
        """Check a limit, and make ready to open it."""

        def read() -> Settings:
            return self._read({**self._options, **options}, can_await=can_await)

        def gate(opened: Opened) -> G:
            # The application may have said more since.
            made = make(read(), opened)
            self._gates.append(made)
            return made

        settings = read()
        if self._knows_tags:
            settings.check_allow()
        if isinstance(rate, Domain):
            opened = settings.open(rate)
            self._made.append((options, can_await))
            return Limit(lambda: gate(opened))
        domain = _domain(rate, settings)
        label = _label(domain, settings)
        settings.check_cost(rule.limit for rule in _check(domain, self._config).rules)
        self._made.append((options, can_await))
        with self._lock:
            if label not in self._opened:
                self._waiting[label] = domain
        return Limit(lambda: gate(self._open(label)), label)

    def _read(self, options: Mapping[str, Any], *, can_await: bool) -> Settings:
        known("limit", options, LIMIT_OPTIONS, {**ELSEWHERE, **_INSTEAD})
        return read_options(options, can_await=can_await)

    def _open(self, label: str) -> Opened:
        with self._lock:
            if self._waiting:
                throttle, name = self._throttle()
                for waiting in self._waiting:
                    domain = throttle.domain(waiting)
                    self._opened[waiting] = Opened(domain, policies(domain), name)
                log_table("limits of routes", self._opened[label])
                self._waiting.clear()
            return self._opened[label]

    def _throttle(self) -> tuple[Throttle, str | None]:
        try:
            throttle = Throttle(domains=self._waiting, **self._config)
            return throttle, throttle.table_name
        except DthrottleError:
            # It is too late to stop the start, and requests must go on.
            self._failed += 1
            _logger.exception("cannot open the table: this process counts for itself alone")
            return Throttle(domains=self._waiting, table={"private": True}), None


class Limit(Generic[G]):
    """A limit; its gate opens when it is first asked for."""

    def __init__(self, make: Callable[[], G], label: str | None = None) -> None:
        self.label = label
        """Limits of one label count in the same buckets; None: nobody knows."""
        self._make = make
        self._gate: G | None = None
        self._unlock()
        in_child(self, Limit._unlock)

    def _unlock(self) -> None:
        self._lock = Lock()

    @property
    def gate(self) -> G:
        """What decides about requests."""
        if self._gate is None:
            with self._lock:
                if self._gate is None:
                    self._gate = self._make()
        return self._gate


def shared(scope: object) -> str:
    """Give the scope of a limit that several routes share."""
    if not isinstance(scope, str) or not scope:
        raise ConfigError(f"scope: {scope!r} cannot be; must be text", field="scope")
    return f"shared:{scope}"


def _check(domain: DomainConfig, config: Mapping[str, Any]) -> Domain:
    """Check what is said of a domain and its cluster, without a table."""
    config = {key: value for key, value in config.items() if key != "table"}
    return Throttle(**domain, **config, table={"size": 1}, clock=ManualClock())


def _check_table(table: TableConfig) -> None:
    """Check what is said of a table, without making one."""
    if table.get("private"):
        Throttle("1/s", table=table, clock=ManualClock())
        return
    try:
        Throttle("1/s", table={"name": "any", **table}, clock=ManualClock())
    except ConfigError as error:
        # That a clock moved by hand has no named table is said when all else is right.
        if error.field != "table":
            raise


def _domain(rate: Any, settings: Settings) -> DomainConfig:
    """Read a limit as the configuration of a domain."""
    if isinstance(rate, Mapping):
        known("limit", rate, _OF_DOMAIN)
        domain: dict[str, Any] = dict(rate)
    else:
        domain = _rates(rate)
    if settings.burst is not None:
        if "rate" not in domain or "burst" in domain:
            raise ConfigError("burst: stands beside one rate", field="burst")
        domain["burst"] = settings.burst
    return domain  # type: ignore[return-value]


def _rates(rate: Any) -> dict[str, Any]:
    if isinstance(rate, (int, float)) and not isinstance(rate, bool):
        return {"rate": rate}
    texts = [rate] if isinstance(rate, str) else rate
    if not isinstance(texts, Iterable):
        texts = [texts]
    texts = list(texts)
    if not texts or not all(isinstance(text, str) for text in texts):
        right = 'a rate such as "5/minute", or several: "5/minute; 100/hour"'
        raise ConfigError(f"limit: {rate!r} cannot be; must be {right}", field="limit")
    rates = [one.strip() for text in texts for one in re.split("[;,|]", text)]
    if len(rates) == 1:
        return {"rate": rates[0]}
    rules: list[RuleConfig] = [{"name": one, "rate": one} for one in rates]
    return {"rules": rules}


def _label(domain: DomainConfig, settings: Settings) -> str:
    parts = []
    rules: Any = domain.get("rules", [domain])
    for rule in rules:
        rate = str(rule["rate"])
        more = {key: str(value) for key, value in rule.items() if str(value) != rate}
        parts.append(" ".join([rate, *(f"{key}={more[key]}" for key in sorted(more))]))
    routes = [route.pattern for route in settings.routes]
    return label_of(["; ".join(parts), *sorted(settings.methods or ()), *routes])
