"""Two servers that are nodes of a cluster share the limit of a client."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from load import ALLOWED, REFUSED, Load
from servers import gunicorn, tables

RATE, BURST = 50, 50


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder for applications, and remove their tables afterwards."""
    made = tmp_path / f"web{os.getpid()}-{random.getrandbits(32):08x}"
    made.mkdir()
    yield made
    for name in ("one", "two"):
        for table in tables(made / (made.name + name)):
            table.unlink()


def clusters() -> list[dict[str, Any]]:
    """Return the configurations of two nodes on free ports."""
    with ExitStack() as stack:
        # Both sockets are open at the same time, so the ports differ.
        free = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(2)]
        for one in free:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in free]
    return [
        {
            "name": "web",
            "without_secret": True,
            "listen": f"127.0.0.1:{mine}",
            "peers": [f"127.0.0.1:{other}"],
        }
        for mine, other in (ports, ports[::-1])
    ]


def admitted(folder: Path, configs: list[dict[str, Any]], seconds: float) -> tuple[int, float]:
    """Load two servers at the same time. Return how many requests passed, and in how many seconds."""
    with ExitStack() as stack:
        servers = []
        for name, more in zip(("one", "two"), configs, strict=True):
            config = {"rate": f"{RATE}/s", "burst": BURST, **more}
            run = gunicorn(folder / (folder.name + name), app="node_app:application", **config)
            servers.append(stack.enter_context(run))
        for server in servers:
            server.get("/limited", X_Client="nobody")  # the first check joins the cluster

        time.sleep(2)
        loads = [Load(server, "/limited", "client") for server in servers]
        time.sleep(seconds)
        results = [load.stop() for load in loads]
    for each in results:
        assert set(each.statuses) == {ALLOWED, REFUSED}
        assert len(each.processes) > 1, "only one worker answered"
        assert each.broken == 0
    times = sorted(at for each in results for at in each.allowed_at)
    offered = sum(sum(each.statuses.values()) for each in results)
    assert offered > 1.5 * len(times), "too few requests were sent"
    return len(times), times[-1] - times[0]


def test_servers_of_one_cluster_share_a_bucket(folder: Path) -> None:
    count, seconds = admitted(folder, [{"cluster": cluster} for cluster in clusters()], 20)
    print(f"{count} passed in {seconds:.2f} s; one bucket gives {BURST + RATE * seconds:.0f}")
    assert count == pytest.approx(BURST + RATE * seconds, rel=0.02)


def test_servers_without_a_cluster_have_separate_buckets(folder: Path) -> None:
    count, seconds = admitted(folder, [{}, {}], 5)
    assert count == pytest.approx(2 * (BURST + RATE * seconds), rel=0.1)
