"""One process of a table exchanges; when it is killed another goes on, and nothing counts twice."""

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
# Small enough that every single unit is told to peers.
BURST = 50_000
# Hits that come late are only charged to tags that are near their limit. This one is.
TAKEN = 46_000
RATE, MS = 25, 3000
# Reports and repairs take far less.
PATIENCE = 20
# Who goes on is up to chance: after so many kills every language has been killed, or never will.
MOST_KILLS = 15


@dataclass
class Host:
    """A table with three processes, and one that only looks; and another node."""

    config: dict[str, Any]
    port: int
    watch: Node
    remote: Node
    processes: list[Node] = field(default_factory=list)
    stack: ExitStack = field(default_factory=ExitStack)

    def start(self, language: str) -> None:
        """Start a process."""
        node = Node(language, self.config)
        self.stack.callback(node.end)
        self.processes.append(node)

    def exchanger(self) -> Node:
        """Find the process that exchanges."""
        pid = self.watch.stats()["pid"]
        [node] = [node for node in self.processes if node.pid == pid]
        return node


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """Start everything."""
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
        watch = Node("rust", here, "observe")
        remote = Node("rust", config(ports[1], "remote"))
        host = Host(here, ports[0], watch, remote, stack=stack)
        for node in (watch, remote):
            stack.callback(node.end)
        for language in HOST:
            host.start(language)
        start_all([watch, remote, *host.processes])
        for _ in poll("two nodes"):
            if watch.stats()["up"] == remote.stats()["up"] == 1:
                break
        yield host


def test_another_process_goes_on(host: Host) -> None:
    admitted = TAKEN
    host.remote.ask(f"take {TAKEN} {TAG}")
    agree(host, admitted)
    killed: list[str] = []
    while set(killed) != set(HOST) and len(killed) < MOST_KILLS:
        old = host.exchanger()
        before = host.watch.stats()
        assert holders(host.port, host.processes) == [old.pid]
        hammers = [node for node in (*host.processes, host.remote) if node is not old]
        start = int(time.time() * 1000) // 100 * 100 + 200
        for node in hammers:
            node.tell(f"run {start} {RATE} {MS} {TAG}")
        child = int(old.ask("fork"))
        # Anywhere between two reports.
        time.sleep(1 + len(killed) * 0.013)
        old.kill()
        print(f"{old.language} killed:", end=" ")
        host.processes.remove(old)
        see_another(host, before)
        os.kill(child, 0)
        admitted += sum(row.admitted for node in hammers for row in node.rows())
        os.kill(child, signal.SIGKILL)
        agree(host, admitted)
        killed.append(old.language)
        host.start(old.language)
        host.processes[-1].wait_ready()
    assert set(killed) == set(HOST), killed


def see_another(host: Host, before: dict[str, int]) -> None:
    """Wait until another process exchanges, in a new life."""
    begin = time.monotonic()
    for _ in poll("another process"):
        now = host.watch.stats()
        if now["pid"] != before["pid"]:
            break
    passed = time.monotonic() - begin
    assert now["incarnation"] > before["incarnation"]
    new = host.exchanger()
    print(f"{new.language} goes on after {passed:.3f} s")
    # It says so before it has the socket.
    for _ in poll("its socket"):
        if holders(host.port, host.processes) == [new.pid]:
            break


def agree(host: Host, admitted: int) -> None:
    """Wait until both nodes have charged exactly what was admitted."""
    left = BURST - admitted
    for passed in poll("agreement"):
        balances = [node.balance(TAG) for node in (*host.processes, host.remote)]
        if set(balances) == {left}:
            break
        stats = host.watch.stats(), host.remote.stats()
        assert passed < PATIENCE, f"{balances}, and not {left}: {stats}"
    # Nothing comes later.
    time.sleep(0.3)
    assert {node.balance(TAG) for node in (*host.processes, host.remote)} == {left}


def free_ports(count: int) -> list[int]:
    """Find ports that were free a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def holders(port: int, processes: Sequence[Node]) -> list[int]:
    """Find who of the processes has the socket of a port."""
    rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}")}
    return [node.pid for node in processes if sockets & files_of(node.pid)]


def files_of(process: int) -> set[str]:
    """Give what a process has open, as the system names it; what is closed meanwhile is left out."""
    found = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(link.readlink()))
    return found
