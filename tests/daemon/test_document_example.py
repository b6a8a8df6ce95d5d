"""The worked example of the DThrottle document, on two daemons that report over UDP multicast.

Two nodes A and B, rate 1/s, burst 10, 5 s between messages. Client C sends 9 requests to A and 8
to B at once, then two more to A. Times are checked in whole seconds, as in the document.
"""

from __future__ import annotations

import json
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from daemons import LONG, Daemon

PERIOD = 5.0
DEBT = 18
"""The units that A and B admit together in the example."""
ROWS = {5: -3, 6: -2, 7: -1, 8: 0, 9: 1}
"""The balance on both nodes by the number of whole seconds."""
ATTEMPTS = 5
"""An attempt fails only if the machine stalls for longer than a row lasts."""


class Node:
    """A connection to a daemon with the line protocol."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(LONG)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")

    def query(self, line: bytes) -> str:
        """Send a line and read its answer."""
        self._socket.sendall(line + b"\n")
        return self._lines.readline().decode().rstrip("\n")

    def balance(self, tag: str) -> int:
        """Read the balance of a tag without charging it."""
        answer = self.query(b"\0peek\0tag=" + tag.encode())
        fields = dict(field.split("=") for field in answer.split()[1:])
        return int(fields["balance"])

    def cluster(self) -> dict[str, object]:
        """Read the figures of the cluster."""
        cluster: dict[str, object] = json.loads(self.query(b"\0peers").removeprefix("OK "))
        return cluster

    def reports(self) -> int:
        """Count the reports that the daemon has sent."""
        counts = self.cluster()["counts"]
        assert isinstance(counts, dict)
        return int(counts["reports_sent"])

    def peers_up(self) -> int:
        """Count the peers that are up."""
        peers = self.cluster()["peers"]
        assert isinstance(peers, list)
        return sum(peer["state"] == "up" for peer in peers)

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._socket.close()


def cluster() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = f"239.255.73.{os.getpid() % 250 + 1}:{20_000 + os.getpid() % 10_000}"
    return f"""
rate = "1/s"
burst = 10
[cluster]
name = "document"
secret = "0123456789abcdef"
listen = "127.0.0.1:{port}"
multicast = "{group}"
interface = "lo"
period = "5s"
reports = "periodic"
"""


@pytest.fixture
def nodes() -> Iterator[tuple[Node, Node]]:
    with ExitStack() as stack:
        daemons = [stack.enter_context(Daemon(cluster())) for _ in "AB"]
        a, b = (Node(daemon.socket) for daemon in daemons)
        stack.callback(a.close)
        stack.callback(b.close)
        wait_for(lambda: a.peers_up() == b.peers_up() == 1)
        yield a, b


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def wait_for_report(node: Node) -> float:
    """Wait until a node sends a report. Return the time."""
    before = node.reports()
    wait_for(lambda: node.reports() > before)
    return time.monotonic()


def wait_between_reports(nodes: tuple[Node, Node]) -> None:
    """Wait for a moment after which no node reports for a second."""
    last = [wait_for_report(node) for node in nodes]
    wait_for(lambda: all(0.1 < (time.monotonic() - at) % PERIOD < PERIOD - 1 for at in last))


def play(nodes: tuple[Node, Node], tag: str) -> bool:
    """Run the example. Return False if the machine stalled and a row was missed."""
    a, b = nodes
    wait_between_reports(nodes)
    reports = (a.reports(), b.reports())
    start = time.monotonic()
    burst = [[node.query(tag.encode()) for _ in range(n)] for node, n in ((a, 9), (b, 8))]
    first_row = (a.balance(tag), b.balance(tag))
    two_more = [a.query(tag.encode()) for _ in range(2)]
    second_row = (a.balance(tag), b.balance(tag))
    reported = (a.reports(), b.reports()) != reports
    begun = time.monotonic()
    if begun - start > 0.9 or reported:
        return False
    assert burst == [["OK"] * 9, ["OK"] * 8]
    assert first_row == (1, 2)
    assert two_more == ["OK", "NO"]
    assert second_row == (0, 2)

    wait_for(lambda: a.balance(tag) < 0 and b.balance(tag) < 0)
    assert (a.query(tag.encode()), b.query(tag.encode())) == ("NO", "NO")
    return all(
        row_matches(node, tag, (start, begun), second) for second in ROWS for node in nodes
    ) and (a.query(tag.encode()), b.query(tag.encode())) == ("OK", "OK")


def row_matches(node: Node, tag: str, began: tuple[float, float], second: int) -> bool:
    """Compare the balance in the middle of a second with that of the document."""
    time.sleep(max(0.0, began[0] + second + 0.5 - time.monotonic()))
    before = time.monotonic()
    balance = node.balance(tag)
    after = time.monotonic()
    # The bucket was first used within the interval `began`, and read between `before` and `after`.
    least = math.floor(10 - DEBT + before - began[1])
    most = math.floor(10 - DEBT + after - began[0])
    assert least <= balance <= most, f"t = {second}"
    if least != most:
        return False
    assert balance == ROWS[second], f"t = {second}"
    return True


def test_the_balances_are_those_of_the_document(nodes: tuple[Node, Node]) -> None:
    assert any(play(nodes, f"C{attempt}") for attempt in range(ATTEMPTS))


def test_a_node_reports_exactly_once_per_period(nodes: tuple[Node, Node]) -> None:
    a, _ = nodes
    start, first = wait_for_report(a), a.reports()
    while time.monotonic() < start + 2.2 * PERIOD:
        # With reports = "eager", a node would report an empty bucket immediately.
        a.query(b"flood")
        sent, after = a.reports() - first, time.monotonic()
        assert sent <= math.floor((after - start) / PERIOD) + 1, "the node reported too early"
        time.sleep(0.01)
    assert sent >= 2
