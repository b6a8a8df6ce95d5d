"""The options of all middleware, checked once, when it is made.

docs/python.md explains them. What is wrong is a ConfigError that names the option and what would be
right; nothing about options is left to go wrong during a request.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from dthrottle._dthrottle import Decision
from dthrottle.address import ClientAddress, Networks, Trusted
from dthrottle.errors import ConfigError
from dthrottle.headers import KINDS, Kind
from dthrottle.near import known, meant
from dthrottle.source import Opened, Table, log_table, open_source

__all__ = [
    "ELSEWHERE",
    "LIMIT_OPTIONS",
    "Body",
    "LimitOptions",
    "Options",
    "Settings",
    "label_of",
    "read_options",
]

Tag = str | Callable[[Any], Any]
Cost = int | Callable[[Any], Any]
Body = str | bytes | Mapping[str, Any]


class LimitOptions(TypedDict, total=False):
    """The options of limits at routes, for type checkers."""

    burst: str | float
    tag: Tag
    cost: Cost
    methods: Collection[str]
    routes: Collection[str]
    allow: Collection[str | bytes] | Callable[[Any], Any]
    dry_run: bool
    status: int
    body: Body | Callable[[Any, Decision], Any]
    on_refused: Callable[[Any, Decision], Any]
    headers: Kind
    max_delay: float
    max_held: int
    throttle_milliseconds: float
    trusted_proxies: Trusted
    ipv6_prefix: int


class Options(LimitOptions, total=False):
    """The options of middleware. A request is an environ (WSGI) or a scope (ASGI)."""

    domain: str
    table: Table


LIMIT_OPTIONS: Final = tuple(LimitOptions.__annotations__)
_OPTIONS: Final = tuple(Options.__annotations__)

# What the same thing is called elsewhere.
ELSEWHERE: Final = {
    "allow_list": "allow", "exempt_when": "allow", "request_filter": "allow", "skip": "allow",
    "whitelist": "allow",
    "key": "tag", "key_func": "tag", "key_generator": "tag", "identifier": "tag",
    "method": "methods", "route": "routes", "path": "routes", "paths": "routes",
    "weight": "cost", "scope": "domain", "group": "domain", "name": "domain",
    "status_code": "status", "error_message": "body", "message": "body", "handler": "body",
    "on_breach": "on_refused", "headers_enabled": "headers", "standard_headers": "headers",
    "delay": "max_delay", "max_wait": "max_delay", "timeout": "max_delay",
    "trusted": "trusted_proxies", "trust_proxy": "trusted_proxies", "proxies": "trusted_proxies",
    "num_proxies": "trusted_proxies", "ipv6_mask": "ipv6_prefix", "ipv6_subnet": "ipv6_prefix",
    "storage_uri": "table", "limit": "throttle", "rate": "throttle",
}  # fmt: skip

# What may be allowed where tags are addresses.
_ADDRESSES: Final = (
    'an address or a network such as "10.0.0.0/8", as long as tags are addresses (option tag)'
)
_NETWORK: Final = re.compile(r"(\d+(\.\d+){1,3}|[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*)(/.*)?")


@dataclass(frozen=True)
class Settings:
    """The options, checked and ready to use."""

    tag: Callable[[Any], Any] | None
    """None: by header or address."""
    header: str | None
    address: ClientAddress
    cost: Cost
    methods: frozenset[str] | None
    routes: tuple[re.Pattern[str], ...]
    allow: Callable[[Any], Any] | None
    allow_networks: Networks | None
    allow_tags: frozenset[bytes]
    allow_nobody: tuple[str, ...]
    """Names in allow where tags are addresses: their letters would be the bytes of somebody's."""
    dry_run: bool
    status: int
    body: Body | Callable[[Any, Decision], Any] | None
    on_refused: Callable[[Any, Decision], Any] | None
    headers: str
    max_delay: float
    max_held: int
    refusal_delay: float
    """Seconds; throttle_milliseconds."""
    warns_of_proxies: bool
    """Nothing was said of proxies: if there is one, somebody should know."""
    burst: str | float | None
    domain: str | None
    table: Table

    def open(self, source: object) -> Opened:
        """Open the throttle of a middleware."""
        if self.burst is not None:
            if isinstance(source, bool) or not isinstance(source, (str, int, float)):
                raise ConfigError("burst: stands beside a rate; give it there", field="burst")
            source = {"rate": source, "burst": self.burst}
        # Middlewares of one application share a table: what they are for keeps their buckets apart.
        label = label_of([*sorted(self.methods or ()), *(route.pattern for route in self.routes)])
        opened = open_source(source, self.domain, self.table, label)
        self.check_cost(rule.limit for rule in opened.domain.rules)
        log_table(f"domain {opened.domain.name!r}", opened)
        return opened

    def check_cost(self, limits: Iterable[int]) -> None:
        """Check that the cost can ever pass."""
        least = min(limits, default=math.inf)
        if isinstance(self.cost, int) and self.cost > least:
            raise _wrong("cost", self.cost, f"at most {least}, the burst")

    def check_allow(self) -> None:
        """Check that all that is allowed can be somebody; when it is known what tags are."""
        for name in self.allow_nobody:
            raise _wrong("allow", name, _ADDRESSES)


def read_options(options: Mapping[str, Any], *, can_await: bool) -> Settings:
    """Check the options of a middleware."""
    known("middleware", options, _OPTIONS, ELSEWHERE)
    given = {name: value for name, value in options.items() if value is not None}
    read = _Reader(given, can_await)
    tag, header = read.tag()
    allow, networks, tags, nobody = read.allow()
    return Settings(
        tag=tag,
        header=header,
        address=ClientAddress(
            trusted_proxies=given.get("trusted_proxies", 0),
            ipv6_prefix=given.get("ipv6_prefix", 64),
        ),
        cost=read.cost(),
        methods=read.methods(),
        routes=tuple(read.routes()),
        allow=allow,
        allow_networks=networks,
        allow_tags=tags,
        allow_nobody=nobody,
        dry_run=read.flag("dry_run"),
        status=int(read.number("status", 429, 400, 599, whole=True)),
        body=read.body(),
        on_refused=read.function("on_refused"),
        headers=read.headers(),
        max_delay=read.number("max_delay", 0, 0, 3600),
        max_held=int(read.number("max_held", 64, 0, 1_000_000, whole=True)),
        refusal_delay=read.number("throttle_milliseconds", 0, 0, 3_600_000) / 1000,
        warns_of_proxies="trusted_proxies" not in given,
        burst=given.get("burst"),
        domain=read.text("domain"),
        table=given.get("table"),
    )


class _Reader:
    def __init__(self, given: Mapping[str, Any], can_await: bool) -> None:
        self._given = given
        self._can_await = can_await

    def function(self, name: str, *, plain: bool = False) -> Callable[..., Any] | None:
        value = self._given.get(name)
        if value is None:
            return None
        if not callable(value):
            raise _wrong(name, value, "a function")
        if (plain or not self._can_await) and inspect.iscoroutinefunction(value):
            raise _wrong(name, value, "a plain function: nobody awaits it here")
        return value  # type: ignore[no-any-return]

    def text(self, name: str) -> str | None:
        value = self._given.get(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise _wrong(name, value, "text")
        return value

    def flag(self, name: str) -> bool:
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise _wrong(name, value, "True or False")
        return value

    def number(
        self, name: str, default: float, least: float, most: float, *, whole: bool = False
    ) -> float:
        value = self._given.get(name, default)
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            kind = "a whole number" if whole else "a number"
            raise _wrong(name, value, f"{kind} from {least} to {most}")
        return float(value)

    def texts(self, name: str, example: str) -> list[str]:
        value = self._given.get(name, ())
        if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
            raise _wrong(name, value, f"a list such as {example}")
        for item in value:
            if not isinstance(item, str) or not item:
                raise _wrong(name, item, f"text, as in {example}")
        return list(value)

    def tag(self) -> tuple[Callable[[Any], Any] | None, str | None]:
        value = self._given.get("tag", "address")
        if callable(value):
            return self.function("tag"), None
        if value == "address":
            return None, None
        kind, _, header = value.partition(":") if isinstance(value, str) else ("", "", "")
        if kind == "header" and re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", header):
            return None, header
        raise _wrong("tag", value, 'a function, "address", or "header:X-Api-Key"')

    def cost(self) -> Cost:
        value = self._given.get("cost", 1)
        if callable(value):
            return self.function("cost") or 1
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise _wrong("cost", value, "a whole number, or a function")
        return value

    def methods(self) -> frozenset[str] | None:
        values = self.texts("methods", '["GET", "POST"]')
        for value in values:
            if not re.fullmatch(r"[A-Z][A-Z-]*", value):
                right = f'"{value.upper()}"' if value.isalpha() else 'a method such as "GET"'
                raise _wrong("methods", value, right)
        if "methods" not in self._given:
            return None
        if not values:
            raise _wrong("methods", values, 'a list such as ["GET", "POST"]; leave it out for all')
        # Applications answer HEAD by what they have for GET.
        return frozenset([*values, *(["HEAD"] if "GET" in values else [])])

    def routes(self) -> list[re.Pattern[str]]:
        patterns = []
        for value in self.texts("routes", '["/api/.*"]'):
            try:
                # In a path a line may end, and must not end the match: "/api/.*" is for all of it.
                patterns.append(re.compile(value, re.DOTALL))
            except re.error as error:
                right = f"a regular expression ({error})"
                raise _wrong("routes", value, right) from error
        return patterns

    def allow(
        self,
    ) -> tuple[Callable[[Any], Any] | None, Networks | None, frozenset[bytes], tuple[str, ...]]:
        values = self._given.get("allow", ())
        if callable(values):
            return self.function("allow", plain=True), None, frozenset(), ()
        if isinstance(values, (str, bytes)) or not isinstance(values, Collection):
            raise _wrong("allow", values, 'a list such as ["10.0.0.0/8"], or a function')
        by_address = self.tag() == (None, None)
        networks, tags, nobody = [], [], []
        for value in values:
            if not isinstance(value, (str, bytes)):
                raise _wrong("allow", value, "an address, a network or a tag, as text or bytes")
            if isinstance(value, str) and _looks_like_network(value):
                networks.append(value)
            elif isinstance(value, bytes):
                tags.append(value)
            elif by_address:
                nobody.append(value)
            else:
                tags.append(value.encode())
        found = Networks(networks, "allow") if networks else None
        return None, found, frozenset(tags), tuple(nobody)

    def body(self) -> Body | Callable[[Any, Decision], Any] | None:
        value: Any = self._given.get("body")
        if callable(value):
            return self.function("body")
        if value is not None and not isinstance(value, (str, bytes, Mapping)):
            raise _wrong("body", value, 'text, bytes, a dict, a function, or "problem+json"')
        if isinstance(value, Mapping):
            try:
                json.dumps(dict(value), allow_nan=False)
            except (TypeError, ValueError) as error:
                raise _wrong("body", value, f"a dict that JSON can have ({error})") from None
        return value

    def headers(self) -> str:
        value = self._given.get("headers", True)
        if isinstance(value, bool):
            return "standard" if value else "none"
        if value not in KINDS:
            near = meant(value, KINDS) if isinstance(value, str) else None
            hint = f"; did you mean {near!r}?" if near else ""
            raise _wrong("headers", value, "True, False, or one of " + ", ".join(KINDS) + hint)
        return value  # type: ignore[no-any-return]


def label_of(parts: list[str]) -> str:
    """Give a name to the domain of what is described by these parts, the same in all processes."""
    text = " ".join(parts) or "default"
    if text.isprintable() and len(text.encode("utf-8", "replace")) <= 200:
        return text
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _looks_like_network(text: str) -> bool:
    # Also one that is wrong, so that it is an error and not a tag that nobody has.
    return _NETWORK.fullmatch(text) is not None


def _wrong(option: str, value: object, right: str) -> ConfigError:
    return ConfigError(f"{option}: {value!r} cannot be; must be {right}", field=option)
