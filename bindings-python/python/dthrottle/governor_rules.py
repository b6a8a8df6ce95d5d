"""Maps the rates of EOM Governor to the domains of one throttle.

Every pair of rate and project has its own bucket. A general rate has a domain with its name, and
project ids are the tags. There may be more rates of projects than a throttle can have domains, so
those with equal numbers share a domain; their tags differ. A rate with a limit below 1 refuses every
request and needs no domain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from logging import Logger
from typing import Any, Final, NamedTuple, TypedDict

from dthrottle._dthrottle import Decision, Domain, Headers, ManualClock, Middleware, Throttle
from dthrottle.application import application_name
from dthrottle.config import ClusterConfig, DomainConfig
from dthrottle.errors import ConfigError
from dthrottle.governor_files import Files
from dthrottle.governor_rates import Rate
from dthrottle.middleware import Fields
from dthrottle.options import Table

__all__ = ["Opened", "Rule", "open_rules"]

_MAX_DOMAINS: Final = 1000
_NEVER: Final = "1 per 100 years"


class CheckOptions(TypedDict, total=False):
    """Options of a check. A request within max_delay passes without a delay."""

    max_delay: float


class Rule(NamedTuple):
    """A rate and its domain."""

    rate: Rate
    domain: Domain | None
    headers: Headers | None
    options: CheckOptions
    """The fraction of the limit. With 2.5 the burst is 2, and a check passes half a request earlier."""

    def check(self, tag: bytes) -> Decision | None:
        """Count a request. Return None if the limit is below 1, which refuses every request."""
        return None if self.domain is None else self.domain.check(tag, **self.options)

    def fields(self, decision: Decision | None) -> Fields:
        """Return the RateLimit fields of a response."""
        if decision is None or self.headers is None:
            return []
        return self.headers.fields(decision)

    def retry_after(self, decision: Decision | None) -> Fields:
        """Return the field Retry-After of a refusal, unless the client never passes again."""
        if decision is None or not self.rate.drain_velocity:
            return []
        seconds = decision.retry_after - self.options.get("max_delay", 0.0)
        # The float of the seconds may be a nanosecond too large, which must not add a second.
        return [("Retry-After", str(max(1, math.ceil(seconds - 1e-9))))]


class Opened(NamedTuple):
    """All rules in the order of the files."""

    general: list[Rule]
    of_project: dict[str, list[Rule]]
    shared: str
    """A text for the log: which processes share the counts."""
    native: Middleware | None
    """The middleware that keeps the throttle open."""


def open_rules(
    files: Files,
    headers: Any,
    table: Table,
    cluster: ClusterConfig | None,
    clock: ManualClock | None,
    logger: Logger,
) -> Opened:
    """Open a throttle for all rates, if there are any."""
    rates = [*files.rates, *files.project_rates]
    names = [*_general_names(files.rates), *_project_names(files.project_rates)]
    named = list(zip(names, rates, strict=True))
    domains = {name: _domain(rate) for name, rate in named if rate.burst > 0}
    if len(domains) > _MAX_DOMAINS:
        raise ConfigError(
            f"`rates_file` and `project_rates_file` must have at most {_MAX_DOMAINS} different rates, "
            f"got {len(domains)} (rates of projects with equal limit and drain_velocity count as one)",
            field="project_rates_file",
        )
    native: Middleware | None = None
    throttle: Throttle | None = None
    if domains:
        options = {"domains": domains, "domain": next(iter(domains)), "headers": headers}
        native = Middleware(
            {**options, "table": table, "cluster": cluster, "clock": clock},
            application=application_name(),
            on_warning=lambda _code, message: logger.warning("%s", message),
        )
        throttle = native.open()
        native.domain()  # from now on no other middleware adds domains to the throttle
    rules = [
        _rule(rate, throttle.domain(name) if throttle and name in domains else None, headers)
        for name, rate in named
    ]
    of_project: dict[str, list[Rule]] = {}
    for rule in rules[len(files.rates) :]:
        of_project.setdefault(rule.rate.project or "", []).append(rule)
    shared = _shared(native, table, cluster)
    return Opened(rules[: len(files.rates)], of_project, shared, native)


def _domain(rate: Rate) -> DomainConfig:
    velocity = rate.drain_velocity or _NEVER
    return {"rate": velocity, "burst": rate.burst, "charge_refused": True}


def _rule(rate: Rate, domain: Domain | None, headers: Any) -> Rule:
    if domain is None:
        return Rule(rate, None, None, {})
    seconds = rate.fraction_seconds
    options: CheckOptions = {"max_delay": seconds} if seconds else {}
    return Rule(rate, domain, Headers(headers, rate.name, domain), options)


def _general_names(rates: list[Rate]) -> list[str]:
    """Return a domain name for each rate. A number distinguishes equal names."""
    names: list[str] = []
    for rate in rates:
        name, number = f"governor rate {rate.name}", 1
        while name in names:
            number += 1
            name = f"governor rate {rate.name} ({number})"
        names.append(name)
    return names


def _project_names(rates: list[Rate]) -> list[str]:
    """Return a domain name for each rate. A number distinguishes equal rates of one project."""
    seen: Counter[tuple[str | None, str]] = Counter()
    names = []
    for rate in rates:
        # The fraction of a limit does not change how requests are counted.
        name = f"governor project limit {rate.burst} drain_velocity {rate.drain_velocity}"
        seen[rate.project, name] += 1
        number = seen[rate.project, name]
        names.append(name if number == 1 else f"{name} ({number})")
    return names


def _shared(native: Middleware | None, table: Table, cluster: ClusterConfig | None) -> str:
    is_private = table is False or (isinstance(table, Mapping) and table.get("private"))
    if native is None or is_private:
        here = "kept in this process only"
    elif native.table_name:
        here = f"shared by all processes on this host that use table {native.table_name}"
    else:
        here = "shared with forked children"
    if cluster is None:
        return f"{here}; other hosts count separately, because there is no cluster"
    return f"{here}, and with all hosts of cluster {cluster['name']}"
