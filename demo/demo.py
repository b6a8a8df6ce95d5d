"""Shows one client that sends requests to three nodes in three languages, which share one limit.

Each node is a process on this machine. Beside each runs a process that does not share. The program
prints live how many requests each of them admits, and fails if the limit is not kept. It does not
need root.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HAMMERS = ROOT / "tests" / "cluster"

RATE, BURST = 100, 100
# Requests per second to each node: more than twice the limit for all nodes together.
REQUESTS = 250
SECONDS = 12
TAG = "203.0.113.7"
TENTHS = 10 * SECONDS
# The largest share by which the total may differ from the limit.
MAX_DEVIATION = 0.05

NAMES = ("Python", "JavaScript", "C")


class Node:
    """A process that is controlled through a pipe; tests/cluster/hammer.py lists its commands."""

    def __init__(self, name: str, cluster: dict[str, Any] | None) -> None:
        config: dict[str, Any] = {"rate": f"{RATE}/s", "burst": BURST}
        if cluster:
            config["cluster"] = cluster
        toml = "".join(f"{key} = {inline(value)}\n" for key, value in config.items())
        command = {
            "Python": [sys.executable, str(HAMMERS / "hammer.py"), json.dumps(config)],
            "JavaScript": ["node", str(HAMMERS / "hammer.js"), json.dumps(config)],
            "C": [str(ROOT / "target" / "hammer"), toml],
        }[name]
        self.name = name
        self.requests = self.admitted = 0
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def line(self) -> str:
        """Read a line."""
        assert self.process.stdout
        line = self.process.stdout.readline().strip()
        if not line:
            sys.exit(f"the node in {self.name} ended unexpectedly")
        return line

    def send(self, command: str) -> None:
        """Send a command."""
        assert self.process.stdin
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def balance(self, tag: str) -> int:
        """Return the units left in a bucket."""
        self.send(f"balance {tag}")
        return int(self.line())

    def read_row(self) -> None:
        """Add the counts of a tenth of a second."""
        _tenth, requests, admitted, _balance = map(int, self.line().split())
        self.requests += requests
        self.admitted += admitted

    def end(self) -> None:
        """Close the pipes, and wait for the process to end."""
        self.process.communicate()


def inline(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def clusters() -> Iterator[dict[str, Any]]:
    """Yield the configurations of nodes that have each other's addresses."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in NAMES]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for address in addresses:
        yield {"name": "demo", "listen": address, "peers": addresses}


def start_time() -> int:
    """Return the time at which all nodes start together, in milliseconds since 1970."""
    return (int(time.time() * 1000) // 100 + 3) * 100


def wait_for_exchange(nodes: list[Node]) -> None:
    """Wait until each node knows of the requests to the others."""
    for number, node in enumerate(nodes):
        for attempt in range(60):
            # Far more requests than the bucket gets back meanwhile.
            tag = f"exchange-{number}-{attempt}"
            node.send(f"run {start_time()} {5 * RATE} 200 {tag}")
            while node.line() != "done":
                pass
            if all(peer.balance(tag) < 0.9 * BURST for peer in nodes):
                break
        else:
            sys.exit("the nodes did not connect to each other within 60 attempts")


def table(tenths: int, nodes: list[Node], alone: list[Node]) -> list[str]:
    """Return the lines that show the state after this many tenths of a second."""
    limit = BURST + RATE * tenths // 10
    total, without = sum(n.admitted for n in nodes), sum(n.admitted for n in alone)
    lines = [f"{'node':<12}{'requests':>10}{'admitted':>10}{'without sharing':>24}"]
    for name, node, lone in zip(NAMES, nodes, alone, strict=True):
        lines.append(f"{name:<12}{node.requests:>10}{node.admitted:>10}{lone.admitted:>24}")
    requests = sum(node.requests for node in nodes)
    lines += [f"{'total':<12}{requests:>10}{total:>10}{without:>24}", ""]
    for name, count in (("limit", limit), ("shared", total), ("not shared", without)):
        share = 20 * count // (BURST + RATE * SECONDS)
        lines.append(f"{name:<12}{count:>10}  {'#' * share}")
    lines.append(f"{tenths / 10:.1f} of {SECONDS} s")
    return lines


def show(nodes: list[Node], alone: list[Node]) -> list[dict[str, float]]:
    """Send the client's requests and show the counts live. Returns the totals over time."""
    live = sys.stdout.isatty()
    command = f"run {start_time()} {REQUESTS} {SECONDS * 1000} {TAG}"
    for node in (*nodes, *alone):
        node.send(command)
    record: list[dict[str, float]] = [{"seconds": 0, "limit": BURST, "shared": 0, "alone": 0}]
    for tenths in range(1, TENTHS + 1):
        for node in (*nodes, *alone):
            node.read_row()
        record.append(
            {
                "seconds": tenths / 10,
                "limit": BURST + RATE * tenths // 10,
                "shared": sum(node.admitted for node in nodes),
                "alone": sum(node.admitted for node in alone),
            }
        )
        lines = table(tenths, nodes, alone)
        if live:
            up = f"\x1b[{len(lines)}A" if tenths > 1 else ""
            print(up + "".join(f"\x1b[2K{line}\n" for line in lines), end="", flush=True)
        elif tenths == TENTHS:
            print("\n".join(lines))
        elif tenths % 30 == 0:
            counts = " ".join(str(node.admitted) for node in nodes)
            print(f"{lines[-1]}: admitted {counts}; {lines[-4]}", flush=True)
    return record


def main() -> None:
    """Start the nodes, show the counts, and check the total."""
    print(
        f"The limit for the client is {RATE} requests per second, with a burst of {BURST}.\n"
        f"It sends {REQUESTS} requests per second to each of three nodes in different languages.\n"
        "Each node decides on its own, and reports over UDP to the others what it admitted.\n"
    )
    with ExitStack() as stack:
        nodes = [Node(name, cluster) for name, cluster in zip(NAMES, clusters(), strict=True)]
        alone = [Node(name, None) for name in NAMES]
        for node in (*nodes, *alone):
            stack.callback(node.end)
        for node in (*nodes, *alone):
            node.line()
        wait_for_exchange(nodes)
        record = show(nodes, alone)
    limit = BURST + RATE * SECONDS
    total, without = sum(n.admitted for n in nodes), sum(n.admitted for n in alone)
    print(
        f"\nIn {SECONDS} s the limit is {BURST} + {RATE} x {SECONDS} = {limit}. The three nodes "
        f"admitted {total} ({100 * total / limit - 100:+.1f} %).\n"
        "How they divide these requests among themselves is random.\n"
        f"Nodes that do not share admitted {without}, because each has the limit for itself."
    )
    if abs(total - limit) > MAX_DEVIATION * limit:
        sys.exit(f"the total must be within {MAX_DEVIATION:.0%} of the limit")
    if without < 2 * limit:
        sys.exit(
            "nodes that do not share must admit at least twice the limit; is the machine busy?"
        )
    if sys.argv[1:]:
        # The figures of the picture in README.md: two per second.
        Path(sys.argv[1]).write_text(json.dumps(record[::5]))


if __name__ == "__main__":
    main()
