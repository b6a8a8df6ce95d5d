"""All workers of a server share the limit of a client without configuration."""

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
def test_workers_share_a_limit_without_configuration(folder: Path, kind: str) -> None:
    run, arguments = SERVERS[kind]
    with run(folder, *arguments) as server:
        results = Load(server, "/burst", "burst", REQUESTS).join()
        assert results.statuses == {ALLOWED: BURST, REFUSED: REQUESTS - BURST}
        assert len(results.processes) > 1, "only one worker answered"

        Load(server, "/rate", "rate", 2 * int(RATE)).join()  # until the bucket is empty
        load = Load(server, "/rate", "rate")
        time.sleep(10)
        results = load.stop()
        assert set(results.statuses) == {ALLOWED, REFUSED}
        assert len(results.processes) > 1
        assert results.rate() == pytest.approx(RATE, rel=0.02)
        assert len(tables(folder)) == 1
    with run(folder, *arguments) as server:
        status, _, _ = server.get("/burst", X_Client="burst")
        assert status == REFUSED, "the bucket survives a restart"
        assert len(tables(folder)) == 1


@servers
def test_workers_with_private_tables_count_separately(folder: Path, kind: str) -> None:
    run, arguments = SERVERS[kind]
    with run(folder, *arguments, table=False) as server:
        results = Load(server, "/burst", "burst", REQUESTS).join()
    # Each worker that got enough requests passes a burst.
    assert BURST < results.statuses[ALLOWED] <= BURST * len(results.processes)
    assert max(results.processes.values()) <= BURST
    assert tables(folder) == []


def test_application_in_another_folder_has_another_table(folder: Path) -> None:
    other = folder / folder.name
    with gunicorn(folder) as one, gunicorn(other) as two:
        for server in (one, two):
            assert Load(server, "/burst", "b", BURST + 20).join().statuses[ALLOWED] == BURST
    assert len(tables(folder)) == 2


def test_applications_share_a_named_table(folder: Path) -> None:
    table = {"name": "shared", "dir": str(folder.parent), "size": 1000}
    with gunicorn(folder, table=table) as one, uvicorn(folder / "other", table=table) as two:
        assert Load(one, "/burst", "b", 60).join().statuses == {ALLOWED: 60}
        assert Load(two, "/burst", "b", 60).join().statuses == {ALLOWED: 40, REFUSED: 20}
    assert tables(folder) == []


def children(process: int) -> list[int]:
    """Return the child processes of a process."""
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in path.read_text().split()]


def test_killed_workers_do_not_affect_other_requests(folder: Path) -> None:
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
        results = load.stop()
        assert kills > 5
        assert set(results.statuses) == {ALLOWED, REFUSED}, "no other status was sent"
        # A worker handles one request at a time, so a kill breaks at most one.
        assert results.broken <= kills
        assert BURST - results.broken <= results.statuses[ALLOWED] <= BURST
        assert results.statuses[REFUSED] > BURST
        after = Load(server, "/burst", "other client", BURST + 20).join()
        assert after.statuses == {ALLOWED: BURST, REFUSED: 20}
