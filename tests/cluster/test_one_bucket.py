"""Nodes in four languages on four hosts hold one client to one bucket, whatever goes wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from network import PORT, Network
from nodes import HERE, LANGUAGES, NEVER, Node
from scenario import BURST, RATE, SECRET, TAG, Result, Scenario, Stage

# A partition begins and ends; then it takes as long again until the debt is paid.
PARTED, HEALED, PAID = 1, 11, 25
KILLED, RESTARTED = 8, 10


def listed(network: Network, host: int) -> dict[str, Any]:
    """Know the addresses of all others."""
    peers = [network.address(peer) for peer in network.hosts if peer != host]
    return {"listen": network.address(host), "peers": peers}


def found(network: Network, host: int) -> dict[str, Any]:
    """Know nobody."""
    group = {"multicast": f"239.73.73.73:{PORT}", "interface": "eth0"}
    return {"listen": network.address(host, 0), **group}


def kill(stage: Stage) -> None:
    """Kill the node in C, which is the fastest and admits most."""
    stage.nodes[LANGUAGES.index("c")].kill()


def restart(stage: Stage) -> None:
    """Start it again: it has forgotten everything."""
    node = stage.start(LANGUAGES.index("c") + 1)
    node.wait_ready()
    stage.join(node)


def attack(stage: Stage) -> None:
    """Throw everything at every port, and let nodes with other secrets try to join."""
    network = stage.network
    addresses = [network.ip_address(host) for host in (0, *network.hosts)]
    command = [*network.on(0), sys.executable, str(HERE / "attack.py"), str(PORT), *addresses]
    attacker = subprocess.Popen(command)
    stage.stack.callback(end_attack, attacker)
    keys: list[dict[str, Any]] = [{"secret": f"{SECRET}?"}, {"without_secret": True}]
    for port, key in enumerate(keys, PORT):
        cluster = {"name": "test", **key, **listed(network, 0), "listen": network.address(0, port)}
        rule = {"rate": f"{RATE}/s", "burst": BURST}
        stranger = Node("rust", {**rule, "cluster": cluster}, on=network.on(0))
        stage.stack.callback(stranger.end)
        stranger.wait_ready()
        # What it admits it reports, under its own key.
        stage.run(stranger, RATE, TAG)


def end_attack(attacker: subprocess.Popen[bytes]) -> None:
    """See that it went on to the end."""
    attacker.terminate()
    assert attacker.wait(NEVER) == -signal.SIGTERM


SCENARIOS = {
    "undisturbed": Scenario(cluster=listed),
    "ipv6": Scenario(cluster=listed, ipv6=True),
    "multicast": Scenario(cluster=found),
    "loss": Scenario(cluster=listed, before=lambda network: network.lose(30)),
    "partition": Scenario(
        cluster=listed,
        seconds=PAID,
        faults=[
            (PARTED, lambda stage: stage.network.part((1, 2), (3, 4))),
            (HEALED, lambda stage: stage.network.heal()),
        ],
    ),
    "kill": Scenario(cluster=listed, faults=[(KILLED, kill), (RESTARTED, restart)]),
    "attack": Scenario(cluster=listed, faults=[(0, attack)]),
    # A node that has forgotten what it heard must not believe the recordings either.
    "attack and kill": Scenario(
        cluster=listed, faults=[(0, attack), (KILLED, kill), (RESTARTED, restart)]
    ),
    "alone": Scenario(),
}

Play = Callable[[str], Result]


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    """Play all at once: they mostly sleep."""
    with ThreadPoolExecutor(len(SCENARIOS)) as threads:
        results: dict[str, Future[Result]] = {
            name: threads.submit(scenario.play) for name, scenario in SCENARIOS.items()
        }
        yield lambda name: results[name].result()


@pytest.mark.parametrize("name", ["undisturbed", "ipv6", "multicast"])
def test_one_bucket(play: Play, name: str) -> None:
    result = play(name)
    result.is_one_bucket()
    assert result.stats["up"] == len(LANGUAGES) - 1
    assert result.stats["reports_lost"] == 0


def test_loss(play: Play) -> None:
    result = play("loss")
    result.is_one_bucket()
    assert result.stats["reports_repaired"] > 0, "nothing was lost"


def test_partition(play: Play) -> None:
    result = play("partition")
    one, more = BURST + RATE * HEALED, BURST + RATE * (HEALED - PARTED)
    admitted = result.until(HEALED)
    print(f"admitted {admitted} until the partition ends, one bucket {one}, bound {one + more}")
    assert one + more / 2 < admitted <= 1.02 * (one + more)
    # From two seconds later on all agree about the debt. Nobody looks at exactly the same time, so
    # the best of many looks counts.
    looks = [result.balances(HEALED + 2 + tenth / 10) for tenth in range(50)]
    spread, balances = min((max(look) - min(look), look) for look in looks)
    print("balances", balances)
    assert len(balances) == len(LANGUAGES)
    assert max(balances) < -RATE
    assert spread <= 0.02 * RATE
    result.is_one_bucket()


def test_kill(play: Play) -> None:
    result = play("kill")
    assert len(result.rows) == len(LANGUAGES) + 1
    result.is_one_bucket()
    assert result.stats["up"] == len(LANGUAGES) - 1


@pytest.mark.parametrize("name", ["attack", "attack and kill"])
def test_attack(play: Play, name: str) -> None:
    result = play(name)
    result.is_one_bucket()
    assert result.stats["up"] == len(LANGUAGES) - 1
    dropped = {name: n for name, n in result.stats.items() if name.startswith("dropped_")}
    print(dropped)
    for cause in ("magic", "short", "replay", "auth"):
        assert dropped[f"dropped_{cause}"] > 0, f"nothing was dropped for {cause}"
    assert dropped["dropped_malformed"] == 0, "something was believed before it was read"


def test_without_the_exchange_each_has_a_bucket(play: Play) -> None:
    result = play("alone")
    with pytest.raises(AssertionError):
        result.is_one_bucket()
    all_buckets = len(LANGUAGES) * result.exact
    assert abs(result.admitted - all_buckets) <= 0.02 * all_buckets
