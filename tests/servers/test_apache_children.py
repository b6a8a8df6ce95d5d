"""All children of Apache share one limit, despite restarts and kills."""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from apache import MPMS, answered, apache, location
from nginx import RIGHTS
from server import THREADS, Load, LoadResult, run_in_parallel, wait_until

BURST = 100
REQUESTS = 4 * BURST
RATE = 50.0
ALLOWED, REFUSED = 200, 429

SLOW = f'DThrottleRule slow "1/day" burst={BURST}\n'
BURSTS = SLOW + location(
    "/burst", "DThrottle On", "DThrottleDomain slow", "DThrottleTag %{REQUEST_URI}"
)


def check_burst(mpm: str, rights: str = "self") -> None:
    with apache(BURSTS, mpm=mpm, rights=rights) as server:
        seen = Load(server, "/burst", REQUESTS).join()
        assert seen.statuses == {ALLOWED: BURST, REFUSED: REQUESTS - BURST}
        tables = list((server.folder / "tables").iterdir())
        assert len(tables) == 1
        wait_until("several children", lambda: len(answered(server, "/burst")) > 1)
        before = server.children()
        server.process.send_signal(signal.SIGUSR1)
        wait_until("other children", lambda: not set(before) & set(server.children()))
        wait_until("a child", lambda: server.get("/free").status == ALLOWED)
        assert server.get("/burst").status == REFUSED
        assert list((server.folder / "tables").iterdir()) == tables


def test_a_burst_is_exact_and_survives_a_graceful_restart() -> None:
    run_in_parallel(check_burst, MPMS)


@pytest.mark.parametrize("rights", RIGHTS)
def test_a_burst_is_exact_for_every_user_who_starts_apache(rights: str) -> None:
    check_burst("event", rights)


def test_the_parent_process_has_no_thread_and_no_table() -> None:
    with apache(BURSTS) as server:
        server.get("/burst")
        first = server.process.pid
        assert len(list(Path(f"/proc/{first}/task").iterdir())) == 1
        assert "/tables/" not in Path(f"/proc/{first}/maps").read_text()
        child = Path(f"/proc/{server.children()[0]}/maps")
        wait_until("a child has opened the table", lambda: "/tables/" in child.read_text())


def measure_rate(mpm: str) -> LoadResult:
    lines = f"DThrottleRule fast {RATE:.0f}/s burst=100\n"
    lines += location("/rate", "DThrottle On", "DThrottleDomain fast", "DThrottleLogLevel debug")
    with apache(lines, mpm=mpm) as server:
        Load(server, "/rate", 200).join()  # until the bucket is empty
        load = Load(server, "/rate")
        time.sleep(10)
        return load.stop()


def test_all_children_together_allow_the_rate() -> None:
    for seen in run_in_parallel(measure_rate, MPMS):
        assert set(seen.statuses) == {ALLOWED, REFUSED}
        assert seen.rate() == pytest.approx(RATE, rel=0.02)


def check_restarts(mpm: str) -> None:
    more = 'DThrottleMaxDelayed 20\nDThrottleRule fast "200/s" burst=1\n' + location(
        "/delayed", "DThrottle On", "DThrottleDomain fast", "DThrottleMaxDelay 2s"
    )
    with apache(BURSTS + more, mpm=mpm) as server:
        loads = [Load(server, path) for path in ("/burst", "/delayed")]
        for _ in range(3):
            time.sleep(1)
            server.process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        burst, delayed = (load.stop() for load in loads)
        assert (burst.lost, delayed.lost) == (0, 0)
        assert burst.statuses[ALLOWED] == BURST
        assert set(burst.statuses) == {ALLOWED, REFUSED}
        assert set(delayed.statuses) == {ALLOWED}, "at most 8 requests are delayed at once"
        wait_until("several generations", lambda: len(answered(server, "/delayed")) > 3)


def test_graceful_restarts_under_load_lose_no_request() -> None:
    run_in_parallel(check_restarts, MPMS)


def check_restart_during_delays(mpm: str) -> None:
    lines = 'DThrottleRule slow "1/s" burst=1\n' + location(
        "/delayed", "DThrottle On", "DThrottleDomain slow", "DThrottleMaxDelay 9s"
    )
    with apache(lines, mpm=mpm) as server, ThreadPoolExecutor(3) as threads:
        begin = time.monotonic()
        assert server.get("/delayed").status == ALLOWED

        def ask(_: int) -> tuple[float, int]:
            answer = server.get("/delayed")
            return time.monotonic() - begin, answer.status

        clients = [threads.submit(ask, number) for number in range(3)]
        time.sleep(0.3)
        server.process.send_signal(signal.SIGUSR1)
        for number, (seconds, status) in enumerate(
            sorted(client.result() for client in clients), 1
        ):
            assert status == ALLOWED
            assert seconds > number - 0.03, "the signal must not end a delay early"


def test_a_graceful_restart_does_not_end_delays() -> None:
    run_in_parallel(check_restart_during_delays, MPMS)


def check_kills(mpm: str) -> None:
    dice, killed = random.Random(5), 0
    with apache(BURSTS, mpm=mpm) as server:
        load = Load(server, "/burst")
        end = time.monotonic() + 5
        while time.monotonic() < end:
            time.sleep(0.5)
            children = server.children()
            # The child may have exited already.
            with suppress(IndexError, ProcessLookupError):
                os.kill(dice.choice(children), signal.SIGKILL)
                killed += 1
        seen = load.stop()
        assert killed > 5
        assert set(seen.statuses) == {ALLOWED, REFUSED}, "there must be no other status"
        assert BURST - seen.broken <= seen.statuses[ALLOWED] <= BURST
        assert seen.statuses[REFUSED] > BURST
        # Only requests in the killed child are lost.
        assert seen.broken <= killed * (1 if mpm == "prefork" else THREADS)
        assert seen.hung == 0
        assert seen.longest_silence() < 5
        after = Load(server, "/burst/another", BURST + 20).join()
        assert after.lost == 0
        assert after.statuses == {ALLOWED: BURST, REFUSED: 20}


def test_killed_children_lose_only_their_own_requests() -> None:
    run_in_parallel(check_kills, MPMS)
