"""An exact model of HTTP middleware (docs/http.md) that shares no code with the implementation.

`Middleware` is created from its options. `decide` returns the action for a request, the header
fields, and the response to a refusal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from ipaddress import ip_network
from math import ceil

from addresses import Address, client, is_trusted, read, tag
from model import Decision, Throttle

S = 10**9
LARGEST = 10**15 - 1
BY_ADDRESS = b"address\xff"
BY_NAME = b"peer\xff"
PROBLEM_TYPE = "https://iana.org/assignments/http-problem-types#quota-exceeded"
PROBLEM_TITLE = "Request cannot be satisfied as assigned quota has been exceeded"
DOMAIN_KEYS = ("rate", "burst", "charge_refused", "rules")

Options = Mapping[str, object]
Field = tuple[str, str]


@dataclass(frozen=True)
class Request:
    """A request as the adapter sees it. `tag` is a header's value or the result of a function."""

    peer: str | None = "203.0.113.7"
    forwarded: Sequence[str] = ()
    tag: str | None = None
    unusable: bool = False
    cost: int | None = None
    scope: str = ""
    can_delay: bool = True


@dataclass(frozen=True)
class Answer:
    action: str  # "none", "pass", "delay", "refuse"
    delay_ns: int = 0
    status: int = 0
    fields: list[Field] = field(default_factory=list)
    content_type: str = ""
    body: bytes = b""
    tag: bytes = b""
    taken: int = 0


class Middleware:
    def __init__(self, options: Options) -> None:
        self.options = options
        domain = {key: options[key] for key in DOMAIN_KEYS if key in options}
        self.throttle = Throttle(domain)
        self.rules = self.throttle.domain("default").rules
        self.name = str(options.get("domain", "") or label(options))
        self.delayed = 0

    def decide(self, now: int, request: Request) -> Answer:
        options = self.options
        if self.exempts(request):
            return Answer("none")
        client_tag = self.tag(request)
        if client_tag is None or client_tag in self.exempt_tags():
            return Answer("none")
        if request.scope:
            client_tag = request.scope.encode() + b"\0" + client_tag
        cost = request.cost if request.cost is not None else int(str(options.get("cost", 1)))
        dry_run = options.get("dry_run", False)
        max_delay = ns(options.get("max_delay", 0))
        may_delay = max_delay > 0 and not dry_run and request.can_delay
        has_room = self.delayed < int(str(options.get("max_delayed", 64)))
        decision = self.throttle.check(
            now,
            "default",
            client_tag.hex(),
            cost,
            max_delay=max_delay if may_delay and has_room else 0,
            allow_debt=True,
        )
        fields = self.fields(now, decision, client_tag)
        if decision.rule is not None and not dry_run:
            wait = ns(options.get("throttle_milliseconds", 0)) // 1000
            wait = wait if request.can_delay and has_room else 0
            self.delayed += wait > 0
            return self.refusal(decision, fields, wait, client_tag)
        if decision.delay_ns > 0:
            self.delayed += 1
            return Answer(
                "delay", decision.delay_ns, 0, fields, tag=client_tag, taken=decision.granted
            )
        return Answer("pass", 0, 0, fields, tag=client_tag, taken=decision.granted)

    def end_delay(self, now: int, answer: Answer, gone: bool) -> None:
        self.delayed -= 1
        if gone:
            self.throttle.refund(now, "default", answer.tag.hex(), answer.taken)

    def finish(self, now: int, answer: Answer, success: bool) -> None:
        option = "skip_successful_requests" if success else "skip_failed_requests"
        if self.options.get(option):
            self.throttle.refund(now, "default", answer.tag.hex(), answer.taken)

    # The client.

    def address(self, request: Request) -> Address | None:
        trusted = self.options.get("trusted_proxies", 0)
        return client(request.peer, request.forwarded, trusted)  # type: ignore[arg-type]

    def exempts(self, request: Request) -> bool:
        networks = [item for item in self.allow() if re.fullmatch(r"[0-9a-f.:]+(/\d+)?", item)]
        found = self.address(request)
        return found is not None and bool(networks) and is_trusted(found, networks)

    def exempt_tags(self) -> list[bytes]:
        return [item.encode() for item in self.allow()]

    def allow(self) -> list[str]:
        items = self.options.get("allow", [])
        assert isinstance(items, list)
        return items

    def tag(self, request: Request) -> bytes | None:
        prefix = int(str(self.options.get("ipv6_prefix", 64)))
        found = tag(self.address(request), prefix)
        name = None if found else peer_name(request.peer)
        if self.options.get("tag", "address") == "address":
            return BY_NAME + name if name else found
        if request.tag and not request.unusable:
            return request.tag.encode()
        return BY_NAME + name if name else BY_ADDRESS + (found or b"")

    # Responses.

    def policies(self) -> list[tuple[str, int, int]]:
        """Return the name, the quota and the window in seconds of every rule."""
        alone = len(self.rules) == 1 and self.rules[0].name == "rule1"
        return [
            (
                self.name if alone else rule.name,
                rule.burst,
                max(1, seconds(ceil(rule.burst * rule.interval))),
            )
            for rule in self.rules
        ]

    def fields(self, now: int, decision: Decision, client_tag: bytes) -> list[Field]:
        kind = self.options.get("headers", "standard")
        kind = {True: "standard", False: "none", "draft-8": "standard"}.get(kind, kind)
        index = self.deciding(now, decision, client_tag)
        name, quota, _ = self.policies()[index]
        left, more = min(int(decision.remaining), LARGEST), self.more_after(decision, index)
        policies = self.policies()
        named = ", ".join(f"{quoted(n)};q={min(q, LARGEST)};w={w}" for n, q, w in policies)
        bare = ", ".join(f"{min(q, LARGEST)};w={w}" for n, q, w in policies)
        shown = min(quota, LARGEST)
        fields: list[Field] = []
        if kind == "standard":
            value = f"{quoted(name)};r={left}" + (f";t={more}" if more else "")
            fields = [("RateLimit-Policy", named), ("RateLimit", value)]
        elif kind == "draft-7":
            value = f"limit={shown}, remaining={left}, reset={more}"
            fields = [("RateLimit-Policy", bare), ("RateLimit", value)]
        elif kind == "draft-6":
            values = zip(("Limit", "Remaining", "Reset"), (shown, left, more), strict=True)
            fields = [("RateLimit-Policy", bare)]
            fields += [(f"RateLimit-{name}", str(value)) for name, value in values]
        if kind == "x-ratelimit" or self.options.get("legacy_headers"):
            reset = ceil(Fraction(now, S)) + more
            values = zip(
                ("Limit", "Remaining", "Reset"),
                (quota, int(decision.remaining), reset),
                strict=True,
            )
            fields += [(f"X-RateLimit-{name}", str(value)) for name, value in values]
        return fields

    def deciding(self, now: int, decision: Decision, client_tag: bytes) -> int:
        """Return the index of the deciding rule."""
        buckets = self.throttle.tag_buckets("default", client_tag.hex())
        if decision.rule is not None:
            return [rule.name for rule in self.rules].index(decision.rule)
        order = [(bucket.remaining(now), bucket.rule.burst) for bucket in buckets]
        return order.index(min(order))

    def more_after(self, decision: Decision, index: int) -> int:
        if decision.rule is not None:
            return retry_after(decision)
        missing = int(decision.limit) - int(decision.balance)
        if missing <= 0:
            return 0
        rule = self.rules[index]
        unit = ceil(rule.burst * rule.interval) // rule.burst
        return min(max(1, seconds(min(decision.reset_after_ns // missing, unit))), LARGEST)

    def refusal(
        self, decision: Decision, fields: list[Field], wait: int, client_tag: bytes
    ) -> Answer:
        status = int(str(self.options.get("status", 429)))
        after = retry_after(decision)
        body = self.options.get("body")
        kind = "text/plain; charset=utf-8"
        if body is None:
            content = b"Too Many Requests\n"
        elif body == "problem+json":
            rule = [rule.name for rule in self.rules].index(str(decision.rule))
            kind, content = "application/problem+json", self.problem(status, after, rule)
        elif isinstance(body, str):
            content = body.encode()
        else:
            kind, content = "application/json", compact(body)
        fields = [
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            *([("Retry-After", str(after))] if self.options.get("retry_after", True) else []),
            *fields,
        ]
        return Answer("refuse", wait, status, fields, kind, content, client_tag)

    def problem(self, status: int, after: int, rule: int) -> bytes:
        return compact(
            {
                "type": PROBLEM_TYPE,
                "title": PROBLEM_TITLE,
                "status": status,
                "detail": f"Try again in {after} s.",
                "violated-policies": [self.policies()[rule][0]],
            }
        )


def peer_name(peer: str | None) -> bytes | None:
    """Return the name of a peer that has no address and is not a Unix socket."""
    if not peer or not peer.strip() or read(peer) is not None:
        return None
    is_unix = peer == "unix" or peer.startswith(("unix:", "/", "@", "\0"))
    return None if is_unix else peer.encode()


def label(options: Options) -> str:
    """Return the default name of a domain: its methods and routes."""
    methods, routes = options.get("methods", []), options.get("routes", [])
    assert isinstance(methods, list)
    assert isinstance(routes, list)
    methods = [*methods, *(["HEAD"] if "GET" in methods and "HEAD" not in methods else [])]
    return " ".join([*sorted(methods), *routes]) or "default"


def ns(seconds: object) -> int:
    return int(Fraction(str(seconds)) * S)


def seconds(time: int) -> int:
    """Convert ns to whole seconds, rounded up. An excess of 1 ns is ignored."""
    return ceil(Fraction(max(0, time - 1), S))


def retry_after(decision: Decision) -> int:
    return min(max(1, seconds(decision.retry_after_ns)), LARGEST)


def quoted(text: str) -> str:
    """Return a string of a structured field. Bytes that are not printable are percent-encoded."""
    made = ""
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\':
            made += "\\" + char
        else:
            made += char if " " <= char <= "~" else f"%{byte:02X}"
    return f'"{made}"'


def compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


assert read("203.0.113.7") in ip_network("203.0.113.0/24")
