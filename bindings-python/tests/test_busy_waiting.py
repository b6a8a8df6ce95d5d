"""Retries, and many requests that wait for their turn at the same time."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import closing

import pytest
import requests
from test_busy_calls import Server, server
from urllib3.util import Retry

from dthrottle import ManualClock
from dthrottle.busy import BusyThrottle, Caller
from dthrottle.busy.requests import BusyAdapter, ServiceBusyError

__all__ = ["server"]

BUSY: tuple[int, dict[str, str]] = (503, {})
WAITING = 200


def session(throttle: BusyThrottle, max_delay: float = 0.0, **retry: bool) -> requests.Session:
    """Make a session that retries 503 twice without a pause."""
    made = requests.Session()
    retries = Retry(2, status_forcelist=[503], **retry)  # type: ignore[arg-type]
    made.mount("http://", BusyAdapter(throttle, max_delay=max_delay, max_retries=retries))
    return made


def counts(throttle: BusyThrottle) -> tuple[int, int, int]:
    stats = throttle.stats()
    return stats.sent, stats.busy, stats.good


def test_retry_of_requests_is_checked_first(server: Server, clock: ManualClock) -> None:
    throttle = BusyThrottle(clock=clock)
    server.answers = [BUSY] * 9
    with pytest.raises(ServiceBusyError) as raised:
        session(throttle).get(server.url)
    assert raised.value.wait <= 1
    assert raised.value.request is not None
    assert (server.seen, counts(throttle)) == (1, (1, 1, 0))


def test_retry_of_requests_waits_for_its_turn(server: Server) -> None:
    throttle = BusyThrottle(floor=50)
    server.answers = [BUSY]
    assert session(throttle, 5).get(server.url).status_code == 200
    assert (server.seen, counts(throttle)) == (2, (2, 1, 1))


def test_last_failed_attempt_of_requests_is_recorded(server: Server) -> None:
    throttle = BusyThrottle(floor=50)
    server.answers = [BUSY] * 6
    with pytest.raises(requests.exceptions.RetryError):
        session(throttle, 5).get(server.url)
    assert (server.seen, counts(throttle)) == (3, (3, 3, 0))
    assert session(throttle, 5, raise_on_status=False).get(server.url).status_code == 503
    assert (server.seen, counts(throttle)) == (6, (6, 6, 0))


def test_waiting_requests_do_not_poll_the_throttle() -> None:
    """If every turn woke all waiting requests, there would be WAITING² / 2 = 20,000 checks."""

    async def tasks(caller: Caller) -> None:
        await asyncio.gather(
            *(caller.wait_for_turn_async("api", asyncio.sleep) for _ in range(WAITING))
        )

    def threads(caller: Caller) -> None:
        all_of_them = [
            threading.Thread(target=caller.wait_for_turn, args=("api",))
            for _ in range(WAITING // 2)
        ]
        for thread in all_of_them:
            thread.start()
        for thread in all_of_them:
            thread.join()

    both = [BusyThrottle(floor=WAITING) for _ in range(2)]
    for throttle in both:
        throttle.on_busy("api")
    asyncio.run(tasks(Caller(both[0], max_delay=60)))
    threads(Caller(both[1], max_delay=60))
    both_stats = [throttle.stats() for throttle in both]
    assert [stats.sent for stats in both_stats] == [WAITING, WAITING // 2]
    assert all(stats.refused < 10 * WAITING for stats in both_stats), both_stats


def test_cancelled_request_leaves_the_queue() -> None:
    caller = Caller(BusyThrottle(), max_delay=60)
    caller.throttle.on_busy("api", 30)

    async def give_up() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(caller.wait_for_turn_async("api", asyncio.sleep), 0.05)

    asyncio.run(give_up())
    assert caller._queues == {}


def test_forked_child_starts_with_empty_queues() -> None:
    caller = Caller(BusyThrottle(), max_delay=60)
    caller.throttle.on_busy("api", 2)
    threads = [threading.Thread(target=caller.wait_for_turn, args=("api",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    while len(caller._queues.get("api", [])) < len(threads):
        time.sleep(0.01)
    child = os.fork()
    if child == 0:
        with closing(caller._waits("api")) as waits:
            first = next(waits)
            alone = [len(line) for line in caller._queues.values()]
        # At the end of the parent's queue it would wait a second longer.
        os._exit(0 if first <= 2 and alone == [1] and caller._queues == {} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(caller._queues["api"]) == len(threads), "no request has left the queue of the parent"
    caller.throttle.forget("api")
    for thread in threads:
        thread.join()
    assert caller._queues == {}
