"""All workers of a server hold a client to one burst and one rate, without being told to."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from load import ALLOWED, REFUSED, Load
from servers import gunicorn, tables, uvicorn, uwsgi

BURST = 100
REQUESTS = 4 * BURST
RATE = 50.0

SERVERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "gunicorn": (gunicorn, ()),
    "gunicorn --preload": (gunicorn, ("--preload",)),
    "gunicorn gthread": (gunicorn, ("--worker-class", "gthread", "--threads", "4")),
    "uvicorn": (uvicorn, ()),
    "uwsgi": (uwsgi, ()),
}

servers = pytest.mark.parametrize("kind", SERVERS)


@servers
def test_workers_share_without_being_told(folder: Path, kind: str) -> None:
    run, arguments = SERVERS[kind]
    with run(folder, *arguments) as server:
        seen = Load(server, "/burst", "burst", REQUESTS).join()
        assert seen.statuses == {ALLOWED: BURST, REFUSED: REQUESTS - BURST}
        assert len(seen.processes) > 1, "one worker answered everything: nothing was shown"

        Load(server, "/rate", "rate", 2 * int(RATE)).join()  # until the bucket is empty
        load = Load(server, "/rate", "rate")
        time.sleep(10)
        seen = load.stop()
        assert set(seen.statuses) == {ALLOWED, REFUSED}
        assert len(seen.processes) > 1
        assert seen.rate() == pytest.approx(RATE, rel=0.02)
        assert len(tables(folder)) == 1
    with run(folder, *arguments) as server:
        status, _, _ = server.get("/burst", X_Client="burst")
        assert status == REFUSED, "a restart forgets nobody"
        assert len(tables(folder)) == 1


@servers
def test_private_tables_count_each_for_itself(folder: Path, kind: str) -> None:
    run, arguments = SERVERS[kind]
    with run(folder, *arguments, table=False) as server:
        seen = Load(server, "/burst", "burst", REQUESTS).join()
    # The burst of every worker that was asked often enough.
    assert BURST < seen.statuses[ALLOWED] <= BURST * len(seen.processes)
    assert max(seen.processes.values()) <= BURST
    assert tables(folder) == []


def test_another_folder_is_another_application(folder: Path) -> None:
    other = folder / folder.name
    with gunicorn(folder) as one, gunicorn(other) as two:
        for server in (one, two):
            assert Load(server, "/burst", "b", BURST + 20).join().statuses[ALLOWED] == BURST
    assert len(tables(folder)) == 2


def test_a_named_table_is_shared_by_applications(folder: Path) -> None:
    table = {"name": "shared", "dir": str(folder.parent), "size": 1000}
    with gunicorn(folder, table=table) as one, uvicorn(folder / "other", table=table) as two:
        assert Load(one, "/burst", "b", 60).join().statuses == {ALLOWED: 60}
        assert Load(two, "/burst", "b", 60).join().statuses == {ALLOWED: 40, REFUSED: 20}
    assert tables(folder) == []


def children(process: int) -> list[int]:
    """Give the processes that a process has started."""
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in path.read_text().split()]


def test_killed_workers_fail_nobody_else(folder: Path) -> None:
    dice, kills = random.Random(5), 0
    with gunicorn(folder) as server:
        load = Load(server, "/burst", "burst")
        end = time.monotonic() + 8
        while time.monotonic() < end:
            time.sleep(0.3)
            workers = children(server.process.pid)
            if workers:
                os.kill(dice.choice(workers), signal.SIGKILL)
                kills += 1
        seen = load.stop()
        assert kills > 5
        assert set(seen.statuses) == {ALLOWED, REFUSED}, "nothing else was answered"
        # A worker has one request at a time: what breaks is what it was killed in.
        assert seen.broken <= kills
        assert BURST - seen.broken <= seen.statuses[ALLOWED] <= BURST
        assert seen.statuses[REFUSED] > BURST
        after = Load(server, "/burst", "somebody else", BURST + 20).join()
        assert after.statuses == {ALLOWED: BURST, REFUSED: 20}
