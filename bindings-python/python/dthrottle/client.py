"""A client of dthrottled, for programs that let a daemon decide.

>>> from dthrottle.client import Client
>>> client = Client("/run/dthrottled/dthrottled.sock")
>>> client.allow("203.0.113.7")
True

A check that gets no answer within the timeout is allowed. The client then pauses, allows all
checks meanwhile, and tries again. Each thread has its own connection. Only invalid arguments and
errors that the daemon reports are exceptions.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from dthrottle._dthrottle import UNLIMITED
from dthrottle.errors import BY_KIND, ArgumentError, ClosedError, CostError, InternalError
from dthrottle.forked import in_child
from dthrottle.options import seconds

__all__ = ["Client", "ClientCounts", "ClientDecision"]

_log = logging.getLogger("dthrottle.client")
_BATCH = 256
_LONGEST_ANSWER = 1 << 20
_TOKEN = re.compile(r"[!-~]+")
_ANSWER = re.compile(rb"(?:OK|NO)(?: |\Z)|ERROR [a-z]+ ")
# Unknown fields are ignored.
_FIGURE = re.compile(r" ([a-z_]+)=(-?[0-9]{1,20})(?![^ ])")
# The name of a rule extends to the end of the line.
_RULE = re.compile(r" (rule|deciding)=")
_BOUNDLESS = (1 << 63) - 1


@dataclass(frozen=True)
class ClientDecision:
    """The answer to a check. It is true if allowed. Times are in seconds."""

    # xtask: fields
    allowed: bool
    limit: int = UNLIMITED
    remaining: int = UNLIMITED
    balance: int = _BOUNDLESS
    granted: int = 0
    delay: float = 0.0
    retry_after: float = 0.0
    reset_after: float = 0.0
    dry_run: bool = False
    rule: str | None = None
    deciding: str | None = None
    # xtask: end
    failed_open: bool = False
    """Whether the check was allowed because no daemon answered in time."""

    def __bool__(self) -> bool:
        return self.allowed


@dataclass(frozen=True)
class ClientCounts:
    """The counts of a client."""

    answered: int
    """Checks that were answered by the daemon."""
    failed_open: int
    """Checks that were allowed because no daemon answered in time, or during a pause."""
    failures: int
    """Connections that failed, broke, or did not lead to a daemon."""


class Client:
    """Sends checks to a daemon. Any thread may use it, also after a fork.

    ``address`` is the path of a Unix socket or ``"host:port"``; ``None`` uses the daemon's default
    socket. A check takes at most ``timeout`` seconds. After a failure the client pauses for
    ``backoff`` seconds, twice as long after every further failure, up to ``max_backoff``. ``token``
    is the token of the daemon, which ``refund`` and ``reset`` need over TCP.
    """

    def __init__(
        self,
        address: str | os.PathLike[str] | None = None,
        *,
        timeout: float | timedelta = 0.05,
        backoff: float | timedelta = 0.1,
        max_backoff: float | timedelta = 5.0,
        token: str | None = None,
    ) -> None:
        timeout, backoff, max_backoff = map(seconds, (timeout, backoff, max_backoff))
        for name, value in (("timeout", timeout), ("backoff", backoff)):
            if not 0 < value < float("inf"):
                raise ArgumentError(f"`{name}` must be a number of seconds above 0, got {value!r}")
        if not backoff <= max_backoff < float("inf"):
            raise ArgumentError(
                f"`max_backoff` must be at least `backoff`, {backoff!r}, got {max_backoff!r}"
            )
        self._address = _parse(os.fspath(address) if address is not None else _default_path())
        if token is not None and not _TOKEN.fullmatch(token):
            raise ArgumentError(
                f"`token` must be printable ASCII without blanks, got {len(token)} characters"
            )
        self._options = () if token is None else (f"token={token}",)
        self._timeout = timeout
        self._first_pause, self._longest_pause = backoff, max_backoff
        self._local = _Local()
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[_Connection] = weakref.WeakSet()
        self._pause = 0.0
        self._paused_until = 0.0
        self._answered = self._failed_open = self._failures = 0
        self._closed = False
        in_child(self, Client._unlock)

    def _unlock(self) -> None:
        """Replace the lock in a forked child: a thread of the parent may hold the old one."""
        self._lock = threading.Lock()

    def allow(self, tag: str | bytes) -> bool:
        """Check one unit, and charge it if allowed."""
        return self.allow_many((tag,))[0]

    def allow_many(self, tags: Iterable[str | bytes]) -> list[bool]:
        """Check one unit of each tag in turn, with as few round trips as possible."""
        lines = [_line(tag) for tag in tags]
        allowed: list[bool] = []
        while len(allowed) < len(lines):
            batch = lines[len(allowed) : len(allowed) + _BATCH]
            answers = self._request(b"".join(batch), len(batch))
            allowed += [True] * len(batch) if answers is None else [_is_yes(a) for a in answers]
        return allowed

    def check(
        self,
        tag: str | bytes,
        cost: int = 1,
        *,
        domain: str | None = None,
        max_delay: float | timedelta = 0.0,
        partial: bool = False,
    ) -> ClientDecision:
        """Check ``cost`` units, and charge them if allowed."""
        return self._decide("check", tag, cost, domain, max_delay, partial)

    def peek(
        self,
        tag: str | bytes,
        cost: int = 1,
        *,
        domain: str | None = None,
        max_delay: float | timedelta = 0.0,
        partial: bool = False,
    ) -> ClientDecision:
        """Return the decision that ``check`` would return, without charging."""
        return self._decide("peek", tag, cost, domain, max_delay, partial)

    def refund(self, tag: str | bytes, cost: int, *, domain: str | None = None) -> bool:
        """Give ``cost`` units back. Return whether the daemon answered."""
        return self._send(_query("refund", tag, cost, domain, self._options))

    def reset(self, tag: str | bytes, *, domain: str | None = None) -> bool:
        """Fill the buckets of a tag. Return whether the daemon answered."""
        return self._send(_query("reset", tag, None, domain, self._options))

    def counts(self) -> ClientCounts:
        """Return the counts of this client."""
        return ClientCounts(self._answered, self._failed_open, self._failures)

    def close(self) -> None:
        """Close all connections. Later calls raise ClosedError."""
        self._closed = True
        with self._lock:
            connections = list(self._open)
        for held in connections:
            held.socket.close()

    def __enter__(self) -> Client:  # noqa: PYI034 - Self is in typing from 3.11 on
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide(
        self,
        verb: str,
        tag: str | bytes,
        cost: int,
        domain: str | None,
        max_delay: float | timedelta,
        partial: bool,
    ) -> ClientDecision:
        options = []
        max_delay = seconds(max_delay)
        if max_delay:
            if not 0 <= max_delay < float("inf"):
                raise ArgumentError(f"`max_delay` must be a number of seconds, got {max_delay!r}")
            options.append(f"max_delay_ms={int(max_delay * 1000)}")
        if partial:
            options.append("partial=1")
        answers = self._request(_query(verb, tag, cost, domain, options), 1)
        if answers is None:
            return ClientDecision(True, granted=cost, failed_open=True)
        return _decision(_good(answers[0]))

    def _send(self, line: bytes) -> bool:
        answers = self._request(line, 1)
        if answers is not None:
            _good(answers[0])
        return answers is not None

    def _request(self, lines: bytes, count: int) -> list[bytes] | None:
        """Send lines and return the answers, or None if they do not arrive in time."""
        if self._closed:
            raise ClosedError("the client is closed; make a new one")
        if time.monotonic() < self._paused_until:
            self._failed_open += count
            return None
        deadline = time.monotonic() + self._timeout
        try:
            try:
                answers = self._exchange(lines, count, deadline, reuse=True)
            except _IdleClosedError:
                answers = self._exchange(lines, count, deadline, reuse=False)
        except OSError as error:
            if self._closed:
                raise ClosedError("the client is closed; make a new one") from None
            self._fail(error)
            self._failed_open += count
            return None
        if self._pause:
            self._pause = 0.0
            _log.warning("dthrottled answers again")
        self._answered += count
        return answers

    def _exchange(self, lines: bytes, count: int, deadline: float, *, reuse: bool) -> list[bytes]:
        held = self._local.held
        # A forked child needs its own connection, or it would read the answers of its parent.
        if not reuse or held is None or held.pid != os.getpid():
            connection = self._connect()
            connection.sendall(lines)
            return _receive(connection, count, deadline)
        try:
            held.socket.settimeout(self._timeout)
            held.socket.sendall(lines)
            return _receive(held.socket, count, deadline)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise _IdleClosedError from error

    def _connect(self) -> socket.socket:
        family, address = self._address
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(self._timeout)
            connection.connect(address)
            if family != socket.AF_UNIX:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            connection.close()
            raise
        self._local.held = held = _Connection(connection)
        with self._lock:
            self._open.add(held)
        return connection

    def _fail(self, error: OSError) -> None:
        """Drop a connection whose answers may arrive late, and begin a pause."""
        self._local.held = None
        with self._lock:
            self._failures += 1
            if not self._pause:
                _log.warning("dthrottled does not answer, so every check is allowed: %s", error)
            self._pause = min(max(2 * self._pause, self._first_pause), self._longest_pause)
            self._paused_until = time.monotonic() + self._pause


class _IdleClosedError(OSError):
    """The daemon closed an idle connection, to make room for others or because it ended."""


class _Connection:
    """A connection of this process, closed when its thread ends."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.pid = os.getpid()

    def __del__(self) -> None:
        self.socket.close()


class _Local(threading.local):
    """The connection of each thread."""

    held: _Connection | None = None


def _default_path() -> str:
    if os.geteuid() != 0 and (folder := os.environ.get("XDG_RUNTIME_DIR")):
        own = Path(folder) / "dthrottled.sock"
        if own.exists():
            return str(own)
    return "/run/dthrottled/dthrottled.sock"


def _parse(address: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    if "/" in address:
        return socket.AF_UNIX, address
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ArgumentError(
            f'{address!r} is neither a path nor "host:port"; write one like '
            '"/run/dthrottled/dthrottled.sock" or "127.0.0.1:7373"'
        )
    return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, int(port))


def _bytes(tag: str | bytes) -> bytes:
    if isinstance(tag, str):
        tag = tag.encode("utf-8", "surrogatepass")
    elif not isinstance(tag, bytes):
        raise ArgumentError(
            f"`tag` must be str or bytes, got an object of type {type(tag).__name__}"
        )
    if b"\n" in tag:
        raise ArgumentError(f"`tag` must have no line break in checks by a daemon, got {tag!r:.60}")
    return tag


def _line(tag: str | bytes) -> bytes:
    """Write a short line, or the longer form if the short one would be ambiguous."""
    raw = _bytes(tag)
    # The daemon recognizes other protocols by the first bytes of a TCP connection: TLS, or a request
    # line that ends in CR.
    if raw.startswith((b"\0", b"\x16\x03")) or raw[-1:] == b"\r":
        return b"\0check\0tag=" + raw + b"\n"
    return raw + b"\n"


def _query(
    verb: str, tag: str | bytes, cost: int | None, domain: str | None, options: Iterable[str] = ()
) -> bytes:
    fields = [verb]
    if domain is not None:
        if "\0" in domain or "\n" in domain:
            raise ArgumentError(f"`domain` must have no control characters, got {domain!r}")
        fields.append(f"domain={domain}")
    if cost is not None:
        if not isinstance(cost, int) or isinstance(cost, bool) or not 0 <= cost < 1 << 63:
            raise CostError(f"`cost` must be an int from 0 to 2**63 - 1, got {cost!r}")
        fields.append(f"cost={cost}")
    head = "\0" + "\0".join([*fields, *options]) + "\0tag="
    return head.encode() + _bytes(tag) + b"\n"


def _receive(connection: socket.socket, count: int, deadline: float) -> list[bytes]:
    received = b""
    while received.count(b"\n") < count:
        left = deadline - time.monotonic()
        if left <= 0 or len(received) > _LONGEST_ANSWER:
            raise TimeoutError("no answer in time")
        connection.settimeout(left)
        more = connection.recv(65536)
        if not more:
            raise ConnectionResetError("the connection was closed")
        received += more
    *answers, rest = received.split(b"\n")
    if rest or len(answers) > count or not all(map(_ANSWER.match, answers)):
        raise ConnectionError(f"what answers is no dthrottled: {received[:80]!r}")
    return answers


def _is_yes(answer: bytes) -> bool:
    return answer != b"NO" and not answer.startswith(b"NO ")


def _good(answer: bytes) -> str:
    text = answer.decode("utf-8", "replace")
    if text.startswith("ERROR "):
        _, kind, message = text.split(" ", 2)
        raise BY_KIND.get(kind, InternalError)(message)
    return text


def _decision(answer: str) -> ClientDecision:
    head, key, name = _RULE.split(answer, maxsplit=1) if _RULE.search(answer) else (answer, "", "")
    names = {"rule": name if key == "rule" else None, "deciding": name or None}
    numbers = {key: int(value) for key, value in _FIGURE.findall(head)}
    return ClientDecision(
        allowed=head.startswith("OK"),
        # xtask: reading
        limit=numbers.get("limit", UNLIMITED),
        remaining=numbers.get("remaining", UNLIMITED),
        balance=numbers.get("balance", _BOUNDLESS),
        granted=numbers.get("granted", 0),
        delay=numbers.get("delay_ns", 0) / 1e9,
        retry_after=numbers.get("retry_after_ns", 0) / 1e9,
        reset_after=numbers.get("reset_after_ns", 0) / 1e9,
        dry_run=bool(numbers.get("dry_run", 0)),
        rule=names.get("rule"),
        deciding=names.get("deciding"),
        # xtask: end
    )
