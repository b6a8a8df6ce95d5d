"""Calls of charge() and requests above the burst on one node count on all nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from test_cluster import config, ports, sees, until
from web import Client, kinds

from dthrottle import Throttle

BURST = 10
Nodes = tuple[Throttle, Throttle]


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    """Start two nodes. A unit takes an hour to refill, so that tests do not depend on time."""
    own, other = ports(2)
    one = Throttle("1/hour", burst=BURST, cluster=config(own, other))
    two = Throttle("1/hour", burst=BURST, cluster=config(other, own))
    with closing(one), closing(two):
        one.start()
        two.start()
        until(sees(one, "up"))
        until(sees(two, "up"))
        yield one, two


def tag_with_balance(two: Throttle, balance: int, use: Callable[[str], Any]) -> str:
    """Use new tags until the other node has the expected balance of one of them.

    A node ignores reports while it starts, and a report may contain only a part of the charges.
    """
    for tag in map(str, range(60)):
        use(tag)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            if two.peek(tag).balance == balance:
                return tag
            time.sleep(0.01)
    raise AssertionError(f"no tag got the balance {balance} on the other node")


@pytest.mark.parametrize("call", ["charge", "charge_local"])
def test_charge_is_reported_to_peers_and_charge_local_is_not(nodes: Nodes, call: str) -> None:
    one, two = nodes

    def use(tag: str) -> None:
        getattr(one, call)(tag, 30)
        one.refund(tag, 25)
        one.allow(tag)

    tag = tag_with_balance(two, BURST - (6 if call == "charge" else 1), use)
    assert one.peek(tag).balance == BURST - 6


@kinds
def test_debt_of_a_request_counts_on_every_node(nodes: Nodes, client: type[Client]) -> None:
    costs = {"large": 3 * BURST, "small": 1}
    user = {"name": "", "kind": "large"}
    first, second = (
        client(node, tag=lambda _: user["name"], cost=lambda _: costs[user["kind"]])
        for node in nodes
    )

    def use(tag: str) -> None:
        user["name"] = tag
        assert first.get().status == 200

    user["name"] = tag_with_balance(nodes[1], -2 * BURST, use)
    user["kind"] = "small"
    answers = [each.get() for each in (first, second)]
    assert [answer.status for answer in answers] == [429, 429]
    waits = [int(answer.headers["retry-after"]) for answer in answers]
    assert waits == [pytest.approx(21 * 3600, abs=120)] * 2
