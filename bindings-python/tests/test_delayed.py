"""Delayed requests and refusals, and clients that leave meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from web import PEER, AsgiClient, Client, WsgiClient, kinds, make_throttle

from dthrottle import ManualClock, Throttle, asgi
from dthrottle._dthrottle import HttpDecision, Middleware
from dthrottle.address import parse_address

TAG = parse_address(PEER) or b""


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace sleep, and return the list of the times that were slept."""
    times: list[float] = []
    sleep = asyncio.sleep

    async def instead(seconds: float) -> None:
        times.append(seconds)
        await sleep(0)

    monkeypatch.setattr(time, "sleep", times.append)
    monkeypatch.setattr(asyncio, "sleep", instead)
    return times


@kinds
def test_delayed_requests_are_spaced(client: Any, clock: ManualClock, slept: list[float]) -> None:
    web = client(Throttle("1/s", burst=2, clock=clock), max_delay=2)
    answers = [web.get() for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 429]
    assert slept == pytest.approx([1.0, 2.0])
    assert answers[4].headers["retry-after"] == "3"
    assert (web.counts.delayed, web.counts.gave_up) == (2, 0)


@kinds
def test_requests_without_max_delay_or_in_dry_run_do_not_wait(
    client: Any, clock: ManualClock, slept: list[float]
) -> None:
    assert client(make_throttle(clock)).statuses(3) == [200, 429, 429]
    assert client(make_throttle(clock), max_delay=3600, dry_run=True).statuses(2) == [200, 200]
    web = client(Throttle("1/s", clock=clock, dry_run=True), max_delay=1)
    assert web.statuses(3) == [200] * 3
    assert (web.counts.passed, web.counts.dry_run, web.counts.delayed) == (1, 2, 0)
    assert slept == []


@kinds
def test_throttle_milliseconds_delays_refusals(
    client: Any, clock: ManualClock, slept: list[float]
) -> None:
    web = client(make_throttle(clock), throttle_milliseconds=250)
    assert web.statuses(3) == [200, 429, 429]
    assert slept == [0.25, 0.25]


@kinds
def test_max_delayed_0_delays_no_request(
    client: Any, clock: ManualClock, slept: list[float]
) -> None:
    web = client(make_throttle(clock), max_delay=3600, max_delayed=0, throttle_milliseconds=5)
    assert web.statuses(3) == [200, 429, 429]
    assert slept == []


@kinds
def test_delayed_requests_do_not_use_up_max_delayed(
    client: Any, clock: ManualClock, slept: list[float]
) -> None:
    web = client(make_throttle(clock), max_delay=3600, max_delayed=1, throttle_milliseconds=5)
    assert web.statuses(62) == [200] * 61 + [429]
    assert len(slept) == 61


@pytest.mark.parametrize("option", ["max_delay", "throttle_milliseconds"])
def test_server_without_threads_delays_no_request(
    clock: ManualClock, slept: list[float], caplog: pytest.LogCaptureFixture, option: str
) -> None:
    web = WsgiClient(make_throttle(clock), **{option: 3600})
    web.multithread = False
    assert web.statuses(3) == [200, 429, 429]
    assert (slept, web.counts.delayed) == ([], 0)
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "wsgi.multithread is false" in caplog.text
    web.multithread = True
    assert web.get().status == (200 if option == "max_delay" else 429)
    assert len(slept) == 1


def test_max_delayed_counts_threads_and_starts_at_zero_in_a_child(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    web, asleep, wake = (
        WsgiClient(make_throttle(clock), max_delay=3600, max_delayed=2),
        [],
        threading.Event(),
    )
    both = threading.Barrier(3)

    def sleep(seconds: float) -> None:
        asleep.append(seconds)
        both.wait(60)
        wake.wait(60)

    monkeypatch.setattr(time, "sleep", sleep)
    web.get()
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(web.get().status)) for _ in "12"]
    for thread in threads:
        thread.start()
    both.wait(60)
    assert web.get().status == 429, "two requests are delayed already"
    assert web.get(peer="198.51.100.1").status == 200, "a request that need not wait passes"
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(time, "sleep", lambda _seconds: None)
        os._exit(0 if web.get().status == 200 else 1)
    assert os.waitpid(child, 0)[1] == 0, "a forked child begins without delayed requests"
    wake.set()
    for thread in threads:
        thread.join(60)
    assert statuses == [200, 200]


@kinds
def test_interrupted_delay_refunds_the_request(
    client: Callable[..., Client], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    throttle = make_throttle(clock, 4)
    web = client(throttle, max_delay=3600, max_delayed=1, cost=2)

    def stop(_seconds: float) -> None:
        raise SystemExit  # gunicorn stops workers like this

    async def cancel(_seconds: float) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(time, "sleep", stop)
    monkeypatch.setattr(asgi._Listener, "stays", lambda _self, seconds: cancel(seconds))
    assert web.statuses(2) == [200, 200]
    for _ in range(3):
        with pytest.raises((SystemExit, asyncio.CancelledError)):
            web.get()
        assert throttle.peek(TAG).balance == 0
    assert web.counts.gave_up == 3


def http_scope() -> dict[str, Any]:
    """Return a request."""
    return {"type": "http", "method": "GET", "path": "/", "headers": [], "client": (PEER, 1)}


async def no_message() -> Any:
    """Wait for a message that never comes."""
    await asyncio.Event().wait()


class Connection:
    """A client of ASGI that sends messages when the test says so."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self.sent: list[Any] = []
        self.received: list[Any] = []
        self.started = asyncio.Event()

    async def app(self, _scope: Any, receive: Any, send: Any) -> None:
        """Read the whole body, then respond."""
        self.started.set()
        while True:
            self.received.append(await receive())
            if not self.received[-1].get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(self, message: Any) -> None:
        """Record a message of the application."""
        self.sent.append(message)

    async def ask(self, middleware: Any, peer: str = PEER) -> None:
        """Send a request."""
        scope = {"type": "http", "method": "POST", "path": "/", "client": (peer, 1), "headers": []}
        await middleware(scope, self.messages.get, self.send)


def part(body: bytes, more: bool = True) -> dict[str, Any]:
    """Return the message with a part of a body."""
    return {"type": "http.request", "body": body, "more_body": more}


def delayed(clock: ManualClock, seconds: float, connection: Connection, **options: Any) -> Any:
    """Make a middleware that delays the next request by a number of seconds."""
    throttle = Throttle(f"1 per {seconds} s", clock=clock)
    middleware = asgi.ThrottleMiddleware(connection.app, throttle, max_delay=3600, **options)
    throttle.check(TAG)
    return throttle, middleware


def test_disconnect_while_delayed_refunds_the_request(clock: ManualClock) -> None:
    async def main() -> None:
        connection = Connection()
        throttle, middleware = delayed(clock, 3000, connection)
        pending = asyncio.ensure_future(connection.ask(middleware))
        connection.messages.put_nowait(part(b"a", more=False))
        await asyncio.sleep(0.05)
        assert throttle.peek(TAG).balance == -1
        connection.messages.put_nowait({"type": "http.disconnect"})
        await asyncio.wait_for(pending, 60)
        assert throttle.peek(TAG).balance == 0
        assert (connection.sent, connection.started.is_set()) == ([], False)
        assert (middleware.counts.delayed, middleware.counts.gave_up) == (1, 1)

    asyncio.run(main())


def test_body_sent_while_delayed_reaches_the_application(clock: ManualClock) -> None:
    async def main() -> None:
        connection = Connection()
        _, middleware = delayed(clock, 0.2, connection)
        sent = [part(b"a"), part(b"b"), part(b"c", more=False)]
        pending = asyncio.ensure_future(connection.ask(middleware))
        for message in sent[:2]:
            await asyncio.sleep(0)
            connection.messages.put_nowait(message)
        await asyncio.wait_for(connection.started.wait(), 60)
        connection.messages.put_nowait(sent[2])
        await asyncio.wait_for(pending, 60)
        assert connection.received == sent
        assert connection.sent[0]["status"] == 200

    asyncio.run(main())


def test_large_body_is_not_buffered_while_delayed(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        connection, turn, sleep = Connection(), asyncio.Event(), asyncio.sleep
        monkeypatch.setattr(asyncio, "sleep", lambda _seconds: turn.wait())
        _, middleware = delayed(clock, 3000, connection)
        sent = [*(part(bytes(40_000)) for _ in range(9)), part(b"", more=False)]
        for message in sent:
            connection.messages.put_nowait(message)
        pending = asyncio.ensure_future(connection.ask(middleware))
        # Run everything that the loop can run before the turn.
        for _ in range(100):
            await sleep(0)
        assert not connection.started.is_set()
        assert connection.messages.qsize() == len(sent) - 2
        turn.set()
        await asyncio.wait_for(pending, 60)
        assert connection.received == sent

    asyncio.run(main())


def test_event_loop_runs_while_requests_are_delayed(clock: ManualClock) -> None:
    async def main() -> None:
        waiting, other = Connection(), Connection()
        throttle, middleware = delayed(clock, 3000, waiting)
        pending = [asyncio.ensure_future(waiting.ask(middleware)) for _ in range(20)]
        await asyncio.sleep(0)
        middleware.app = other.app
        other.messages.put_nowait(part(b"", more=False))
        await asyncio.wait_for(other.ask(middleware, "198.51.100.1"), 60)
        assert other.sent[0]["status"] == 200
        # The wait of the second request would exceed max_delay.
        assert [task.done() for task in pending] == [False] + [True] * 19
        pending[0].cancel()
        await asyncio.wait(pending)
        assert throttle.peek(TAG).balance == 0

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
def test_lifespan_and_websockets_are_not_limited(clock: ManualClock, kind: str) -> None:
    async def main() -> None:
        seen: list[Any] = []

        async def app(*given: Any) -> None:
            seen.append(given)

        throttle = make_throttle(clock)
        middleware = asgi.ThrottleMiddleware(app, throttle)
        given: Any = ({"type": kind, "client": (PEER, 1), "headers": []}, object(), object())
        for _ in range(3):
            await middleware(*given)
        assert seen == [given] * 3
        assert throttle.peek(TAG).remaining == 1

    asyncio.run(main())


def test_functions_of_the_application_may_be_coroutines(clock: ManualClock) -> None:
    decisions: list[Any] = []

    async def tag(_scope: Any) -> str:
        await asyncio.sleep(0)
        return "t"

    async def cost(_scope: Any) -> int:
        return 2

    async def on_refused(_scope: Any, decision: Any) -> None:
        decisions.append(decision)

    async def body(_scope: Any, _decision: Any) -> str:
        return "later"

    throttle = make_throttle(clock, 4)
    web = AsgiClient(throttle, tag=tag, cost=cost, on_refused=on_refused, body=body)
    assert web.statuses(2) == [200, 200]
    assert web.get().body == b"later"
    assert (len(decisions), throttle.peek("t").remaining) == (1, 0)


def test_failing_coroutines_are_replaced_by_defaults(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_given: Any) -> Any:
        raise KeyError("user")

    assert AsgiClient(make_throttle(clock), tag=fail).statuses(3) == [200, 429, 429]
    assert AsgiClient(make_throttle(clock), body=fail, on_refused=fail).statuses(2) == [200, 429]
    assert AsgiClient(make_throttle(clock), cost=fail).statuses(2) == [200, 429]
    assert len(caplog.records) == 4


def test_request_cancelled_before_its_delay_no_longer_counts_as_delayed(
    clock: ManualClock, slept: list[float]
) -> None:
    refused: list[Any] = []

    async def on_refused(_scope: Any, _decision: Any) -> None:
        refused.append(asyncio.current_task())
        await asyncio.Event().wait()

    web = AsgiClient(
        make_throttle(clock), throttle_milliseconds=5, max_delayed=2, on_refused=on_refused
    )
    web.statuses(1)

    async def cancelled() -> None:
        request = asyncio.ensure_future(web.wrapped(http_scope(), no_message, print))
        while not refused:
            await asyncio.wait([request], timeout=0)
        refused.pop().cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    for _ in range(3):
        asyncio.run(cancelled())
    other = AsgiClient(make_throttle(clock), throttle_milliseconds=5, max_delayed=1)
    assert other.statuses(2) == [200, 429]
    assert slept == [0.005], "the other requests no longer count as delayed"


@pytest.mark.parametrize("raised", [SystemExit, KeyError])
def test_request_interrupted_before_its_delay_no_longer_counts_as_delayed(
    clock: ManualClock, slept: list[float], raised: type[BaseException]
) -> None:
    def on_refused(_environ: Any, _decision: Any) -> None:
        raise raised

    web = WsgiClient(
        make_throttle(clock), throttle_milliseconds=5, max_delayed=2, on_refused=on_refused
    )
    web.statuses(1)
    for _ in range(3):
        with suppress(SystemExit):
            web.get()
    slept.clear()
    other = WsgiClient(make_throttle(clock), throttle_milliseconds=5, max_delayed=1)
    assert other.statuses(2) == [200, 429]
    assert slept == [0.005], "the other requests no longer count as delayed"


def decided(native: Middleware) -> HttpDecision:
    """Decide about a request of one client."""
    decision = native.decide(PEER)
    assert decision is not None
    return decision


def test_delay_ends_once_and_request_is_refunded_once(clock: ManualClock) -> None:
    throttle = make_throttle(clock, 4)
    options = {"throttle": throttle, "cost": 2, "max_delay": 600, "skip_failed_requests": True}
    native = Middleware({**options, "max_delayed": 2})
    passed, _, first, second = (decided(native) for _ in range(4))
    assert throttle.peek(TAG).balance == -4
    for _ in range(2):
        first.end_delay(True)
        first.finish(False)
        assert throttle.peek(TAG).balance == -2
    third = decided(native)
    assert third.delay > 0
    assert decided(native).refused, "only one request had ended its delay"
    second.end_delay(False)
    third.end_delay(True)
    for _ in range(2):
        passed.finish(False)
        assert throttle.peek(TAG).balance == 0
