"""Clients in Python and JavaScript against servers that have enough, with and without a throttle.

All kinds run side by side: for 25 seconds the clients want twice what each server can do, then the
servers can do more than that.
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

# The clients of each kind, and what their throttles are told.
KINDS: dict[str, tuple[list[list[str]], dict[str, Any] | None]] = {
    "live": ([PYTHON, PYTHON, NODE, NODE], {}),
    "shared": ([PYTHON, NODE], {"table": TABLE}),
    "pauses": ([PYTHON, NODE], {}),
    "document": ([PYTHON, NODE], {"mode": "document"}),
    "none": ([PYTHON, NODE], None),
}


@dataclass
class Outcome:
    """What the clients of one kind saw, by second."""

    wanted: list[int]
    good: list[int]
    busy: list[int]
    held: list[int]
    failed: list[int]

    def goodput(self) -> float:
        """Good answers in the overload, as a share of what the server could do."""
        return sum(self.good[:OVERLOAD]) / (CAPACITY * OVERLOAD)

    def busy_share(self) -> float:
        """Busy answers, as a share of all answers in the overload."""
        good, busy = sum(self.good[:OVERLOAD]), sum(self.busy[:OVERLOAD])
        return busy / (good + busy)

    def back(self) -> int | None:
        """How many seconds after the overload nine tenths of what was wanted came through."""
        later = range(OVERLOAD, SECONDS)
        reached = (s - OVERLOAD for s in later if self.good[s] >= 0.9 * self.wanted[s])
        return next(reached, None)

    def __str__(self) -> str:
        return (
            f"goodput {self.goodput():4.0%} of the capacity, busy {self.busy_share():5.1%},"
            f" back after {self.back()} s, held {sum(self.held)}, failed {sum(self.failed)}"
        )


def add_up(outputs: list[str]) -> Outcome:
    counts = [json.loads(output) for output in outputs]
    columns = {kind: zip(*(count[kind] for count in counts), strict=True) for kind in counts[0]}
    return Outcome(**{kind: [sum(column) for column in rows] for kind, rows in columns.items()})


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Outcome]]:
    processes: list[subprocess.Popen[str]] = []

    def run(command: list[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    try:
        server = run([sys.executable, str(HERE / "server.py"), str(len(KINDS))])
        assert server.stdout
        urls = [f"http://127.0.0.1:{port}/" for port in json.loads(server.stdout.readline())]
        # Time for all clients to get ready.
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
        for kind, outcome in found.items():
            print(f"{kind:9} {outcome}")
        yield found
    finally:
        for process in processes:
            process.kill()
            process.communicate()
        for table in dthrottle.tables():
            if table.name == TABLE:
                table.path.unlink()


@pytest.mark.parametrize("kind", ["live", "shared"])
def test_the_live_throttle_keeps_most_of_the_capacity(
    outcomes: dict[str, Outcome], kind: str
) -> None:
    outcome = outcomes[kind]
    assert outcome.goodput() >= 0.7, outcome
    assert outcome.busy_share() < 0.05, outcome


def test_a_server_that_asks_for_pauses_gets_them(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["pauses"]
    assert outcome.goodput() >= 0.5, outcome
    assert outcome.busy_share() < 0.05, outcome


@pytest.mark.parametrize("kind", ["live", "shared", "pauses"])
def test_it_is_back_soon_after_the_server_recovers(outcomes: dict[str, Outcome], kind: str) -> None:
    back = outcomes[kind].back()
    assert back is not None, outcomes[kind]
    assert back <= 10, outcomes[kind]


def test_without_a_throttle_most_answers_are_busy(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["none"].busy_share() > 0.4, outcomes["none"]
    assert sum(outcomes["none"].held) == 0


def test_the_document_stands_beside_them(outcomes: dict[str, Outcome]) -> None:
    # What it keeps depends on which of the first answers are busy; the model in the core shows it.
    assert outcomes["document"].busy_share() < outcomes["none"].busy_share()
    assert sum(outcomes["document"].held) > 0


def test_nothing_fails(outcomes: dict[str, Outcome]) -> None:
    for kind, outcome in outcomes.items():
        assert sum(outcome.failed) <= 0.01 * sum(outcome.wanted), (kind, outcome)
        wanted = sum(outcome.wanted[:OVERLOAD]) / OVERLOAD
        assert wanted >= 1.3 * CAPACITY, f"{kind}: no overload; is this machine too busy itself?"
