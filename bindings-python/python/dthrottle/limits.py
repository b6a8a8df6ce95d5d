"""Limits that are written at the routes of an application.

Options are checked where a limit is written. All limits share one throttle, with a domain for each
different limit, in one table. So there is one exchange with the cluster, however many routes have a
limit, and the table is opened by the first request.

Each route has its own buckets: a limit counts the tag in the scope of the route.
"""

from __future__ import annotations

import re
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
or a domain of a throttle that the application has."""

_OF_DOMAIN: Final = ("rate", "burst", "charge_refused", "rules")
_OF_RATE: Final = ("throttle", "file", "rate", "rules", "domains", "charge_refused", "clock")
# Options of middleware that limits do not have, since they share a throttle; what there is instead.
_INSTEAD: Final = {
    **dict.fromkeys(("domain", "scope"), "shared_limit(..., scope=...)"),
    **dict.fromkeys(("table", "cluster"), "that of the whole application"),
    **dict.fromkeys(_OF_RATE, "the limit itself, such as limit({'rate': '5/minute'})"),
}


class Limit(Generic[Request]):
    """A limit, before and after its first request."""

    def __init__(
        self, source: Mapping[str, Any], options: Mapping[str, Any], place: str, can_await: bool
    ) -> None:
        self.source = source
        """The options of the domain: its rates, or a throttle."""
        self.options = options
        """The options of this limit alone."""
        self.place = place
        self.can_await = can_await
        self.http: HttpThrottle[Request]
        self.is_used = False

    @property
    def label(self) -> str | None:
        """Limits of one label count in the same buckets; None: unknown."""
        return None if "throttle" in self.source else self.http.native.domain_name


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
        more_follows: bool = False,
    ) -> None:
        """Check the application's options; ``more_follows``: ``configure`` will add others."""
        self._reader = reader
        self._application = application_name(made_in)
        self._config: dict[str, Any] = {}
        self._options: dict[str, Any] = {}
        self._limits: list[Limit[Request]] = []
        self._shared: SharedThrottle | None = None
        self._is_complete = False
        self.configure(table, cluster, options)
        self._is_complete = not more_follows

    def configure(
        self, table: Table, cluster: ClusterConfig | None, options: Mapping[str, Any]
    ) -> None:
        """Add options of the whole application, before its first request."""
        config = {"table": table, "cluster": cluster}
        config = {name: value for name, value in config.items() if value is not None}
        is_used = any(limit.is_used for limit in self._limits)
        if is_used and config:
            name = next(iter(config))
            raise ConfigError(f"{name}: must be given before the first request", field=name)
        config, options = {**self._config, **config}, {**self._options, **options}
        _check(config, options)
        shared, made = self._shared if is_used else None, []
        for limit in self._limits:
            # A limit that was used keeps its counts, and its options.
            if not limit.is_used:
                http = self._made(limit, config, options, shared)
                shared = shared or http.native.shared
                made.append((limit, http))
        for limit, http in made:
            limit.http = http
        self._config, self._options, self._shared = config, options, shared
        self._is_complete = True

    @property
    def counts(self) -> Counts:
        """The requests of this process, by all limits together."""
        counts = [limit.http.counts for limit in self._limits]
        return Counts(*map(sum, zip(*counts, strict=True)))

    def limit(self, rate: Rate, options: Mapping[str, Any], *, can_await: bool) -> Limit[Request]:
        """Check a limit, and add it to the others."""
        for name in options:
            if name in _INSTEAD:
                message = f"{name}: limits of routes do not have it; use {_INSTEAD[name]}"
                raise ConfigError(message, field=name)
        options = {name: value for name, value in options.items() if value is not None}
        burst = options.pop("burst", self._options.get("burst"))
        source, place = _source(rate, burst)
        limit: Limit[Request] = Limit(source, options, place, can_await)
        is_template = not self._is_complete
        limit.http = self._made(
            limit, self._config, self._options, self._shared, is_template=is_template
        )
        self._shared = self._shared or limit.http.native.shared
        self._limits.append(limit)
        return limit

    def used(self, limit: Limit[Request]) -> HttpThrottle[Request]:
        """Return what decides about a request of a limit."""
        if not limit.is_used:
            is_first = not any(other.is_used for other in self._limits)
            limit.is_used = True
            if is_first and limit.http.native.shared is not None:
                with suppress(DthrottleError):  # the check fails, too, and counts it
                    limit.http.native.domain()
                log_table("limits of routes", limit.http.native)
        return limit.http

    def _made(
        self,
        limit: Limit[Request],
        config: Mapping[str, Any],
        options: Mapping[str, Any],
        shared: SharedThrottle | None,
        *,
        is_template: bool = False,
    ) -> HttpThrottle[Request]:
        options = {**options, **limit.options}
        options.pop("burst", None)
        if "throttle" not in limit.source:
            options.update(config)
        return HttpThrottle(
            {**options, **limit.source},
            self._reader,
            can_await=limit.can_await,
            application=self._application,
            place=limit.place,
            is_template=is_template,
            within=shared,
        )


def shared_scope(scope: object) -> str:
    """Return the scope of a limit that several routes share."""
    if not isinstance(scope, str) or not scope:
        message = f"scope: must be text that is not empty, got {scope!r}"
        raise ConfigError(message, field="scope")
    return f"shared:{scope}"


def _check(config: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Check the options of all limits, with a throttle that nothing else uses."""
    check_functions(options, can_await=True)
    alone = Middleware({"rate": "1/s", "table": False}).shared
    # Each limit checks the cost by its own burst.
    source = {"rate": "1/s", "burst": 2**30}
    Middleware({**options, **config, **source}, within=alone, place="check", is_template=True)


def _source(rate: Any, burst: str | float | None) -> tuple[dict[str, Any], str]:
    """Read a limit: the options of its domain, and a name."""
    if isinstance(rate, Domain):
        return {"throttle": rate}, ""
    source = dict(rate) if isinstance(rate, Mapping) else _rates(rate)
    for name in source:
        if name not in _OF_DOMAIN:
            known = ", ".join(_OF_DOMAIN)
            raise ConfigError(f"{name}: unknown key of a limit; known are: {known}", field=name)
    if burst is not None:
        if "rate" not in source or "burst" in source:
            raise ConfigError("burst: must be given beside one rate", field="burst")
        source["burst"] = burst
    parts = []
    rules = source.get("rules", [source])
    # The native module says what is wrong with other types.
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
        raise ConfigError(f"limit: must be {right}, got {rate!r}", field="limit")
    rates = [one.strip() for text in texts for one in re.split("[;,|]", text)]
    if len(rates) == 1:
        return {"rate": rates[0]}
    return {"rules": [{"name": one, "rate": one} for one in rates]}
