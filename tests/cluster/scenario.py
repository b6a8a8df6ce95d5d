"""One client of four nodes for some seconds, while hosts and networks may fail."""

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
# Requests per second to all nodes together, ten times the rate.
OFFERED = 10 * RATE
SECRET = "a secret of the tests, long enough"
TAG = "203.0.113.7"
TENTH = 100


@dataclass
class Stage:
    """The parts of a running scenario that an event can change."""

    network: Network
    nodes: list[Node]
    # Starts the node of a host; sends requests of the client to a node; runs one command.
    start: Callable[[int], Node]
    join: Callable[[Node], None]
    run: Callable[[Node, int, str], None]
    # Closed when the scenario ends.
    stack: ExitStack


# Seconds after the start, and the action.
Event = tuple[float, Callable[[Stage], None]]


@dataclass
class Scenario:
    """A configuration and the events of one run."""

    seconds: int = 20
    ipv6: bool = False
    # Returns the keys of a host's cluster besides name and secret. None runs without a cluster.
    cluster: Callable[[Network, int], dict[str, Any]] | None = None
    before: Callable[[Network], None] | None = None
    events: Sequence[Event] = ()

    def play(self) -> Result:
        """Run the scenario on new hosts."""
        with ExitStack() as stack:
            network = stack.enter_context(closing(Network(len(LANGUAGES), ipv6=self.ipv6)))
            if self.before:
                self.before(network)

            def start(host: int) -> Node:
                config: dict[str, Any] = {"rate": f"{RATE}/s", "burst": BURST}
                if self.cluster:
                    shared = {"name": "test", "secret": SECRET}
                    config["cluster"] = shared | self.cluster(network, host)
                node = Node(LANGUAGES[host - 1], config, prefix=network.command_on(host))
                stack.callback(node.end)
                return node

            nodes = [start(host) for host in network.hosts]
            start_all(nodes)
            if self.cluster:
                wait_for_peers(nodes[-1], len(nodes) - 1)
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
            node.send(f"run {begin + late} {rate} {ms - late} {tag}")

        def join(node: Node) -> None:
            run(node, OFFERED // len(nodes), TAG)
            reader = threading.Thread(target=lambda: result.rows.append(list(node.rows())))
            readers.append(reader)
            reader.start()

        for node in nodes:
            join(node)
        stage = Stage(network, nodes, start, join, run, stack)
        for at, event in self.events:
            time.sleep(max(0.0, begin / 1000 + at - time.time()))
            event(stage)
        for reader in readers:
            reader.join()
        if self.cluster:
            result.stats = nodes[-1].stats()
        return result


@dataclass
class Result:
    """The counts of all nodes."""

    seconds: int
    first: int
    rows: list[list[Row]] = field(default_factory=list)
    stats: dict[str, int] = field(default_factory=dict)

    @property
    def exact(self) -> int:
        """The units that one bucket would have admitted."""
        return BURST + RATE * self.seconds

    @property
    def admitted(self) -> int:
        """The units that all nodes admitted."""
        return sum(row.admitted for rows in self.rows for row in rows)

    @property
    def checks(self) -> int:
        """The checks of all nodes."""
        return sum(row.checks for rows in self.rows for row in rows)

    def until(self, second: float) -> int:
        """Return the units that were admitted before a time."""
        end = self.first + round(second * 10)
        return sum(row.admitted for rows in self.rows for row in rows if row.tenth < end)

    def balances(self, second: float) -> list[int]:
        """Return the balance of each node at a time, to a tenth of a second."""
        at = self.first + round(second * 10)
        return [row.balance for rows in self.rows for row in rows if row.tenth == at]

    def assert_one_bucket(self) -> None:
        """Check that the admitted total is within 2 % of one exact bucket."""
        print(f"checks {self.checks}, admitted {self.admitted}, exact {self.exact}")
        assert self.checks > 5 * self.exact, "too few checks to reach the limit"
        assert abs(self.admitted - self.exact) <= 0.02 * self.exact


def wait_for_peers(node: Node, peers: int) -> None:
    """Wait until a node in Rust has this number of peers."""
    for _ in poll(f"{peers} peers"):
        if node.stats()["up"] == peers:
            return
