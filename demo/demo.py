"""Three nodes in three languages, one client that asks all of them, and one limit.

Each node is a process of its own on this machine; beside each runs the same without the exchange.
Shows what every node admits while it happens, and fails unless the limit was kept. Needs no root.
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
# The client asks each node more than twice as often as the limit allows for all of them.
ASKS = 250
SECONDS = 12
TAG = "203.0.113.7"
TENTHS = 10 * SECONDS
# How far the total may be from the limit.
NEAR = 0.05

NAMES = ("Python", "JavaScript", "C")


class Node:
    """A process that takes orders; tests/cluster/hammer.py says which."""

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
        self.asked = self.admitted = 0
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def line(self) -> str:
        """Read a line."""
        assert self.process.stdout
        line = self.process.stdout.readline().strip()
        if not line:
            sys.exit("a node has ended before its time")
        return line

    def tell(self, order: str) -> None:
        """Give an order."""
        assert self.process.stdin
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def balance(self, tag: str) -> int:
        """Give what is left in a bucket."""
        self.tell(f"balance {tag}")
        return int(self.line())

    def read_row(self) -> None:
        """Count what happened in a tenth of a second."""
        _tenth, asked, admitted, _balance = map(int, self.line().split())
        self.asked += asked
        self.admitted += admitted

    def end(self) -> None:
        """End it."""
        self.process.communicate()


def inline(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def clusters() -> Iterator[dict[str, Any]]:
    """Give the configurations of nodes that know each other's addresses."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in NAMES]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for address in addresses:
        yield {"name": "demo", "listen": address, "peers": addresses}


def soon() -> int:
    """Give a time of day for all to begin at, in milliseconds."""
    return (int(time.time() * 1000) // 100 + 3) * 100


def meet(nodes: list[Node]) -> None:
    """Wait until all nodes see what is asked of each."""
    for number, node in enumerate(nodes):
        for attempt in range(60):
            # Far more than flows in meanwhile.
            tag = f"meeting-{number}-{attempt}"
            node.tell(f"run {soon()} {5 * RATE} 200 {tag}")
            while node.line() != "done":
                pass
            if all(peer.balance(tag) < 0.9 * BURST for peer in nodes):
                break
        else:
            sys.exit("the nodes do not find each other")


def table(tenths: int, nodes: list[Node], alone: list[Node]) -> list[str]:
    """Draw all that is known after so many tenths of a second."""
    limit = BURST + RATE * tenths // 10
    total, without = sum(n.admitted for n in nodes), sum(n.admitted for n in alone)
    lines = [f"{'node':<12}{'requests':>10}{'admitted':>10}{'without the exchange':>24}"]
    for name, node, lone in zip(NAMES, nodes, alone, strict=True):
        lines.append(f"{name:<12}{node.asked:>10}{node.admitted:>10}{lone.admitted:>24}")
    asked = sum(node.asked for node in nodes)
    lines += [f"{'total':<12}{asked:>10}{total:>10}{without:>24}", ""]
    for name, count in (("limit", limit), ("admitted", total), ("without", without)):
        share = 20 * count // (BURST + RATE * SECONDS)
        lines.append(f"{name:<12}{count:>10}  {'#' * share}")
    lines.append(f"{tenths / 10:.1f} of {SECONDS} s")
    return lines


def show(nodes: list[Node], alone: list[Node]) -> list[dict[str, float]]:
    """Let the client ask all of them, and show it as it happens. Returns the totals over time."""
    live = sys.stdout.isatty()
    order = f"run {soon()} {ASKS} {SECONDS * 1000} {TAG}"
    for node in (*nodes, *alone):
        node.tell(order)
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
    """Start everything, show it, and judge."""
    print(
        f"One client, three nodes, one limit: {RATE} requests a second, and {BURST} at once.\n"
        f"Each node is a process in another language. The client asks each {ASKS} times a second.\n"
        "The nodes decide by themselves and tell each other over UDP what they admitted.\n"
    )
    with ExitStack() as stack:
        nodes = [Node(name, cluster) for name, cluster in zip(NAMES, clusters(), strict=True)]
        alone = [Node(name, None) for name in NAMES]
        for node in (*nodes, *alone):
            stack.callback(node.end)
        for node in (*nodes, *alone):
            node.line()
        meet(nodes)
        record = show(nodes, alone)
    limit = BURST + RATE * SECONDS
    total, without = sum(n.admitted for n in nodes), sum(n.admitted for n in alone)
    print(
        f"\nIn {SECONDS} s the limit is {BURST} + {RATE} x {SECONDS} = {limit}. The three nodes "
        f"admitted {total}: {100 * total / limit - 100:+.1f} %.\n"
        "Which of them admits a request is up to chance; that all of them count it is not.\n"
        f"Without the exchange each would hold the client to a limit of its own: {without} in all."
    )
    if abs(total - limit) > NEAR * limit or without < 2 * limit:
        sys.exit("that is not what it should be")
    if sys.argv[1:]:
        # The figures of the picture in README.md: two a second.
        Path(sys.argv[1]).write_text(json.dumps(record[::5]))


if __name__ == "__main__":
    main()
