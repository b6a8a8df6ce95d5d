"""Clients in Python and JavaScript of overloaded servers, with and without a throttle.

All kinds run at the same time. For 25 seconds the clients try to send twice the capacity of each
server; then the capacity rises above that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dthrottle

HERE = Path(__file__).parent
CAPACITY = 120
WANTED = 240
OVERLOAD = 25
SECONDS = OVERLOAD + 12
PYTHON = [sys.executable, str(HERE / "client.py")]
NODE = ["node", str(HERE / "client.js")]
TABLE = f"test-busy-{os.getpid()}"

# The clients of each kind, and the options of their throttles.
KINDS: dict[str, tuple[list[list[str]], dict[str, Any] | None]] = {
    "live": ([PYTHON, PYTHON, NODE, NODE], {}),
    "shared": ([PYTHON, NODE], {"table": TABLE}),
    "pauses": ([PYTHON, NODE], {}),
    "document": ([PYTHON, NODE], {"mode": "document"}),
    "none": ([PYTHON, NODE], None),
}


@dataclass
class ClientCounts:
    """The counts of the clients of one kind, by second."""

    wanted: list[int]
    good: list[int]
    busy: list[int]
    not_sent: list[int]
    failed: list[int]

    def goodput(self) -> float:
        """Return the good responses during the overload, as a share of the capacity."""
        return sum(self.good[:OVERLOAD]) / (CAPACITY * OVERLOAD)

    def busy_share(self) -> float:
        """Return the share of busy responses among all responses during the overload."""
        good, busy = sum(self.good[:OVERLOAD]), sum(self.busy[:OVERLOAD])
        return busy / (good + busy)

    def recovery_seconds(self) -> int | None:
        """Return after how many seconds nine tenths of the wanted requests succeeded again."""
        later = range(OVERLOAD, SECONDS)
        reached = (s - OVERLOAD for s in later if self.good[s] >= 0.9 * self.wanted[s])
        return next(reached, None)

    def __str__(self) -> str:
        return (
            f"goodput {self.goodput():4.0%} of the capacity, busy {self.busy_share():5.1%},"
            f" back after {self.recovery_seconds()} s, not sent {sum(self.not_sent)}, failed {sum(self.failed)}"
        )


def add_up(outputs: list[str]) -> ClientCounts:
    parsed = [json.loads(output) for output in outputs]
    columns = {kind: zip(*(count[kind] for count in parsed), strict=True) for kind in parsed[0]}
    return ClientCounts(
        **{kind: [sum(column) for column in rows] for kind, rows in columns.items()}
    )


@pytest.fixture(scope="module")
def counts_by_kind() -> Iterator[dict[str, ClientCounts]]:
    processes: list[subprocess.Popen[str]] = []

    def run(command: list[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    try:
        server = run([sys.executable, str(HERE / "server.py"), str(len(KINDS))])
        assert server.stdout
        urls = [f"http://127.0.0.1:{port}/" for port in json.loads(server.stdout.readline())]
        # The clients need time to start.
        start = time.time() + 6
        clients = {}
        for (kind, (commands, options)), url in zip(KINDS.items(), urls, strict=True):
            page = f"{url}pause" if kind == "pauses" else url
            task = {"url": page, "rate": WANTED / len(commands), "start": start}
            task |= {"seconds": SECONDS, "busy": options}
            clients[kind] = [run([*command, json.dumps(task)]) for command in commands]
        time.sleep(start + OVERLOAD - time.time())
        for url in urls:
            urllib.request.urlopen(f"{url}capacity/{3 * WANTED}", timeout=10).close()
        outputs = {
            kind: [client.communicate(timeout=40)[0] for client in group]
            for kind, group in clients.items()
        }
        found = {kind: add_up(group) for kind, group in outputs.items()}
        print()
        for kind, counts in found.items():
            print(f"{kind:9} {counts}")
        yield found
    finally:
        for process in processes:
            process.kill()
            process.communicate()
        for table in dthrottle.tables():
            if table.name == TABLE:
                table.path.unlink()


@pytest.mark.parametrize("kind", ["live", "shared"])
def test_live_mode_uses_most_of_the_capacity(
    counts_by_kind: dict[str, ClientCounts], kind: str
) -> None:
    counts = counts_by_kind[kind]
    assert counts.goodput() >= 0.7, counts
    assert counts.busy_share() < 0.05, counts


def test_retry_after_of_the_server_is_respected(counts_by_kind: dict[str, ClientCounts]) -> None:
    counts = counts_by_kind["pauses"]
    assert counts.goodput() >= 0.5, counts
    assert counts.busy_share() < 0.05, counts


@pytest.mark.parametrize("kind", ["live", "shared", "pauses"])
def test_clients_recover_soon_after_the_server(
    counts_by_kind: dict[str, ClientCounts], kind: str
) -> None:
    back = counts_by_kind[kind].recovery_seconds()
    assert back is not None, counts_by_kind[kind]
    assert back <= 10, counts_by_kind[kind]


def test_without_a_throttle_many_responses_are_busy(
    counts_by_kind: dict[str, ClientCounts],
) -> None:
    assert counts_by_kind["none"].busy_share() > 0.4, counts_by_kind["none"]
    assert sum(counts_by_kind["none"].not_sent) == 0


def test_document_mode_has_fewer_busy_responses_than_no_throttle(
    counts_by_kind: dict[str, ClientCounts],
) -> None:
    # Its goodput depends on which of the first responses are busy, so it is not checked here.
    assert counts_by_kind["document"].busy_share() < counts_by_kind["none"].busy_share()
    assert sum(counts_by_kind["document"].not_sent) > 0


def test_almost_no_request_fails(counts_by_kind: dict[str, ClientCounts]) -> None:
    for kind, counts in counts_by_kind.items():
        assert sum(counts.failed) <= 0.01 * sum(counts.wanted), (kind, counts)
        wanted = sum(counts.wanted[:OVERLOAD]) / OVERLOAD
        assert wanted >= 1.3 * CAPACITY, (
            f"{kind}: the clients did not cause an overload; this machine may be too busy"
        )
