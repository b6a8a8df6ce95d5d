"""Nodes of a cluster in several processes: a busy response to one node slows the others.

There is a node in Python, one in JavaScript, one in Python whose table is exchanged by a Throttle of
another process, and one whose option busy is off.
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
TIMEOUT = 30.0
TABLE = f"test-busy-nodes-{os.getpid()}"


class NodeProcess:
    """A process that runs node.py or node.js."""

    def __init__(self, program: list[str], **task: Any) -> None:
        command = [*program, json.dumps({"throttle": None, **task})]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, command: str, url: str = "") -> Any:
        """Send a command, and return the answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([command, url]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.communicate()


def until(condition: Callable[[], bool]) -> float:
    """Wait until a condition holds, and return how many seconds that took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < TIMEOUT, f"condition not met within {TIMEOUT} s"
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
def nodes() -> Iterator[dict[str, NodeProcess]]:
    ports = free_ports(4)
    peers = [f"127.0.0.1:{port}" for port in ports]
    name = f"busy-{os.getpid()}"

    def cluster(own: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "listen": peers[own], "peers": peers, **more}

    python = [sys.executable, str(HERE / "node.py")]
    javascript = ["node", str(HERE / "node.js")]
    throttle = {"rate": "1/s", "table": TABLE, "cluster": cluster(2, busy=True)}
    found: dict[str, NodeProcess] = {}
    try:
        found["python"] = NodeProcess(python, busy={"cluster": cluster(0)})
        found["node"] = NodeProcess(javascript, busy={"cluster": cluster(1)})
        found["exchanger"] = NodeProcess(python, busy={"table": TABLE}, throttle=throttle)
        # The answer shows that the table exists, with the key of the cluster.
        found["exchanger"].run("stats")
        found["table"] = NodeProcess(python, busy={"table": TABLE})
        found["off"] = NodeProcess(python, busy={"cluster": cluster(3, busy=False)})
        until(lambda: all(node.run("stats")["peers"] == 3 for node in found.values()))
        yield found
    finally:
        for node in found.values():
            node.end()
        for table in dthrottle.tables():
            if table.name == TABLE:
                # The file with the limits of services has a longer name.
                for path in table.path.parent.glob(f"{table.path.name}*"):
                    path.unlink()


@pytest.fixture
def url() -> Iterator[str]:
    """Start a server for one test, and return its URL. No node has a limit for it yet."""
    command = [sys.executable, str(HERE / "server.py"), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        yield f"http://127.0.0.1:{json.loads(server.stdout.readline())[0]}/"
        server.kill()


def set_capacity(url: str, capacity: int) -> None:
    urllib.request.urlopen(f"{url}capacity/{capacity}", timeout=10).close()


@pytest.mark.parametrize("first", ["python", "node", "table"])
def test_busy_response_to_one_node_slows_all(
    nodes: dict[str, NodeProcess], url: str, first: str
) -> None:
    set_capacity(url, 100_000)
    before = {name: node.run("stats") for name, node in nodes.items()}
    for node in nodes.values():
        assert [node.run("send", url) for _ in range(20)] == [200] * 20
        assert node.run("limit", url) is None
    set_capacity(url, 0)
    assert nodes[first].run("send", url) == 503
    others = {name for name in nodes if name not in (first, "off")}
    took = until(lambda: all(nodes[name].run("limit", url) is not None for name in others))
    print(f"\n{first} got a busy response, the others were slower after {1000 * took:.0f} ms")
    # The other nodes send nothing meanwhile, so they got no busy response themselves.
    assert took < 5
    for name in others:
        # The node got no busy response itself, and still does not send all requests.
        assert nodes[name].run("stats")["busy"] == before[name]["busy"]
        assert 0 in [nodes[name].run("send", url) for _ in range(20)]


def test_node_with_busy_off_ignores_and_sends_no_reports(
    nodes: dict[str, NodeProcess], url: str
) -> None:
    set_capacity(url, 100_000)
    assert nodes["off"].run("send", url) == 200
    set_capacity(url, 0)
    assert nodes["python"].run("send", url) == 503
    time.sleep(0.5)
    assert nodes["off"].run("limit", url) is None
    assert nodes["off"].run("stats")["remote_busy"] == 0
    # It does not report its own busy responses either.
    nodes["python"].run("limit", url)
    reported = nodes["python"].run("stats")["remote_busy"]
    assert nodes["off"].run("send", url) == 503
    time.sleep(0.5)
    nodes["python"].run("limit", url)
    assert nodes["python"].run("stats")["remote_busy"] == reported
