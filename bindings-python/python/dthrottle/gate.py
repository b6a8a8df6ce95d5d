"""What WSGI and ASGI have in common: which requests are asked about, what is answered, what goes wrong.

A gate never blocks and never raises during a request. Whoever has it does the waiting: with
``time.sleep``, ``asyncio.sleep``, or as the framework likes. Whatever goes wrong lets the request
pass, is counted (``counts``), and is logged once.
"""

from __future__ import annotations

import json
import logging
import math
import operator
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import isawaitable, iscoroutine
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from dthrottle._dthrottle import Decision, Quick
from dthrottle.address import Forwarded
from dthrottle.forked import in_child
from dthrottle.headers import Fields, Headers, problem, retry_after
from dthrottle.options import Settings
from dthrottle.source import Opened
from dthrottle.tags import address_tag, tag_bytes

__all__ = ["Counts", "Gate", "Reader", "Refusal", "Verdict"]

Request = TypeVar("Request")
R = TypeVar("R", contravariant=True)

_logger = logging.getLogger("dthrottle")

_MOST_DEBT: Final = 2**40
_BAD_TAG: Final = "tag must return text (not empty, valid UTF-8), bytes or an int"
_HINT: Final = "(behind a proxy on a Unix socket, set trusted_proxies)"
_NO_ADDRESS: Final = f"the address of a client is unknown, and its requests pass {_HINT}"
_ONE_BUCKET: Final = f"clients without a tag and a known address are counted together {_HINT}"
_NO_WAITING: Final = (
    "max_delay and throttle_milliseconds have no effect: this server handles one request at a time "
    "(wsgi.multithread is false); this is logged once"
)


def _not_awaited() -> None:
    raise TypeError("allow gave something to await, which nobody does")


class Reader(Protocol[R]):
    """How to read a request of some kind."""

    def method(self, request: R) -> str:
        """Give the method, in capitals."""

    def path(self, request: R) -> str:
        """Give the whole path, decoded, without the query."""

    def header(self, request: R, name: str) -> str | None:
        """Give the value of a header."""

    def peer(self, request: R) -> str | None:
        """Give the address of whoever opened the connection."""

    def forwarded_for(self, request: R) -> Forwarded:
        """Give the header X-Forwarded-For."""

    def can_wait(self, request: R, /) -> bool:
        """Return whether the process serves other requests while it holds this one."""


@dataclass
class Counts:
    """What happened in this process; ``throttle.stats()`` has the rest."""

    passed: int = 0
    refused: int = 0
    dry_run: int = 0
    """Would have been refused."""
    delayed: int = 0
    """Were held for a while."""
    gave_up: int = 0
    """Were gone before their turn."""
    untagged: int = 0
    """Had no usable tag: counted by address, or passed where that is the tag and unknown."""
    failed: int = 0
    """Errors of functions that were given as options, and of the throttle."""

    def add(self, other: Counts) -> None:
        """Add the counts of another gate."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Verdict(NamedTuple):
    """What becomes of a request."""

    decision: Decision
    fields: Fields
    tag: bytes
    cost: int
    refused: bool
    wait: float
    """Seconds for which to hold the request, inside ``Gate.held``."""


class Refusal(NamedTuple):
    """The response to a request that is refused."""

    status: int
    fields: Fields
    """Without those of the verdict, which any response has."""
    body: bytes


class Gate(Generic[Request]):
    """Decides about requests."""

    def __init__(self, settings: Settings, opened: Opened, reader: Reader[Request]) -> None:
        self.settings = settings
        self.counts = Counts()
        self._reader = reader
        self._domain = opened.domain
        self._policies = opened.policies
        self._headers = Headers(settings.headers, list(opened.policies.values()))
        self.takes_all = (
            settings.methods is None
            and not settings.routes
            and settings.allow is None
            and settings.allow_networks is None
        )
        """Whether every request is to be throttled, as far as it does not depend on its tag."""
        self._may_wait = settings.max_delay > 0 and not settings.dry_run
        self._largest = min((rule.limit for rule in self._domain.rules), default=math.inf)
        self.fields = self._headers.fields
        """Write the fields of a decision."""
        self.quick = self._quick()
        """Check for the client with this address; None: requests must be judged at length."""
        # One for each request that may be held. A deque needs no lock, which a fork might copy
        # while it is taken.
        self._room = deque([None] * settings.max_held)
        in_child(self, Gate._clear)
        self._said: set[str] = set()
        self._warns = settings.warns_of_proxies
        self._warns_of_waiting = True

    def _quick(self) -> Callable[[str | None], Decision | None] | None:
        s = self.settings
        by_peer = s.tag is None and s.header is None and not s.allow_tags and s.address.is_peer
        if not by_peer or not self.takes_all or self._may_wait:
            return None
        if type(s.cost) is not int or s.cost > self._largest:
            return None
        return Quick(self._domain, s.cost, s.address.ipv6_prefix).check

    def concerns(self, request: Request) -> bool:
        """Say whether a request is to be throttled, as far as it does not depend on its tag."""
        s, reader = self.settings, self._reader
        if s.methods is not None and reader.method(request) not in s.methods:
            return False
        if s.routes:
            path = reader.path(request)
            if not any(route.fullmatch(path) for route in s.routes):
                return False
        if s.allow is not None:
            return not self._allows(s.allow, request)
        if s.allow_networks is not None:
            address = s.address.find(reader.peer(request), reader.forwarded_for(request))
            return address is None or address not in s.allow_networks
        return True

    def _allows(self, function: Callable[[Request], Any], request: Request) -> bool:
        allowed = self.call("allow", function, request)
        if not isawaitable(allowed):
            return bool(allowed)
        # Whatever it would say: nobody awaits it, and a coroutine is true.
        if iscoroutine(allowed):
            allowed.close()
        self.call("allow", _not_awaited)
        return False

    def tag(self, request: Request) -> Any:
        """Return the value of the option ``tag`` for a request: any object, for ``ask``."""
        s = self.settings
        if s.tag is not None:
            return self.call("tag", s.tag, request)
        if s.header is not None:
            return self._reader.header(request, s.header) or self._by_address(request)
        return self._address(request)

    def _address(self, request: Request) -> bytes | None:
        reader = self._reader
        forwarded = reader.forwarded_for(request)
        if forwarded and self._warns:
            self._warn_of_proxy()
        return self.settings.address(reader.peer(request), forwarded)

    def _by_address(self, request: Request) -> bytes:
        """Return the tag of a client that has no usable tag of its own."""
        address = self._address(request)
        if address is None:
            # To let these requests pass would let clients choose to pass.
            self._log("address", _ONE_BUCKET)
        return address_tag(address)

    def _untagged(self, request: Request, value: Any) -> bytes | None:
        """Return the tag of a request for which ``value`` cannot be one; None: it passes."""
        self.counts.untagged += 1
        if self.settings.tag is None and self.settings.header is None:
            self._log("address", _NO_ADDRESS)
            return None
        # A function that raises gives None, and is logged already.
        cause = "tag" if value is None else "tag value"
        # Only the type: clients choose the value.
        self._log(cause, f"{_BAD_TAG}, got {type(value).__name__}; the client's address is counted")
        return self._by_address(request)

    def cost(self, request: Request) -> Any:
        """Give the cost, as the option says."""
        cost = self.settings.cost
        return cost if isinstance(cost, int) else self.call("cost", cost, request)

    def ask(self, request: Request, value: Any, cost: Any, scope: str = "") -> Verdict | None:
        """Ask the throttle; None: the request passes, and nothing is to be said about it.

        A value that cannot be a tag is replaced by the client's address: clients can often choose
        its type. Equal tags of different scopes are different clients.
        """
        try:
            tag = tag_bytes(value) or self._untagged(request, value)
            if tag is None or tag in self.settings.allow_tags:
                return None
            if scope:
                tag = b"%b\0%b" % (scope.encode(), tag)
            units = cost if type(cost) is int and cost >= 0 else self._units(cost)
            if self._may_wait or units > self._largest:
                decision = self._check(request, tag, units)
            else:
                # What nearly every request comes to.
                decision = self._domain.check(tag, units)
        except Exception:
            self.failed("check")
            return None
        return self.verdict(decision, tag, units)

    def verdict(self, decision: Decision, tag: bytes, cost: int) -> Verdict:
        """Count a decision, and say what becomes of the request."""
        refused = False
        if decision.rule is None and not (self._may_wait and decision.dry_run):
            self.counts.passed += 1
        elif decision.allowed or self.settings.dry_run:
            self.counts.dry_run += 1
        else:
            self.counts.refused += 1
            refused = True
        fields = self.fields(decision)
        wait = decision.wait if self._may_wait else 0.0
        # Twice as fast as Verdict(...), which is written in Python.
        return tuple.__new__(Verdict, (decision, fields, tag, cost, refused, wait))

    def _check(self, request: Request, tag: bytes, cost: int) -> Decision:
        s = self.settings
        beyond = cost - self._largest
        if beyond > 0:
            # Passes when the bucket is full, and takes it into debt.
            cost = int(self._largest)
        room = self._may_wait and self._enter(request)
        wait = 0.0
        try:
            decision = self._domain.check(tag, cost, max_wait=s.max_delay if room else 0.0)
            wait = decision.wait
        finally:
            if room and not wait:
                self._leave()
        if beyond > 0 and decision.granted:
            self._domain.charge(tag, int(min(beyond, _MOST_DEBT)))
        return decision

    def _units(self, cost: Any) -> int:
        try:
            units = int(cost) if isinstance(cost, float) else operator.index(cost)
            if units < 0 or units != cost:
                raise ValueError(f"cost {cost!r}: must be a whole number, and not negative")
        except (TypeError, ValueError, OverflowError):
            # To pass for nothing would be an invitation.
            self.failed("cost")
            return 1
        return units

    # Requests that wait.

    def _clear(self) -> None:
        """Have all the room: requests of a parent's threads are not held here."""
        self._room = deque([None] * self.settings.max_held)

    def _enter(self, request: Request) -> bool:
        if not self._reader.can_wait(request):
            if self._warns_of_waiting:
                self._warns_of_waiting = False
                _logger.warning(_NO_WAITING)
            return False
        try:
            self._room.pop()
        except IndexError:
            return False
        return True

    def _leave(self) -> None:
        self._room.append(None)

    @contextmanager
    def held(self, verdict: Verdict) -> Iterator[None]:
        """Hold a request until its turn. Who does not wait to the end gives back what it took."""
        self.counts.delayed += 1
        try:
            yield
        except BaseException:
            self.give_up(verdict)
            raise
        finally:
            self._leave()

    def give_up(self, verdict: Verdict) -> None:
        """Give back what a request took that nobody waits for."""
        self.counts.gave_up += 1
        try:
            self._domain.refund(verdict.tag, verdict.cost)
        except Exception:
            self.failed("refund")

    @contextmanager
    def slowed(self, request: Request) -> Iterator[float]:
        """Give the time for which to hold a refusal: none if too many requests are held."""
        delay = self.settings.refusal_delay
        if not delay or not self._enter(request):
            yield 0.0
            return
        try:
            yield delay
        finally:
            self._leave()

    # Refusals.

    def tell(self, request: Request, verdict: Verdict) -> Any:
        """Tell the application of a refusal, also one in dry run."""
        function = self.settings.on_refused
        if function is None or verdict.decision.rule is None:
            return None
        return self.call("on_refused", function, request, verdict.decision)

    def body(self, request: Request, verdict: Verdict) -> Any:
        """Give the body of a refusal, as the option says."""
        body = self.settings.body
        return self.call("body", body, request, verdict.decision) if callable(body) else body

    def refusal(self, verdict: Verdict, body: Any) -> Refusal:
        """Write the response."""
        status, seconds = self.settings.status, retry_after(verdict.decision)
        if body == "problem+json":
            policy = self._policies.get(verdict.decision.rule or "")
            content = problem(status, [policy.name] if policy else [], seconds)
            kind = "application/problem+json"
        else:
            content, kind = self._content(body)
        fields = [
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            ("Retry-After", str(seconds)),
        ]
        return Refusal(status, fields, content)

    def _content(self, body: Any) -> tuple[bytes, str]:
        if isinstance(body, bytes):
            return body, "application/octet-stream"
        if isinstance(body, Mapping):
            try:
                return json.dumps(dict(body), allow_nan=False).encode(), "application/json"
            except (TypeError, ValueError):
                self.failed("body")
        elif isinstance(body, str):
            return body.encode("utf-8", "replace"), "text/plain; charset=utf-8"
        elif body is not None:
            self.counts.failed += 1
            self._log("body", f"body: {body!r} is neither text nor bytes nor a dict")
        return b"Too Many Requests\n", "text/plain; charset=utf-8"

    @property
    def is_list(self) -> bool:
        """Whether its fields may stand beside those of other throttles, so that all are added."""
        return self._headers.is_list

    def merged(self, present: list[Any], fields: Fields, name: Callable[[Any], str]) -> Fields:
        """Leave out what another throttle has written, unless both may stand there."""
        if self._headers.is_list or not fields:
            return fields
        there = {name(pair) for pair in present}
        return [pair for pair in fields if pair[0].lower() not in there]

    # What goes wrong.

    def call(self, option: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the application; None if it fails."""
        try:
            return function(*arguments)
        except Exception:
            self.failed(option)
            return None

    def _warn_of_proxy(self) -> None:
        self._warns = False
        _logger.warning(
            "a request has X-Forwarded-For, which is not read: behind a proxy set trusted_proxies, "
            "or all clients are one; this is logged once"
        )

    def failed(self, cause: str) -> None:
        """Count an exception, and log the first of each cause. To be called while handling it."""
        self.counts.failed += 1
        self._log(cause, f"{cause} failed", exception=True)

    def _log(self, cause: str, message: str, *, exception: bool = False) -> None:
        if cause not in self._said:
            self._said.add(cause)
            _logger.error("%s; this is logged once, and counted", message, exc_info=exception)
