"""The calls of BusyThrottle, with valid and invalid arguments."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import threading
from typing import Any

import pytest
import vectors

import dthrottle
from dthrottle import ArgumentError, ConfigError, ManualClock
from dthrottle.busy import BusyThrottle, ServiceBusy, retry_after, service_of

VECTORS = vectors.read("calls")


@pytest.fixture
def busy(clock: ManualClock) -> BusyThrottle:
    return BusyThrottle(clock=clock)


def test_busy_response_halves_the_limit_of_its_service_only(
    busy: BusyThrottle, clock: ManualClock
) -> None:
    assert all(busy.should_send(name) for name in ("a", b"b") for _ in range(100))
    assert (busy.limit("a"), busy.rate("a")) == (None, 100)
    busy.on_busy("a")
    assert busy.limit("a") == 50
    assert busy.limit(b"a") == 50, "text and its UTF-8 bytes name one service"
    assert busy.limit("b") is None
    assert not busy.should_send("a")
    clock.advance(0.299)
    assert not busy.should_send("a"), "no request directly after a busy response"
    clock.advance(0.001)
    assert [busy.should_send("a") for _ in range(3)] == [True, True, False]
    clock.advance(60)
    assert busy.limit("a") is None


def test_turn_has_the_wait_and_the_limit(busy: BusyThrottle, clock: ManualClock) -> None:
    turn = busy.turn("a")
    assert turn
    assert (turn.allowed, turn.wait, turn.limit) == (True, 0.0, None)
    busy.on_busy("a", retry_after=2.5)
    turn = busy.turn("a")
    assert not turn
    assert (turn.wait, turn.limit) == (2.5, 1.0)
    assert repr(turn) == "Turn(allowed=False, wait=2.5, limit=1.0)"
    clock.advance(2.5)
    assert busy.should_send("a")


def test_now_of_a_call_replaces_the_time_of_the_clock(busy: BusyThrottle) -> None:
    busy.on_busy("a", 10, now=100)
    assert not busy.should_send("a", now=109.9)
    assert busy.should_send("a", now=110)
    assert busy.turn("a", now=5).wait <= 3600, "time may go backwards"


def test_document_mode_recovers_by_rate_or_value(clock: ManualClock) -> None:
    busy = BusyThrottle(mode="document", clock=clock)
    for _ in range(5000):
        assert busy.should_send("b")
    for _ in range(3000):
        busy.on_busy("b")
    clock.advance(1)
    assert sum(busy.should_send("b") for _ in range(5000)) == 38
    assert busy.limit("b") == pytest.approx(38.147, abs=0.001)
    by_value = BusyThrottle(recover_value=200, clock=clock)
    by_value.on_busy("b")
    clock.advance(1)
    assert by_value.limit("b") == (9_999_999 + 200) / 2


def test_stats_count_calls_and_forget_removes_a_limit(busy: BusyThrottle) -> None:
    busy.should_send("a")
    busy.on_ok("a")
    busy.on_busy("a", 60)
    busy.should_send("a")
    assert repr(busy.stats()) == (
        "BusyStats(sent=1, refused=1, good=1, busy=1, cuts=1, remote_busy=0, forgotten=0, services=1, peers=0)"
    )
    busy.forget("a")
    assert busy.should_send("a")


@pytest.mark.parametrize("now", [-1, -1e-3, math.nan, math.inf, 1e300, "1", None])
def test_invalid_time_is_an_error(busy: BusyThrottle, now: Any) -> None:
    calls = [busy.should_send, busy.turn, busy.on_ok, busy.on_busy, busy.limit, busy.rate]
    for call in calls:
        with pytest.raises(ArgumentError, match=r"^`now` must be a number of seconds"):
            call("a", now=now)
    if now is not None:
        with pytest.raises(ArgumentError, match=r"^`retry_after` must be a number of seconds"):
            busy.on_busy("a", now)
    assert busy.should_send("a")


@pytest.mark.parametrize("service", [None, 7, ["a"], "\ud800"])
def test_invalid_service_name_is_an_error(busy: BusyThrottle, service: Any) -> None:
    for call in (busy.should_send, busy.turn, busy.on_ok, busy.on_busy, busy.limit, busy.forget):
        with pytest.raises(ArgumentError, match=r"^`service` "):
            call(service)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "dead"}, '`mode` must be "live" or "document", got "dead"'),
        ({"floor": 0}, "`floor` must be a number from 0.0001 to 1000000, got 0"),
        ({"max_pause": 5}, '`max_pause` must be a duration such as "10s", got 5'),
        ({"recover_rate": 3, "mode": "live"}, '`recover_rate` has no effect in mode "live"'),
        ({"table": "a/b"}, "`table.name` "),
        (
            {"table": "x", "clock": ManualClock()},
            "`table` must not be a named table with a manual clock",
        ),
    ],
)
def test_invalid_option_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        BusyThrottle(**options)
    assert str(raised.value).startswith(message)


def test_million_services_evict_only_unlimited_ones(busy: BusyThrottle) -> None:
    busy.on_busy("kept", 60)
    send = busy.should_send
    assert all(send(str(i)) for i in range(1_000_000))
    assert busy.stats().services == 1024
    assert not send("kept")


def test_concurrent_threads_cut_a_limit_once(busy: BusyThrottle) -> None:
    def work() -> None:
        for i in range(5000):
            busy.should_send("a")
            if i % 100 == 0:
                busy.on_busy("a")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = busy.stats()
    assert (stats.sent + stats.refused, stats.busy, stats.cuts) == (20_000, 200, 1)


def _ask(name: str, answers: Any) -> None:
    answers.put(BusyThrottle(table=name).should_send("a"))


def test_processes_share_a_named_table() -> None:
    name = f"test-busy-{id(object())}"
    busy = BusyThrottle(table=name)
    (path,) = (table.path for table in dthrottle.tables() if table.name == name)
    try:
        spawn = multiprocessing.get_context("spawn")
        answers = spawn.Queue()
        for expected in (True, False):
            child = spawn.Process(target=_ask, args=(name, answers))
            child.start()
            assert answers.get(timeout=60) is expected
            child.join()
            busy.on_busy("a", 60)
    finally:
        path.unlink()


def test_forked_children_share_an_unnamed_table() -> None:
    busy = BusyThrottle()
    child = multiprocessing.get_context("fork").Process(target=busy.on_busy, args=("a", 60))
    child.start()
    child.join()
    assert not busy.should_send("a")


def test_service_of_a_url_agrees_with_the_vectors() -> None:
    for case in VECTORS["services"]:
        assert service_of(case["url"]) == case["service"], case["url"]
    # JavaScript allows no zone in a URL, so the vectors have none.
    assert service_of("http://[FE80::0:1%eth0]:8080/") == "[fe80::1%eth0]:8080"
    assert service_of("http://\ud800/").isascii()


def test_retry_after_agrees_with_the_vectors() -> None:
    for case in VECTORS["retry_after"]:
        assert retry_after(case["value"], case["now"]) == case["seconds"], case
    assert retry_after("Fri, 31 Dec 9999 23:59:59 GMT") == 86_400 * 365
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") is None


def test_service_busy_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(ServiceBusy("api", 1.5)))
    assert (str(error), error.wait) == ("api is busy: not sent, try again in 1.500 s", 1.5)
