"""The workers of node:cluster share the burst of a client."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import burst

CLUSTER = Path(__file__).with_name("cluster.js")


@contextmanager
def cluster(table: Any) -> Iterator[int]:
    """Serve with several workers, and yield the port."""
    throttle = json.dumps({"burst": burst.BURST, "table": table})
    with subprocess.Popen(
        ["node", str(CLUSTER)],
        env={**os.environ, "THROTTLE": throttle, "WORKERS": str(burst.WORKERS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield int(server.stdout.readline())
        finally:
            server.stdin.close()
            assert server.wait(60) == 0


def test_workers_share_a_named_table(tmp_path: Path) -> None:
    with cluster({"name": "cluster", "dir": str(tmp_path), "size": 1000}) as port:
        answers = burst.send(port)
    answers.assert_shared_burst()
    assert len(answers.processes) == burst.WORKERS


def test_workers_with_unnamed_tables_count_separately() -> None:
    with cluster({"size": 1000}) as port:
        burst.send(port).assert_separate_bursts()
