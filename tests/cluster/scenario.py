"""One client over four nodes for some seconds, and what may go wrong meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from network import Network
from nodes import LANGUAGES, Node, Row, poll, start_all

RATE, BURST = 200, 100
# Of all nodes together, ten times the rate.
OFFERED = 10 * RATE
SECRET = "a secret of the tests, long enough"
TAG = "203.0.113.7"
TENTH = 100


@dataclass
class Stage:
    """What a fault can reach while a scenario runs."""

    network: Network
    nodes: list[Node]
    # Starts the node of a host; joins a node to the client; lets a stranger ask for itself.
    start: Callable[[int], Node]
    join: Callable[[Node], None]
    run: Callable[[Node, int, str], None]
    # What has to end with the scenario.
    stack: ExitStack


# Seconds after the start, and what happens then.
Fault = tuple[float, Callable[[Stage], None]]


@dataclass
class Scenario:
    """A run."""

    seconds: int = 20
    ipv6: bool = False
    # Keys of the cluster besides name and secret, of a host in its network; none: no cluster.
    cluster: Callable[[Network, int], dict[str, Any]] | None = None
    before: Callable[[Network], None] | None = None
    faults: Sequence[Fault] = ()

    def play(self) -> Result:
        """Run it all, in hosts of its own."""
        with ExitStack() as stack:
            network = stack.enter_context(closing(Network(len(LANGUAGES), ipv6=self.ipv6)))
            if self.before:
                self.before(network)

            def start(host: int) -> Node:
                config: dict[str, Any] = {"rate": f"{RATE}/s", "burst": BURST}
                if self.cluster:
                    shared = {"name": "test", "secret": SECRET}
                    config["cluster"] = shared | self.cluster(network, host)
                node = Node(LANGUAGES[host - 1], config, on=network.on(host))
                stack.callback(node.end)
                return node

            nodes = [start(host) for host in network.hosts]
            start_all(nodes)
            if self.cluster:
                wait_whole(nodes[-1], len(nodes) - 1)
            return self._run(network, nodes, start, stack)

    def _run(
        self,
        network: Network,
        nodes: list[Node],
        start: Callable[[int], Node],
        stack: ExitStack,
    ) -> Result:
        ms = self.seconds * 1000
        begin = (int(time.time() * 1000) // TENTH + 5) * TENTH
        result = Result(self.seconds, begin // TENTH)
        readers: list[threading.Thread] = []

        def run(node: Node, rate: int, tag: str) -> None:
            late = max(0, int(time.time() * 1000) // TENTH + 1 - begin // TENTH) * TENTH
            node.tell(f"run {begin + late} {rate} {ms - late} {tag}")

        def join(node: Node) -> None:
            run(node, OFFERED // len(nodes), TAG)
            reader = threading.Thread(target=lambda: result.rows.append(list(node.rows())))
            readers.append(reader)
            reader.start()

        for node in nodes:
            join(node)
        stage = Stage(network, nodes, start, join, run, stack)
        for at, fault in self.faults:
            time.sleep(max(0.0, begin / 1000 + at - time.time()))
            fault(stage)
        for reader in readers:
            reader.join()
        if self.cluster:
            result.stats = nodes[-1].stats()
        return result


@dataclass
class Result:
    """What the nodes saw."""

    seconds: int
    first: int
    rows: list[list[Row]] = field(default_factory=list)
    stats: dict[str, int] = field(default_factory=dict)

    @property
    def exact(self) -> int:
        """What one bucket would have admitted."""
        return BURST + RATE * self.seconds

    @property
    def admitted(self) -> int:
        """What the nodes admitted together."""
        return sum(row.admitted for rows in self.rows for row in rows)

    @property
    def asked(self) -> int:
        """What was asked of them."""
        return sum(row.asked for rows in self.rows for row in rows)

    def until(self, second: float) -> int:
        """Give what was admitted before a moment."""
        end = self.first + round(second * 10)
        return sum(row.admitted for rows in self.rows for row in rows if row.tenth < end)

    def balances(self, second: float) -> list[int]:
        """Give what each node held at a moment, to a tenth of a second."""
        at = self.first + round(second * 10)
        return [row.balance for rows in self.rows for row in rows if row.tenth == at]

    def is_one_bucket(self) -> None:
        """Check that the total is within 2 % of one exact bucket, and that nothing else could be."""
        print(f"asked {self.asked}, admitted {self.admitted}, exact {self.exact}")
        assert self.asked > 5 * self.exact, "too little was asked for to show anything"
        assert abs(self.admitted - self.exact) <= 0.02 * self.exact


def wait_whole(node: Node, peers: int) -> None:
    """Wait until a node in Rust has so many peers."""
    for _ in poll(f"{peers} peers"):
        if node.stats()["up"] == peers:
            return
