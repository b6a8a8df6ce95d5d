"""Tests that another process takes over the exchange of a table, without counting hits twice."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from nodes import Node, poll, start_all

HOST = ("python", "node", "c")
TAG = "client"
# Small enough that every single unit is reported.
BURST = 50_000
# Brings the tag near its limit, because late hits are only charged to such tags.
TAKEN = 46_000
RATE, MS = 25, 3000
# Reports and repairs take much less.
AGREEMENT_TIMEOUT_S = 20
# Which process takes over is random. After this number of kills, every language was killed.
MAX_KILLS = 15


@dataclass
class Host:
    """A table with three processes and an observer, and a remote node."""

    config: dict[str, Any]
    port: int
    observer: Node
    remote: Node
    processes: list[Node] = field(default_factory=list)
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self, language: str) -> None:
        """Start a process."""
        node = Node(language, self.config)
        self.stack.callback(node.end)
        self.processes.append(node)

    def exchanging_process(self) -> Node:
        """Return the process that runs the exchange."""
        pid = self.observer.stats()["pid"]
        [node] = [node for node in self.processes if node.pid == pid]
        return node


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """Start all processes."""
    ports = free_ports(2)
    rule = {"rate": "1 per 100 years", "burst": BURST}

    def config(port: int, name: str) -> dict[str, Any]:
        peers = [f"127.0.0.1:{peer}" for peer in ports if peer != port]
        cluster = {"name": "test", "secret": "a secret of the tests, long enough"}
        cluster_config = {**cluster, "listen": f"127.0.0.1:{port}", "peers": peers}
        table = {"name": name, "dir": str(tmp_path)}
        return {**rule, "table": table, "cluster": cluster_config}

    here = config(ports[0], "here")
    with ExitStack() as stack:
        observer = Node("rust", here, "observe")
        remote = Node("rust", config(ports[1], "remote"))
        host = Host(here, ports[0], observer, remote, stack=stack)
        for node in (observer, remote):
            stack.callback(node.end)
        for language in HOST:
            host.start(language)
        start_all([observer, remote, *host.processes])
        for _ in poll("two nodes"):
            if observer.stats()["up"] == remote.stats()["up"] == 1:
                break
        yield host


def test_another_process_takes_over_when_the_exchanging_process_is_killed(host: Host) -> None:
    admitted = TAKEN
    host.remote.query(f"take {TAKEN} {TAG}")
    agree(host, admitted)
    killed: list[str] = []
    while set(killed) != set(HOST) and len(killed) < MAX_KILLS:
        old = host.exchanging_process()
        before = host.observer.stats()
        assert socket_owners(host.port, host.processes) == [old.pid]
        hammers = [node for node in (*host.processes, host.remote) if node is not old]
        start = int(time.time() * 1000) // 100 * 100 + 200
        for node in hammers:
            node.send(f"run {start} {RATE} {MS} {TAG}")
        child = int(old.query("fork"))
        # Each round kills the process at a different time between two reports.
        time.sleep(1 + len(killed) * 0.013)
        old.kill()
        print(f"{old.language} killed:", end=" ")
        host.processes.remove(old)
        wait_for_takeover(host, before)
        os.kill(child, 0)
        admitted += sum(row.admitted for node in hammers for row in node.rows())
        os.kill(child, signal.SIGKILL)
        agree(host, admitted)
        killed.append(old.language)
        host.start(old.language)
        host.processes[-1].wait_ready()
    assert set(killed) == set(HOST), killed


def wait_for_takeover(host: Host, before: dict[str, int]) -> None:
    """Wait until another process runs the exchange, with a new incarnation."""
    begin = time.monotonic()
    for _ in poll("another process"):
        now = host.observer.stats()
        if now["pid"] != before["pid"]:
            break
    passed = time.monotonic() - begin
    assert now["incarnation"] > before["incarnation"]
    new = host.exchanging_process()
    print(f"{new.language} takes over after {passed:.3f} s")
    # The statistics change before the process has the socket.
    for _ in poll("its socket"):
        if socket_owners(host.port, host.processes) == [new.pid]:
            break


def agree(host: Host, admitted: int) -> None:
    """Wait until both nodes have charged exactly what was admitted."""
    left = BURST - admitted
    for passed in poll("agreement"):
        balances = [node.balance(TAG) for node in (*host.processes, host.remote)]
        if set(balances) == {left}:
            break
        stats = host.observer.stats(), host.remote.stats()
        assert passed < AGREEMENT_TIMEOUT_S, f"balances {balances}, expected {left}: {stats}"
    # No hits arrive later.
    time.sleep(0.3)
    assert {node.balance(TAG) for node in (*host.processes, host.remote)} == {left}


def free_ports(count: int) -> list[int]:
    """Return ports that are currently free."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def socket_owners(port: int, processes: Sequence[Node]) -> list[int]:
    """Return the processes that have the socket of a port."""
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}")}
    return [node.pid for node in processes if sockets & files_of(node.pid)]


def files_of(process: int) -> set[str]:
    """Return the targets of the open file descriptors of a process."""
    found = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(link.readlink()))
    return found
