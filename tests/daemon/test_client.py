"""The client for Python against real daemons, and against peers that do not behave."""

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

# A machine that does much else answers late: only tests of the timeout itself have a short one.
PATIENT = 10.0


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
    with Client(daemon.socket, timeout=PATIENT) as client:
        yield client


@pytest.mark.parametrize("door", ["unix", "tcp"])
def test_yes_until_the_bucket_is_empty(daemon: Daemon, door: str) -> None:
    with Client(daemon.tcp if door == "tcp" else daemon.socket, timeout=PATIENT) as client:
        assert [client.allow(door) for _ in range(11)] == [True] * 10 + [False]
        assert client.counts().asked == 11


def test_many_at_once(client: Client) -> None:
    tags = [f"many-{i % 100}" for i in range(2000)]
    assert client.allow_many(tags) == [True] * 1000 + [False] * 1000
    assert client.allow_many([]) == []


def test_full_answers(client: Client) -> None:
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


def test_tags_that_need_the_longer_form(client: Client) -> None:
    for tag in (b"\0check", b"ends with\r", b"\xff\0", b"", "grün"):
        assert client.allow_many([tag] * 11) == [True] * 10 + [False], tag


@pytest.mark.parametrize("tag", [b"\x16\x03\x01", b"GET / HTTP/1.1\r", b"GET / HTTP/1.1"])
def test_a_tag_like_another_protocol_is_counted_over_tcp(daemon: Daemon, tag: bytes) -> None:
    """The daemon closes TCP connections that begin like HTTP or TLS, and clients fail open."""
    for expected in [True] * 10 + [False]:
        with Client(daemon.tcp, timeout=PATIENT) as client:
            assert client.allow(tag) is expected
            assert client.counts().failed_open == 0


def test_refund_and_reset_need_the_token_over_tcp(daemon: Daemon) -> None:
    with Client(daemon.tcp, timeout=PATIENT) as client:
        assert client.allow_many(["token"] * 11) == [True] * 10 + [False]
        with pytest.raises(ArgumentError, match="reset needs the daemon's Unix socket, or"):
            client.reset("token")
        with pytest.raises(ArgumentError, match="refund needs the daemon's Unix socket, or"):
            client.refund("token", 1)
    with Client(daemon.tcp, timeout=PATIENT, token=TOKEN) as client:
        assert client.refund("token", 2)
        assert client.peek("token").remaining == 2
        assert client.reset("token")
        assert client.peek("token").remaining == 10
    with pytest.raises(ArgumentError, match="token must be"):
        Client(daemon.tcp, token="a\0b")


def test_an_idle_connection_that_was_closed_is_no_failure() -> None:
    with (
        Daemon('rate = "3 per day"', "max_connections = 2") as daemon,
        Client(daemon.socket, timeout=PATIENT, backoff=60, max_backoff=60) as client,
    ):
        assert [client.allow("x") for _ in range(4)] == [True] * 3 + [False]
        for _ in range(5):
            with (
                Client(daemon.socket, timeout=PATIENT) as one,
                Client(daemon.socket, timeout=PATIENT) as other,
            ):
                assert not one.allow("x")
                assert not other.allow("x")
            assert not client.allow("x"), "the bucket is still empty"
        assert client.counts() == ClientCounts(asked=9, failed_open=0, failures=0)


def test_mistakes_are_errors(client: Client) -> None:
    with pytest.raises(ArgumentError, match="newline"):
        client.allow("a\nb")
    with pytest.raises(ArgumentError, match="str or bytes"):
        client.allow(5)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match='no domain "none"'):
        client.check("a", domain="none")
    with pytest.raises(ArgumentError, match="control"):
        client.check("a", domain="x\0cost=0")
    with pytest.raises(CostError, match="can never pass"):
        client.check("a", 11)
    with pytest.raises(CostError, match="whole number"):
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


def test_each_thread_has_its_connection(daemon: Daemon) -> None:
    with Client(daemon.socket, timeout=PATIENT) as client, ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)

        def ask(_: int) -> int:
            barrier.wait()
            return sum(client.allow("threads") for _ in range(10))

        assert sum(pool.map(ask, range(8))) == 10
        assert client.counts().failed_open == 0


def test_a_forked_child_connects_anew(daemon: Daemon) -> None:
    with Client(daemon.socket, timeout=PATIENT) as client:
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


def test_a_child_forked_while_another_thread_fails_asks_all_the_same(tmp_path: Path) -> None:
    client = Client(tmp_path / "missing", backoff=0.001)
    asking = threading.Thread(target=lambda: client.allow("a"), daemon=True)
    # As if that thread had been interrupted where it holds it.
    with client._lock:
        asking.start()
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            os._exit(0 if client.allow("a") else 1)
        _, status = os.waitpid(child, 0)
    asking.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_killed_daemon_and_one_that_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "dthrottle.client")
    with Daemon('rate = "3 per day"') as daemon:
        client = Client(daemon.socket, timeout=PATIENT, backoff=0.05, max_backoff=0.2)
        assert [client.allow("x") for _ in range(4)] == [True, True, True, False]
        daemon.kill()
        assert all(client.allow("x") for _ in range(1000)), "fails open"
        assert client.check("x").failed_open
        counts = client.counts()
        assert counts.failed_open == 1001
        assert counts.failures < 20, "most were not tried"
        daemon.start()
        deadline = time.monotonic() + LONG
        while client.allow("x"):
            assert time.monotonic() < deadline, "comes back, and the bucket is still empty"
            time.sleep(0.01)
        assert [record.getMessage().split(":")[0] for record in caplog.records] == [
            "dthrottled does not answer, everything is allowed",
            "dthrottled answers again",
        ]
        client.close()


@pytest.fixture
def mute(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """Give the path of a socket that takes connections and says nothing."""
    path = str(tmp_path / "mute")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(100)
        yield path, listener


def test_a_daemon_that_does_not_answer(mute: tuple[str, socket.socket]) -> None:
    client = Client(mute[0], timeout=0.05, backoff=60, max_backoff=60)
    start = time.monotonic()
    assert all(client.allow("x") for _ in range(100))
    assert time.monotonic() - start < LONG / 2, "one wait of 50 ms, then none"
    counts = client.counts()
    assert (counts.asked, counts.failed_open, counts.failures) == (0, 100, 1)
    client.close()


def test_late_answers_are_nobodys(mute: tuple[str, socket.socket]) -> None:
    path, listener = mute
    client = Client(path, timeout=0.2, backoff=0.001, max_backoff=0.001)
    assert client.allow("late")
    first, _ = listener.accept()
    assert first.recv(100) == b"late\n"
    time.sleep(0.01)
    answering = threading.Thread(target=_answer_next, args=(listener, first))
    answering.start()
    client._timeout = PATIENT
    assert client.allow("next"), "the NO of before is not its answer"
    answering.join()
    assert client.counts().asked == 1
    client.close()
    first.close()


def _answer_next(listener: socket.socket, first: socket.socket) -> None:
    second, _ = listener.accept()
    with second:
        # The client has hung up, as it should.
        with contextlib.suppress(BrokenPipeError):
            first.sendall(b"NO\n")
        second.recv(100)
        second.sendall(b"OK\n")


def _answer_all(listener: socket.socket, answer: bytes) -> None:
    """Give one answer to whoever comes, until the listener is shut."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)


@pytest.fixture
def answering(mute: tuple[str, socket.socket], request: pytest.FixtureRequest) -> Iterator[str]:
    """Give the path of a socket where somebody always says the same."""
    path, listener = mute
    thread = threading.Thread(target=_answer_all, args=(listener, request.param))
    thread.start()
    yield path
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()


STRANGE = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"-ERR unknown command\r\n",
    b"OKAY\n",
    b"ERROR\n",
    b"\xff\xfe\n",
    b"\n",
    b"OK\nOK\n",
    b"NO\nN",
]


@pytest.mark.parametrize("answering", STRANGE, indirect=True)
def test_an_answer_that_is_no_daemons(answering: str) -> None:
    calls: list[Callable[[Client], object]] = [
        lambda client: client.check("x", 2) == ClientDecision(True, granted=2, failed_open=True),
        lambda client: client.peek("x").failed_open,
        lambda client: client.allow("x"),
        lambda client: not client.reset("x"),
        lambda client: not client.refund("x", 1),
    ]
    for call in calls:
        with Client(answering, timeout=PATIENT, backoff=60, max_backoff=60) as client:
            assert call(client)
            assert client.counts() == ClientCounts(asked=0, failed_open=1, failures=1)


NEW_FIGURES = b"NO limit=x remaining=3 new=a=b word granted=1 delay_ns=" + b"9" * 5000 + b"\n"


@pytest.mark.parametrize("answering", [NEW_FIGURES], indirect=True)
def test_figures_that_are_not_known_are_left_alone(answering: str) -> None:
    with Client(answering, timeout=PATIENT) as client:
        assert client.check("x") == ClientDecision(False, granted=1, remaining=3)
