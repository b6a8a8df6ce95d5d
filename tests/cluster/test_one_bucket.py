"""Tests that four nodes in four languages limit one client like one bucket, also during failures."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from network import PORT, Network
from nodes import HERE, LANGUAGES, TIMEOUT_S, Node
from scenario import BURST, RATE, SECRET, TAG, Result, Scenario, Stage

# Seconds at which a partition begins and ends, and at which the buckets are out of debt.
PARTED, HEALED, PAID = 1, 11, 25
KILLED, RESTARTED = 8, 10


def peer_list_config(network: Network, host: int) -> dict[str, Any]:
    """Return the keys of a cluster that lists its peers."""
    peers = [network.address(peer) for peer in network.hosts if peer != host]
    return {"listen": network.address(host), "peers": peers}


def multicast_config(network: Network, host: int) -> dict[str, Any]:
    """Return the keys of a cluster that finds its peers by multicast."""
    group = {"multicast": f"239.73.73.73:{PORT}", "interface": "eth0"}
    return {"listen": network.address(host, 0), **group}


def kill(stage: Stage) -> None:
    """Kill the node in C, which is the fastest and admits most."""
    stage.nodes[LANGUAGES.index("c")].kill()


def restart(stage: Stage) -> None:
    """Start the killed node again, with an empty table."""
    node = stage.start(LANGUAGES.index("c") + 1)
    node.wait_ready()
    stage.join(node)


def attack(stage: Stage) -> None:
    """Attack every node, and let nodes with other secrets try to join."""
    network = stage.network
    addresses = [network.ip_address(host) for host in (0, *network.hosts)]
    command = [
        *network.command_on(0),
        sys.executable,
        str(HERE / "attack.py"),
        str(PORT),
        *addresses,
    ]
    attacker = subprocess.Popen(command)
    stage.stack.callback(end_attack, attacker)
    keys: list[dict[str, Any]] = [{"secret": f"{SECRET}?"}, {"without_secret": True}]
    for port, key in enumerate(keys, PORT):
        cluster = {
            "name": "test",
            **key,
            **peer_list_config(network, 0),
            "listen": network.address(0, port),
        }
        rule = {"rate": f"{RATE}/s", "burst": BURST}
        outsider = Node("rust", {**rule, "cluster": cluster}, prefix=network.command_on(0))
        stage.stack.callback(outsider.end)
        outsider.wait_ready()
        # It reports what it admits under its own key.
        stage.run(outsider, RATE, TAG)


def end_attack(attacker: subprocess.Popen[bytes]) -> None:
    """End the attacker, and check that it was still running."""
    attacker.terminate()
    assert attacker.wait(TIMEOUT_S) == -signal.SIGTERM


SCENARIOS = {
    "undisturbed": Scenario(cluster=peer_list_config),
    "ipv6": Scenario(cluster=peer_list_config, ipv6=True),
    "multicast": Scenario(cluster=multicast_config),
    "loss": Scenario(cluster=peer_list_config, before=lambda network: network.drop_packets(30)),
    "partition": Scenario(
        cluster=peer_list_config,
        seconds=PAID,
        events=[
            (PARTED, lambda stage: stage.network.partition((1, 2), (3, 4))),
            (HEALED, lambda stage: stage.network.heal()),
        ],
    ),
    "kill": Scenario(cluster=peer_list_config, events=[(KILLED, kill), (RESTARTED, restart)]),
    "attack": Scenario(cluster=peer_list_config, events=[(0, attack)]),
    # A restarted node does not know which reports it has received, and must not accept recordings.
    "attack and kill": Scenario(
        cluster=peer_list_config, events=[(0, attack), (KILLED, kill), (RESTARTED, restart)]
    ),
    "without a cluster": Scenario(),
}

Play = Callable[[str], Result]


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    """Run all scenarios at once, because they mostly sleep."""
    with ThreadPoolExecutor(len(SCENARIOS)) as threads:
        results: dict[str, Future[Result]] = {
            name: threads.submit(scenario.play) for name, scenario in SCENARIOS.items()
        }
        yield lambda name: results[name].result()


@pytest.mark.parametrize("name", ["undisturbed", "ipv6", "multicast"])
def test_nodes_admit_as_much_as_one_bucket(play: Play, name: str) -> None:
    result = play(name)
    result.assert_one_bucket()
    assert result.stats["up"] == len(LANGUAGES) - 1
    assert result.stats["reports_lost"] == 0


def test_nodes_admit_as_much_as_one_bucket_with_packet_loss(play: Play) -> None:
    result = play("loss")
    result.assert_one_bucket()
    assert result.stats["reports_repaired"] > 0, "no report was lost and repaired"


def test_a_partition_admits_one_more_bucket_which_is_paid_back(play: Play) -> None:
    result = play("partition")
    one, more = BURST + RATE * HEALED, BURST + RATE * (HEALED - PARTED)
    admitted = result.until(HEALED)
    print(f"admitted {admitted} until the partition ends, one bucket {one}, bound {one + more}")
    assert one + more / 2 < admitted <= 1.02 * (one + more)
    # Two seconds later all nodes agree about the debt. They do not measure at exactly the same time,
    # so the best of many measurements counts.
    measurements = [result.balances(HEALED + 2 + tenth / 10) for tenth in range(50)]
    spread, balances = min((max(values) - min(values), values) for values in measurements)
    print("balances", balances)
    assert len(balances) == len(LANGUAGES)
    assert max(balances) < -RATE
    assert spread <= 0.02 * RATE
    result.assert_one_bucket()


def test_a_killed_and_restarted_node_does_not_change_the_total(play: Play) -> None:
    result = play("kill")
    assert len(result.rows) == len(LANGUAGES) + 1
    result.assert_one_bucket()
    assert result.stats["up"] == len(LANGUAGES) - 1


@pytest.mark.parametrize("name", ["attack", "attack and kill"])
def test_attackers_do_not_change_the_total(play: Play, name: str) -> None:
    result = play(name)
    result.assert_one_bucket()
    assert result.stats["up"] == len(LANGUAGES) - 1
    dropped = {name: n for name, n in result.stats.items() if name.startswith("dropped_")}
    print(dropped)
    for cause in ("magic", "short", "replay", "auth"):
        assert dropped[f"dropped_{cause}"] > 0, f"no datagram was dropped for {cause}"
    assert dropped["dropped_malformed"] == 0, "a forged datagram passed authentication"


def test_nodes_without_a_cluster_have_separate_buckets(play: Play) -> None:
    result = play("without a cluster")
    with pytest.raises(AssertionError):
        result.assert_one_bucket()
    all_buckets = len(LANGUAGES) * result.exact
    assert abs(result.admitted - all_buckets) <= 0.02 * all_buckets
