"""The Python client with real daemons, and with servers that send invalid answers."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from daemons import LONG, TOKEN, Daemon

from dthrottle import UNLIMITED, ArgumentError, ClosedError, CostError, DomainError
from dthrottle.client import Client, ClientCounts, ClientDecision

# A busy machine answers late, so only tests of the timeout use a short one.
LONG_TIMEOUT = 10.0


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    rules = """
rate = "10 per day"
[domains."log in"]
rate = "5 per day"
[domains.free]
"""
    with Daemon(rules, 'max_delay = "1 day"') as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with Client(daemon.socket, timeout=LONG_TIMEOUT) as client:
        yield client


@pytest.mark.parametrize("kind", ["unix", "tcp"])
def test_allow_returns_true_until_the_bucket_is_empty(daemon: Daemon, kind: str) -> None:
    with Client(daemon.tcp if kind == "tcp" else daemon.socket, timeout=LONG_TIMEOUT) as client:
        assert [client.allow(kind) for _ in range(11)] == [True] * 10 + [False]
        assert client.counts().answered == 11


def test_allow_many_answers_in_the_order_of_the_tags(client: Client) -> None:
    tags = [f"many-{i % 100}" for i in range(2000)]
    assert client.allow_many(tags) == [True] * 1000 + [False] * 1000
    assert client.allow_many([]) == []


def test_check_peek_refund_and_reset_return_all_fields(client: Client) -> None:
    first = client.check("a b", 3, domain="log in")
    assert (first.allowed, first.granted, first.limit, first.remaining) == (True, 3, 5, 2)
    assert first.reset_after == pytest.approx(3 * 86400 / 5, rel=1e-3)
    second = client.check("a b", 3, domain="log in")
    assert (bool(second), second.granted, second.rule) == (False, 0, "rule1")
    assert second.retry_after == pytest.approx(86400 / 5, rel=1e-3)
    part = client.check("a b", 3, domain="log in", partial=True)
    assert (part.allowed, part.granted, part.remaining) == (True, 2, 0)
    waiting = client.check("a b", domain="log in", max_delay=20000)
    assert waiting.allowed
    assert waiting.delay == pytest.approx(86400 / 5, rel=1e-3)
    assert client.peek("a b", domain="log in").balance == -1
    assert client.refund("a b", 2, domain="log in")
    assert client.peek("a b", domain="log in").balance == 1
    assert client.reset("a b", domain="log in")
    assert client.peek("a b", domain="log in").remaining == 5
    free = client.check("x", domain="free")
    assert (free.allowed, free.limit, free.remaining) == (True, UNLIMITED, UNLIMITED)


def test_a_tag_may_contain_any_bytes_except_a_newline(client: Client) -> None:
    for tag in (b"\0check", b"ends with\r", b"\xff\0", b"", "grün"):
        assert client.allow_many([tag] * 11) == [True] * 10 + [False], tag


@pytest.mark.parametrize("tag", [b"\x16\x03\x01", b"GET / HTTP/1.1\r", b"GET / HTTP/1.1"])
def test_a_tag_like_another_protocol_is_counted_over_tcp(daemon: Daemon, tag: bytes) -> None:
    """The daemon closes TCP connections that begin like HTTP or TLS, and clients fail open."""
    for expected in [True] * 10 + [False]:
        with Client(daemon.tcp, timeout=LONG_TIMEOUT) as client:
            assert client.allow(tag) is expected
            assert client.counts().failed_open == 0


def test_refund_and_reset_need_the_token_over_tcp(daemon: Daemon) -> None:
    with Client(daemon.tcp, timeout=LONG_TIMEOUT) as client:
        assert client.allow_many(["token"] * 11) == [True] * 10 + [False]
        with pytest.raises(ArgumentError, match="reset needs the daemon's Unix socket, or"):
            client.reset("token")
        with pytest.raises(ArgumentError, match="refund needs the daemon's Unix socket, or"):
            client.refund("token", 1)
    with Client(daemon.tcp, timeout=LONG_TIMEOUT, token=TOKEN) as client:
        assert client.refund("token", 2)
        assert client.peek("token").remaining == 2
        assert client.reset("token")
        assert client.peek("token").remaining == 10
    with pytest.raises(ArgumentError, match="`token` must be"):
        Client(daemon.tcp, token="a\0b")


def test_an_idle_connection_that_the_daemon_closed_does_not_count_as_a_failure() -> None:
    with (
        Daemon('rate = "3 per day"', "max_connections = 2") as daemon,
        Client(daemon.socket, timeout=LONG_TIMEOUT, backoff=60, max_backoff=60) as client,
    ):
        assert [client.allow("x") for _ in range(4)] == [True] * 3 + [False]
        for _ in range(5):
            with (
                Client(daemon.socket, timeout=LONG_TIMEOUT) as one,
                Client(daemon.socket, timeout=LONG_TIMEOUT) as other,
            ):
                assert not one.allow("x")
                assert not other.allow("x")
            assert not client.allow("x"), "the bucket is still empty"
        assert client.counts() == ClientCounts(answered=9, failed_open=0, failures=0)


def test_invalid_arguments_raise_errors(client: Client) -> None:
    with pytest.raises(ArgumentError, match="line break"):
        client.allow("a\nb")
    with pytest.raises(ArgumentError, match="str or bytes"):
        client.allow(5)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match='unknown domain "none"'):
        client.check("a", domain="none")
    with pytest.raises(ArgumentError, match="control"):
        client.check("a", domain="x\0cost=0")
    with pytest.raises(CostError, match="can never pass"):
        client.check("a", 11)
    with pytest.raises(CostError, match="`cost` must be"):
        client.check("a", -1)
    with pytest.raises(ArgumentError, match="neither a path"):
        Client("nonsense")
    with pytest.raises(ArgumentError, match="timeout"):
        Client("/x", timeout=0)
    with pytest.raises(ArgumentError, match="max_backoff"):
        Client("/x", backoff=1, max_backoff=0.5)
    client.close()
    with pytest.raises(ClosedError):
        client.allow("a")


def test_threads_of_one_client_share_the_bucket(daemon: Daemon) -> None:
    with Client(daemon.socket, timeout=LONG_TIMEOUT) as client, ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)

        def ask(_: int) -> int:
            barrier.wait()
            return sum(client.allow("threads") for _ in range(10))

        assert sum(pool.map(ask, range(8))) == 10
        assert client.counts().failed_open == 0


def test_a_forked_child_opens_its_own_connection(daemon: Daemon) -> None:
    with Client(daemon.socket, timeout=LONG_TIMEOUT) as client:
        assert client.allow("fork")
        child = os.fork()
        if child == 0:
            good = [client.allow("fork") for _ in range(20)].count(True) <= 9
            os._exit(0 if good else 1)
        mine = [client.allow("fork") for _ in range(20)].count(True)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert mine <= 9
        assert client.counts().failed_open == 0


def test_a_child_forked_while_another_thread_holds_the_lock_can_check(tmp_path: Path) -> None:
    client = Client(tmp_path / "missing", backoff=0.001)
    asking = threading.Thread(target=lambda: client.allow("a"), daemon=True)
    # Simulates a fork while that thread holds the lock.
    with client._lock:
        asking.start()
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            os._exit(0 if client.allow("a") else 1)
        _, status = os.waitpid(child, 0)
    asking.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_the_client_fails_open_while_the_daemon_is_down_and_reconnects(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "dthrottle.client")
    with Daemon('rate = "3 per day"') as daemon:
        client = Client(daemon.socket, timeout=LONG_TIMEOUT, backoff=0.05, max_backoff=0.2)
        assert [client.allow("x") for _ in range(4)] == [True, True, True, False]
        daemon.kill()
        assert all(client.allow("x") for _ in range(1000)), (
            "checks must be allowed without a daemon"
        )
        assert client.check("x").failed_open
        counts = client.counts()
        assert counts.failed_open == 1001
        assert counts.failures < 20, "most checks must not try to connect"
        daemon.start()
        deadline = time.monotonic() + LONG
        while client.allow("x"):
            assert time.monotonic() < deadline, (
                "the client must reconnect and find the bucket empty"
            )
            time.sleep(0.01)
        assert [record.getMessage().split(":")[0] for record in caplog.records] == [
            "dthrottled does not answer, so every check is allowed",
            "dthrottled answers again",
        ]
        client.close()


@pytest.fixture
def silent_server(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """Return the path of a socket that accepts connections and never answers."""
    path = str(tmp_path / "silent_server")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(100)
        yield path, listener


def test_the_client_fails_open_after_one_timeout_if_the_daemon_does_not_answer(
    silent_server: tuple[str, socket.socket],
) -> None:
    client = Client(silent_server[0], timeout=0.05, backoff=60, max_backoff=60)
    start = time.monotonic()
    assert all(client.allow("x") for _ in range(100))
    assert time.monotonic() - start < LONG / 2, "only the first check may wait for its timeout"
    counts = client.counts()
    assert (counts.answered, counts.failed_open, counts.failures) == (0, 100, 1)
    client.close()


def test_a_late_answer_is_not_used_for_the_next_check(
    silent_server: tuple[str, socket.socket],
) -> None:
    path, listener = silent_server
    client = Client(path, timeout=0.2, backoff=0.001, max_backoff=0.001)
    assert client.allow("late")
    first, _ = listener.accept()
    assert first.recv(100) == b"late\n"
    time.sleep(0.01)
    answering = threading.Thread(target=_answer_next, args=(listener, first))
    answering.start()
    client._timeout = LONG_TIMEOUT
    assert client.allow("next"), "the late NO must not be its answer"
    answering.join()
    assert client.counts().answered == 1
    client.close()
    first.close()


def _answer_next(listener: socket.socket, first: socket.socket) -> None:
    second, _ = listener.accept()
    with second:
        # The client should have closed this connection.
        with contextlib.suppress(BrokenPipeError):
            first.sendall(b"NO\n")
        second.recv(100)
        second.sendall(b"OK\n")


def _answer_all(listener: socket.socket, answer: bytes) -> None:
    """Send the same answer to every client until the listener is closed."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)


@pytest.fixture
def answering(
    silent_server: tuple[str, socket.socket], request: pytest.FixtureRequest
) -> Iterator[str]:
    """Return the path of a socket that always sends the same answer."""
    path, listener = silent_server
    thread = threading.Thread(target=_answer_all, args=(listener, request.param))
    thread.start()
    yield path
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()


INVALID_ANSWERS = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"-ERR unknown command\r\n",
    b"OKAY\n",
    b"ERROR\n",
    b"\xff\xfe\n",
    b"\n",
    b"OK\nOK\n",
    b"NO\nN",
]


@pytest.mark.parametrize("answering", INVALID_ANSWERS, indirect=True)
def test_an_invalid_answer_counts_as_a_failure_and_fails_open(answering: str) -> None:
    calls: list[Callable[[Client], object]] = [
        lambda client: client.check("x", 2) == ClientDecision(True, granted=2, failed_open=True),
        lambda client: client.peek("x").failed_open,
        lambda client: client.allow("x"),
        lambda client: not client.reset("x"),
        lambda client: not client.refund("x", 1),
    ]
    for call in calls:
        with Client(answering, timeout=LONG_TIMEOUT, backoff=60, max_backoff=60) as client:
            assert call(client)
            assert client.counts() == ClientCounts(answered=0, failed_open=1, failures=1)


NEW_FIGURES = b"NO limit=x remaining=3 new=a=b word granted=1 delay_ns=" + b"9" * 5000 + b"\n"


@pytest.mark.parametrize("answering", [NEW_FIGURES], indirect=True)
def test_unknown_fields_of_an_answer_are_ignored(answering: str) -> None:
    with Client(answering, timeout=LONG_TIMEOUT) as client:
        assert client.check("x") == ClientDecision(False, granted=1, remaining=3)
