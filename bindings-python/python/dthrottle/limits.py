"""Limits for the routes of an application.

Options are checked when a limit is made. All limits share one throttle, with a domain for each
different limit, in one table. So there is one exchange with the cluster, however many routes have a
limit. The first request opens the table.

Each route has its own buckets, because a limit counts the tag in the scope of the route.
"""

from __future__ import annotations

import copy
import re
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, Generic

from dthrottle._dthrottle import Domain, Middleware, SharedThrottle
from dthrottle.application import application_name
from dthrottle.config import ClusterConfig
from dthrottle.errors import ConfigError, DthrottleError
from dthrottle.middleware import Counts, HttpThrottle, Reader, Request, log_table
from dthrottle.options import Table, check_functions

__all__ = ["Limit", "Limits", "Rate", "shared_scope"]

Rate = str | float | Mapping[str, Any] | Iterable[str] | Domain
"""A rate, several of them (``"5/minute; 100/hour"`` or a list), a dict with the keys of a domain,
or a domain of a throttle of the application."""

_OF_DOMAIN: Final = ("rate", "burst", "charge_refused", "rules")
_OF_RATE: Final = ("throttle", "file", "rate", "rules", "domains", "charge_refused", "clock")
# Options of middleware that limits do not have because they share a throttle, and their replacement.
_INSTEAD: Final = {
    **dict.fromkeys(("domain", "scope"), "shared_limit(..., scope=...)"),
    **dict.fromkeys(("table", "cluster"), "the option of the whole application"),
    **dict.fromkeys(_OF_RATE, "the limit itself, such as limit({'rate': '5/minute'})"),
}


class Limit(Generic[Request]):
    """A limit as it was written."""

    def __init__(
        self, source: Mapping[str, Any], options: Mapping[str, Any], name_part: str, can_await: bool
    ) -> None:
        self.source = source
        """The options of the domain: its rates, or a throttle."""
        self.options = options
        """The options of this limit alone."""
        self.name_part = name_part
        self.can_await = can_await


class Limits(Generic[Request]):
    """The limits of an application."""

    def __init__(
        self,
        reader: Reader[Request],
        table: Table,
        cluster: ClusterConfig | None,
        options: Mapping[str, Any],
        *,
        made_in: str | None = None,
        is_complete: bool = True,
    ) -> None:
        """Check the options. Without ``is_complete``, ``complete`` or ``derive`` must follow."""
        self._reader = reader
        self._application = application_name(made_in)
        self._config = _given({"table": table, "cluster": cluster})
        self._options = options
        self._limits: dict[Limit[Request], HttpThrottle[Request]] = {}
        self._shared: SharedThrottle | None = None
        self._is_used = False
        self._is_complete = is_complete
        self._derived: weakref.WeakSet[Limits[Request]] = weakref.WeakSet()
        _check(self._config, options)

    def complete(self) -> None:
        """Check the limits again, now that no options will follow."""
        if not self._is_complete:
            for limit in self._limits:
                self._make(limit, is_template=False)
            self._is_complete = True

    def derive(
        self, table: Table, cluster: ClusterConfig | None, options: Mapping[str, Any]
    ) -> Limits[Request]:
        """Return the same limits with more options, for one of several applications."""
        config = _given({"table": table, "cluster": cluster})
        derived = copy.copy(self)
        derived._config = {**self._config, **config}
        derived._options = {**self._options, **options}
        _check(derived._config, derived._options)
        derived._limits, derived._is_complete = {}, True
        derived._is_used, derived._derived = False, weakref.WeakSet()
        if config:
            derived._shared = None
        for limit in self._limits:
            derived._add(limit)
        self._derived.add(derived)
        return derived

    @property
    def counts(self) -> Counts:
        """The requests of this process, by all limits together."""
        counts = [
            http.counts for limits in (self, *self._derived) for http in limits._limits.values()
        ]
        return Counts(*map(sum, zip(*counts, strict=True)))

    def limit(self, rate: Rate, options: Mapping[str, Any], *, can_await: bool) -> Limit[Request]:
        """Check a limit, and add it to the others."""
        limit = self._read(rate, options, can_await=can_await)
        self._add(limit)
        for derived in self._derived:
            derived._add(limit)
        return limit

    def check(self, rate: Rate, options: Mapping[str, Any]) -> None:
        """Check a limit that is added later."""
        limit = self._read(rate, options, can_await=True)
        alone = Middleware({"rate": "1/s", "table": False}).shared
        self._make(limit, is_template=not self._is_complete, within=alone)

    def used(self, limit: Limit[Request]) -> HttpThrottle[Request]:
        """Return the HttpThrottle of a limit. The first call opens the table."""
        http = self._limits[limit]
        if not self._is_used and http.native.shared is not None:
            self._is_used = True
            with suppress(DthrottleError):  # the check fails as well, and counts the failure
                http.native.domain()
            log_table("limits of routes", http.native)
        return http

    def label(self, limit: Limit[Request]) -> str | None:
        """Return the name of the domain of a limit; None for a domain of the application."""
        return None if "throttle" in limit.source else self._limits[limit].native.domain_name

    def _read(self, rate: Rate, options: Mapping[str, Any], *, can_await: bool) -> Limit[Request]:
        for name in options:
            if name in _INSTEAD:
                message = f"`{name}` is no option of a limit; use {_INSTEAD[name]}"
                raise ConfigError(message, field=name)
        options = _given(options)
        burst = options.pop("burst", self._options.get("burst"))
        source, name_part = _source(rate, burst)
        return Limit(source, options, name_part, can_await)

    def _add(self, limit: Limit[Request]) -> None:
        http = self._make(limit, is_template=not self._is_complete, within=self._shared)
        self._shared = self._shared or http.native.shared
        self._limits[limit] = http

    def _make(
        self,
        limit: Limit[Request],
        *,
        is_template: bool,
        within: SharedThrottle | None = None,
    ) -> HttpThrottle[Request]:
        options = {**self._options, **limit.options}
        options.pop("burst", None)
        if "throttle" not in limit.source:
            options.update(self._config)
        return HttpThrottle(
            {**options, **limit.source},
            self._reader,
            can_await=limit.can_await,
            application=self._application,
            name_part=limit.name_part,
            is_template=is_template,
            within=within,
        )


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def shared_scope(scope: object) -> str:
    """Return the scope of a limit that several routes share."""
    if not isinstance(scope, str) or not scope:
        message = f"`scope` must be text that is not empty, got {scope!r}"
        raise ConfigError(message, field="scope")
    return f"shared:{scope}"


def _check(config: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Check the options of all limits with a private throttle."""
    check_functions(options, can_await=True)
    alone = Middleware({"rate": "1/s", "table": False}).shared
    # The cost is checked by the burst of each limit.
    source = {"rate": "1/s", "burst": 2**30}
    Middleware({**options, **config, **source}, within=alone, name_part="check", is_template=True)


def _source(rate: Any, burst: str | float | None) -> tuple[dict[str, Any], str]:
    """Return the options of the domain of a limit, and a name."""
    if isinstance(rate, Domain):
        return {"throttle": rate}, ""
    source = dict(rate) if isinstance(rate, Mapping) else _rates(rate)
    for name in source:
        if name not in _OF_DOMAIN:
            known = ", ".join(_OF_DOMAIN)
            raise ConfigError(
                f"`{name}` is an unknown key of a limit; known are: {known}", field=name
            )
    if burst is not None:
        if "rate" not in source or "burst" in source:
            raise ConfigError("`burst` must be given with exactly one rate", field="burst")
        source["burst"] = burst
    parts = []
    rules = source.get("rules", [source])
    # The native module reports other types.
    for rule in rules if isinstance(rules, (list, tuple)) else ():
        named = str(rule.get("rate")) if isinstance(rule, Mapping) else str(rule)
        more = rule if isinstance(rule, Mapping) else {}
        others = sorted(f"{key}={value}" for key, value in more.items() if str(value) != named)
        parts.append(" ".join([named, *others]))
    return source, "; ".join(parts)


def _rates(rate: Any) -> dict[str, Any]:
    if isinstance(rate, (int, float)) and not isinstance(rate, bool):
        return {"rate": rate}
    texts = [rate] if isinstance(rate, str) else rate
    texts = list(texts) if isinstance(texts, Iterable) else [texts]
    if not texts or not all(isinstance(text, str) for text in texts):
        right = 'a rate such as "5/minute", or several: "5/minute; 100/hour"'
        raise ConfigError(f"`limit` must be {right}, got {rate!r}", field="limit")
    rates = [one.strip() for text in texts for one in re.split("[;,|]", text)]
    if len(rates) == 1:
        return {"rate": rates[0]}
    return {"rules": [{"name": one, "rate": one} for one in rates]}
