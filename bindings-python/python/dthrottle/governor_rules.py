"""From the rates of EOM Governor to the domains of one throttle.

Every pair of rate and project has a bucket of its own. A general rate has a domain that is named
after it, and project ids are its tags. Rates of projects may be many more than a throttle can have
domains: those with equal numbers share one, as their tags differ. A rate whose limit is below 1
lets nobody pass, and needs no domain.
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

_MOST: Final = 1000
_NEVER: Final = "1 per 100 years"


class Wait(TypedDict, total=False):
    """How long a request may have to wait and still passes, without waiting."""

    max_delay: float


class Rule(NamedTuple):
    """A rate, and where it is counted."""

    rate: Rate
    domain: Domain | None
    headers: Headers | None
    wait: Wait
    """With a limit of 2.5 a request passes that with 2 would have to wait for half a request."""

    def check(self, tag: bytes) -> Decision | None:
        """Count a request; None: the limit is below 1, so nobody passes."""
        return None if self.domain is None else self.domain.check(tag, **self.wait)

    def fields(self, decision: Decision | None) -> Fields:
        """Give the RateLimit fields of a response."""
        if decision is None or self.headers is None:
            return []
        return self.headers.fields(decision)

    def retry_after(self, decision: Decision | None) -> Fields:
        """Give the field Retry-After of a refusal, unless a refused client never passes again."""
        if decision is None or not self.rate.drain_velocity:
            return []
        seconds = decision.retry_after - self.wait.get("max_delay", 0.0)
        # A nanosecond that comes of writing seconds as a float is no further second.
        return [("Retry-After", str(max(1, math.ceil(seconds - 1e-9))))]


class Opened(NamedTuple):
    """All rules, in the order of the files."""

    general: list[Rule]
    of_project: dict[str, list[Rule]]
    shared: str
    """Who shares the counts, in words."""
    native: Middleware | None
    """Keeps the throttle open."""


def open_rules(
    files: Files,
    headers: Any,
    table: Table,
    cluster: ClusterConfig | None,
    clock: ManualClock | None,
    logger: Logger,
) -> Opened:
    """Open a throttle for all rates, which may be none."""
    rates = [*files.rates, *files.project_rates]
    names = [*_general_names(files.rates), *_project_names(files.project_rates)]
    named = list(zip(names, rates, strict=True))
    domains = {name: _domain(rate) for name, rate in named if rate.burst > 0}
    if len(domains) > _MOST:
        raise ConfigError(
            f"rates_file, project_rates_file: {len(domains)} different rates; at most {_MOST} can be "
            "(rates of projects with the same limit and drain_velocity count as one)",
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
    wait: Wait = {"max_delay": seconds} if seconds else {}
    return Rule(rate, domain, Headers(headers, rate.name, domain), wait)


def _general_names(rates: list[Rate]) -> list[str]:
    """Name domains; rates of one name are kept apart by a number."""
    names: list[str] = []
    for rate in rates:
        name, number = f"governor rate {rate.name}", 1
        while name in names:
            number += 1
            name = f"governor rate {rate.name} ({number})"
        names.append(name)
    return names


def _project_names(rates: list[Rate]) -> list[str]:
    """Name domains; equal rates of one project are kept apart by a number."""
    seen: Counter[tuple[str | None, str]] = Counter()
    names = []
    for rate in rates:
        # Rates that differ by the fraction of their limits only are counted alike.
        name = f"governor project limit {rate.burst} drain_velocity {rate.drain_velocity}"
        seen[rate.project, name] += 1
        number = seen[rate.project, name]
        names.append(name if number == 1 else f"{name} ({number})")
    return names


def _shared(native: Middleware | None, table: Table, cluster: ClusterConfig | None) -> str:
    is_private = table is False or (isinstance(table, Mapping) and table.get("private"))
    if native is None or is_private:
        here = "kept in this process alone"
    elif native.table_name:
        here = f"shared by all processes on this host that use table {native.table_name}"
    else:
        here = "shared with forked children"
    if cluster is None:
        return f"{here}; other hosts count for themselves unless there is a cluster"
    return f"{here}, and with all hosts of cluster {cluster['name']}"
