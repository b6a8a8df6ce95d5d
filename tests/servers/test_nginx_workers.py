"""All workers of nginx share one limit, despite reloads, upgrades and kills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from nginx import RIGHTS, location, nginx, write
from server import THREADS, Load, Server, free_port, server_folder, wait_until

BURST = 100
REQUESTS = 4 * BURST
RATE = 50.0
ALLOWED, REFUSED = 200, 503

SLOW = "dthrottle_zone $request_uri zone=slow rate=1r/d;"
BURSTS = location("~ ^/burst", f"dthrottle zone=slow burst={BURST - 1} nodelay;")

rights = pytest.mark.parametrize("rights", RIGHTS)


@rights
def test_a_burst_is_exact_and_survives_reload_and_restart(rights: str) -> None:
    with nginx(SLOW, BURSTS, rights=rights) as server:
        seen = Load(server, "/burst", REQUESTS).join()
        assert seen.statuses == {ALLOWED: BURST, REFUSED: REQUESTS - BURST}
        assert len(seen.processes) > 1, "several workers must have answered"
        tables = list((server.folder / "tables").iterdir())
        assert len(tables) == 1
        before = server.children()
        server.process.send_signal(signal.SIGHUP)
        wait_until("other workers", lambda: not set(before) & set(server.children()))
        assert server.get("/burst").status == REFUSED
        assert list((server.folder / "tables").iterdir()) == tables


def test_the_master_process_has_no_thread_and_no_table() -> None:
    with nginx(SLOW, BURSTS) as server:
        server.get("/burst")
        first = server.process.pid
        assert len(list(Path(f"/proc/{first}/task").iterdir())) == 1
        assert "/tables/" not in Path(f"/proc/{first}/maps").read_text()
        worker = Path(f"/proc/{server.children()[0]}/maps")
        wait_until("a worker has opened the table", lambda: "/tables/" in worker.read_text())


def test_all_workers_together_allow_the_rate() -> None:
    http = f"dthrottle_zone $request_uri zone=fast rate={RATE:.0f}r/s;"
    with nginx(http, location("/rate", "dthrottle zone=fast burst=99 nodelay;")) as server:
        Load(server, "/rate", 200).join()  # until the bucket is empty
        load = Load(server, "/rate")
        time.sleep(10)
        seen = load.stop()
    assert set(seen.statuses) == {ALLOWED, REFUSED}
    assert len(seen.processes) > 1
    assert seen.rate() == pytest.approx(RATE, rel=0.02)


@rights
def test_reloads_under_load_lose_no_request(rights: str) -> None:
    http = SLOW + "dthrottle_zone $request_uri zone=fast rate=200r/s;"
    more = location("/delayed", "dthrottle zone=fast burst=50;")
    with nginx(http, BURSTS + more, rights=rights) as server:
        loads = [Load(server, path) for path in ("/burst", "/delayed")]
        for _ in range(4):
            time.sleep(0.6)
            server.process.send_signal(signal.SIGHUP)
        time.sleep(0.6)
        burst, delayed = (load.stop() for load in loads)
    assert (burst.lost, delayed.lost) == (0, 0)
    assert burst.statuses[ALLOWED] == BURST
    assert set(burst.statuses) == {ALLOWED, REFUSED}
    assert set(delayed.statuses) == {ALLOWED}, "at most 8 requests are delayed at once"
    assert len(burst.processes) > 3, "workers of several generations answered"


def test_an_upgrade_of_the_binary_under_load_loses_no_request() -> None:
    with server_folder(None) as folder:
        port = free_port()
        # The new binary gets only environment variables that the configuration names.
        command = write(folder, port, SLOW, BURSTS, main="env LD_LIBRARY_PATH;")
        config = folder / "nginx.conf"
        # nginx in the foreground does not support upgrades.
        config.write_text(config.read_text().replace("daemon off;", "daemon on;"))
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        with subprocess.Popen(command, cwd=folder, env=environment) as started:
            assert started.wait(60) == 0
        server = Server(folder, port, started)
        pid, old_pid = folder / "nginx.pid", folder / "nginx.pid.oldbin"
        wait_until("a server", lambda: pid.exists() and pid.read_text())
        first = int(pid.read_text())
        masters = {first}
        try:
            load = Load(server, "/burst")
            time.sleep(0.5)
            os.kill(first, signal.SIGUSR2)
            wait_until(
                "a new master", lambda: old_pid.exists() and pid.exists() and pid.read_text()
            )
            masters.add(int(pid.read_text()))
            time.sleep(0.5)
            os.kill(first, signal.SIGQUIT)
            wait_until("the old master has exited", lambda: not old_pid.exists())
            time.sleep(0.5)
            seen = load.stop()
            assert seen.lost == 0
            assert seen.statuses[ALLOWED] == BURST
            assert set(seen.statuses) == {ALLOWED, REFUSED}
            assert len(seen.processes) > 3, "workers of both masters answered"
            assert masters - {first}, "there must be a new master"
            after = Load(server, "/burst/another", BURST + 20).join()
            assert after.statuses == {ALLOWED: BURST, REFUSED: 20}
        finally:
            for master in masters:
                with suppress(ProcessLookupError):
                    os.kill(master, signal.SIGQUIT)
            wait_until("all masters have exited", lambda: not pid.exists())


def test_killed_workers_lose_only_their_own_requests() -> None:
    dice, kills = random.Random(5), 0
    with nginx(SLOW, BURSTS) as server:
        load = Load(server, "/burst")
        end = time.monotonic() + 4
        while time.monotonic() < end:
            time.sleep(0.3)
            workers = server.children()
            # The worker may have exited already.
            with suppress(IndexError, ProcessLookupError):
                os.kill(dice.choice(workers), signal.SIGKILL)
                kills += 1
        seen = load.stop()
        assert kills > 5
        assert set(seen.statuses) == {ALLOWED, REFUSED}, "there must be no other status"
        assert BURST - seen.broken <= seen.statuses[ALLOWED] <= BURST
        assert seen.statuses[REFUSED] > BURST
        # Only requests in the killed worker are lost.
        assert seen.broken <= kills * THREADS
        assert seen.hung == 0
        assert seen.longest_silence() < 5
        after = Load(server, "/burst/another", BURST + 20).join()
        assert after.statuses == {ALLOWED: BURST, REFUSED: 20}
