"""Rules of Apache's virtual hosts: a host with its own has buckets of its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import apache
import pytest
from apache import location
from server import Server, until

RULES = """
DThrottleRule default "1/day" burst=3
DThrottleRule login "1/day" burst=2
DThrottle On
"""
LOGIN = location("/login", "DThrottleDomain login")


def host(name: str, *lines: str) -> str:
    """Give a virtual host."""
    named = [f"ServerName {name}"] if name else []
    return "\n".join(["<VirtualHost *:*>", *lines, *named, "</VirtualHost>", ""])


HOSTS = (
    RULES
    + LOGIN
    + host("shared.test")
    + host("also-shared.test", "DThrottleStatus 403")
    + host("own.test", 'DThrottleRule default "1/day" burst=1')
    + host("other.test", 'DThrottleRule default "1/day" burst=1')
    + host("own-login.test", 'DThrottleRule login "1/day" burst=1')
    + host(
        "api.test",
        'DThrottleRule api "1/day" burst=4 name=four',
        'DThrottleRule api "1/h" burst=5',
        "DThrottleDomain api",
        "DThrottleHeaders On",
    )
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with apache.apache(HOSTS) as started:
        yield started


def test_a_host_without_rules_has_those_of_the_server(server: Server) -> None:
    assert server.statuses("/", 2, Host="shared.test") == [200] * 2
    assert server.statuses("/", 2, Host="also-shared.test") == [200, 403]
    assert server.statuses("/login", 1, Host="shared.test") == [200]
    assert server.statuses("/login", 2, Host="own.test") == [200, 429]


def test_a_host_with_rules_has_buckets_of_its_own(server: Server) -> None:
    assert server.statuses("/", 2, Host="own.test") == [200, 429]
    assert server.statuses("/", 2, Host="other.test") == [200, 429]
    assert server.statuses("/login", 2, Host="own-login.test") == [200, 429]
    server.get("/", Host="other.test")
    assert 'by domain "default@other.test:0", rule "rule1"' in server.log()


def test_all_rules_of_a_host_hold(server: Server) -> None:
    answer = server.get("/", Host="api.test")
    assert answer.headers["ratelimit-policy"] == '"four";q=4;w=345600, "rule2";q=5;w=18000'
    assert server.statuses("/", 4, Host="api.test") == [200] * 3 + [429]
    # What the place is named after is another domain elsewhere.
    assert server.statuses("/login", 5, Host="api.test")[-1] == 429


def test_hosts_keep_their_buckets_over_a_graceful_restart() -> None:
    # Nobody can tell these two apart but the server, by their order.
    lines = (
        RULES + host("", 'DThrottleRule default "2/day"') + host("", "DThrottleRule default 1/d")
    )
    with apache.apache(lines + host("last.test", 'DThrottleRule default "1/day"')) as server:
        assert server.statuses("/a", 3) == [200, 200, 429]
        assert server.statuses("/a", 2, Host="last.test") == [200, 429]
        before = server.children()
        server.process.send_signal(signal.SIGUSR1)
        until("other children", lambda: not set(before) & set(server.children()))
        until("a child", lambda: server.get("/free").status == 200)
        assert server.statuses("/a", 1) == [429]
        assert server.statuses("/a", 1, Host="last.test") == [429]


BAD: list[tuple[str, str]] = [
    (host("a", "DThrottleMaxDelayed 1"), "DThrottleMaxDelayed cannot occur within <VirtualHost>"),
    (host("a", "DThrottleTable x"), "DThrottleTable cannot occur within <VirtualHost> section"),
    (host("a", "DThrottleCluster name=x"), "DThrottleCluster cannot occur within <VirtualHost>"),
    (host("a", "DThrottleConfigFile x"), "DThrottleConfigFile cannot occur within <VirtualHost>"),
    (host("a", "DThrottleDomain none"), 'no domain "none" for DThrottleDomain on line'),
    # Of another host.
    (
        host("a", "DThrottleRule one 1/s") + host("b", "DThrottleDomain one"),
        'no domain "one" for DThrottleDomain on line',
    ),
    (
        "DThrottleDomain one\n" + host("a", "DThrottleRule one 1/s"),
        'no domain "one" for DThrottleDomain on line',
    ),
    (host("a" * 250, "DThrottleRule default 1/s"), "a name has 1 to 255"),
    (host("a", "DThrottle On"), "DThrottle is on, and there is no rule"),
]


@pytest.mark.parametrize(("lines", "said"), BAD)
def test_a_bad_host_is_explained(lines: str, said: str) -> None:
    status, text, tables = apache.checked(lines, table="")
    assert (status, tables) == (1, [])
    assert said in text, text


def test_a_rule_of_a_host_alone_is_enough() -> None:
    lines = host("a", "DThrottle On", "DThrottleRule default 1/s", "DThrottleRule x 1/s")
    assert apache.checked(lines + host("b", "DThrottleDomain x", "DThrottleRule x 2/s"))[0] == 0
