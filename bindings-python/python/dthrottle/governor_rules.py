"""From the rates of EOM Governor to the domains of one throttle.

Every pair of rate and project has a bucket of its own. A general rate has a domain that is named
after it, and project ids are its tags. Rates of projects may be many more than a throttle can have
domains: those with equal numbers share one, as their tags differ. A rate whose limit is below 1
lets nobody pass, and needs no domain.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple, TypedDict

from dthrottle._dthrottle import Decision, Domain, ManualClock, Throttle
from dthrottle.config import ClusterConfig, DomainConfig, TableConfig
from dthrottle.errors import ConfigError
from dthrottle.governor_files import Files
from dthrottle.governor_rates import Rate
from dthrottle.headers import Fields, Headers, Policy, retry_after
from dthrottle.source import Table, table_config, throttle_on

__all__ = ["Opened", "Rule", "open_rules"]

_MOST: Final = 1000
_NEVER: Final = "1 per 100 years"

# What Governors of this process count by, under the names of table and domain.
_opened: dict[tuple[str, str], DomainConfig] = {}


class Wait(TypedDict, total=False):
    """How long a request may have to wait and still passes, without waiting."""

    max_wait: float


class Rule(NamedTuple):
    """A rate, and where it is counted."""

    rate: Rate
    domain: Domain | None
    headers: Headers
    wait: Wait
    """With a limit of 2.5 a request passes that with 2 would have to wait for half a request."""

    def check(self, tag: bytes) -> Decision | None:
        """Count a request; None: the limit is below 1, so nobody passes."""
        return None if self.domain is None else self.domain.check(tag, **self.wait)

    def fields(self, decision: Decision | None) -> Fields:
        """Give the RateLimit fields of a response."""
        return [] if decision is None else self.headers.fields(decision)

    def retry_after(self, decision: Decision | None) -> Fields:
        """Give the field Retry-After of a refusal, unless a refused client never passes again."""
        if decision is None or not self.rate.drain_velocity:
            return []
        return [("Retry-After", str(retry_after(decision, **self.wait)))]


class Opened(NamedTuple):
    """All rules, in the order of the files."""

    general: list[Rule]
    of_project: dict[str, list[Rule]]
    shared: str
    """Who shares the counts, in words."""
    warnings: list[str]


def open_rules(
    files: Files,
    headers: str,
    table: Table,
    cluster: ClusterConfig | None,
    clock: ManualClock | None,
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
    place: TableConfig | None = None
    throttle: Throttle | None = None
    if domains and (clock is None or table is not None):
        throttle, name = throttle_on(
            lambda made: Throttle(
                "unlimited", domains=domains, table=made, cluster=cluster, clock=clock
            ),
            table,
        )
        place = table_config(table)
        place.pop("name", None)
        if name is not None:
            place["name"] = name
    elif domains:
        # A clock moved by hand has a table of its own.
        throttle = Throttle("unlimited", domains=domains, cluster=cluster, clock=clock)
    rules = [
        _rule(rate, throttle.domain(name) if throttle and name in domains else None, headers)
        for name, rate in named
    ]
    of_project: dict[str, list[Rule]] = {}
    for rule in rules[len(files.rates) :]:
        of_project.setdefault(rule.rate.project or "", []).append(rule)
    shared = _shared(place or {"private": True}, cluster)
    return Opened(rules[: len(files.rates)], of_project, shared, _disturbed(place, domains))


def _domain(rate: Rate) -> DomainConfig:
    velocity = rate.drain_velocity or _NEVER
    return {"rate": velocity, "burst": rate.burst, "charge_refused": True}


def _rule(rate: Rate, domain: Domain | None, headers: str) -> Rule:
    if domain is None:
        return Rule(rate, None, Headers(headers, []), {})
    (rule,) = domain.rules
    written = Headers(headers, [Policy(rate.name, rule.limit, rule.window)])
    seconds = rate.fraction_seconds
    return Rule(rate, domain, written, {"max_wait": seconds} if seconds else {})


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


def _shared(table: TableConfig, cluster: ClusterConfig | None) -> str:
    if table.get("private"):
        here = "kept in this process alone"
    elif "name" in table:
        here = f"shared by all processes on this host that use table {table['name']}"
    else:
        here = "shared with forked children"
    if cluster is None:
        return f"{here}; other hosts count for themselves unless there is a cluster"
    return f"{here}, and with all hosts of cluster {cluster['name']}"


def _disturbed(table: TableConfig | None, domains: dict[str, DomainConfig]) -> list[str]:
    """Say so when two Governors would count under one name by different rates."""
    name = table.get("name") if table else None
    if name is None:
        return []
    return [
        f"another Governor of this application has other numbers for {domain!r} in table {name}, "
        "and they will disturb each other: give one of them table=..., or the rates other names"
        for domain, config in domains.items()
        if _opened.setdefault((name, domain), config) != config
    ]
