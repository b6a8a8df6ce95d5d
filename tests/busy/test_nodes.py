"""Nodes of a cluster, each a process: a busy answer that one of them is given slows the others.

There is one in Python, one in JavaScript, one in Python whose table a Throttle of another process
exchanges, and one that does not want to hear of it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dthrottle

HERE = Path(__file__).parent
PATIENCE = 30.0
TABLE = f"test-busy-nodes-{os.getpid()}"


class Node:
    """A process that does what it is told."""

    def __init__(self, program: list[str], **task: Any) -> None:
        command = [*program, json.dumps({"throttle": None, **task})]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do(self, word: str, url: str = "") -> Any:
        """One word, and the answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([word, url]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


def until(condition: Callable[[], bool]) -> float:
    """How long it took until it was so."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < PATIENCE, "it never was so"
        time.sleep(0.002)
    return time.monotonic() - start


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def nodes() -> Iterator[dict[str, Node]]:
    ports = free_ports(4)
    peers = [f"127.0.0.1:{port}" for port in ports]
    name = f"busy-{os.getpid()}"

    def cluster(own: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "listen": peers[own], "peers": peers, **more}

    python = [sys.executable, str(HERE / "node.py")]
    javascript = ["node", str(HERE / "node.js")]
    beside = {"rate": "1/s", "table": TABLE, "cluster": cluster(2, busy=True)}
    found: dict[str, Node] = {}
    try:
        found["python"] = Node(python, busy={"cluster": cluster(0)})
        found["node"] = Node(javascript, busy={"cluster": cluster(1)})
        found["exchanger"] = Node(python, busy={"table": TABLE}, throttle=beside)
        # It has made the table, with the key of the cluster.
        found["exchanger"].do("stats")
        found["table"] = Node(python, busy={"table": TABLE})
        found["off"] = Node(python, busy={"cluster": cluster(3, busy=False)})
        until(lambda: all(node.do("stats")["peers"] == 3 for node in found.values()))
        yield found
    finally:
        for node in found.values():
            node.end()
        for table in dthrottle.tables():
            if table.name == TABLE:
                # With the busy answers beside it.
                for path in table.path.parent.glob(f"{table.path.name}*"):
                    path.unlink()


@pytest.fixture
def url() -> Iterator[str]:
    """A server of its own for each test, which is a service that nobody knows yet."""
    command = [sys.executable, str(HERE / "server.py"), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield f"http://127.0.0.1:{json.loads(server.stdout.readline())[0]}/"
        server.kill()


def says_capacity(url: str, capacity: int) -> None:
    urllib.request.urlopen(f"{url}capacity/{capacity}", timeout=10).close()


@pytest.mark.parametrize("first", ["python", "node", "table"])
def test_a_busy_answer_slows_all(nodes: dict[str, Node], url: str, first: str) -> None:
    says_capacity(url, 100_000)
    before = {name: node.do("stats") for name, node in nodes.items()}
    for node in nodes.values():
        assert [node.do("send", url) for _ in range(20)] == [200] * 20
        assert node.do("limit", url) is None
    says_capacity(url, 0)
    assert nodes[first].do("send", url) == 503
    others = {name for name in nodes if name not in (first, "off")}
    took = until(lambda: all(nodes[name].do("limit", url) is not None for name in others))
    print(f"\n{first} was told, the others were slower after {1000 * took:.0f} ms")
    # At once: long before any of them would have met a busy answer of its own.
    assert took < 5
    for name in others:
        # It was only told by others, and holds back.
        assert nodes[name].do("stats")["busy"] == before[name]["busy"]
        assert 0 in [nodes[name].do("send", url) for _ in range(20)]


def test_who_does_not_want_it_learns_for_itself(nodes: dict[str, Node], url: str) -> None:
    says_capacity(url, 100_000)
    assert nodes["off"].do("send", url) == 200
    says_capacity(url, 0)
    assert nodes["python"].do("send", url) == 503
    time.sleep(0.5)
    assert nodes["off"].do("limit", url) is None
    assert nodes["off"].do("stats")["remote_busy"] == 0
    # Nor does it tell others.
    nodes["python"].do("limit", url)
    reported = nodes["python"].do("stats")["remote_busy"]
    assert nodes["off"].do("send", url) == 503
    time.sleep(0.5)
    nodes["python"].do("limit", url)
    assert nodes["python"].do("stats")["remote_busy"] == reported
