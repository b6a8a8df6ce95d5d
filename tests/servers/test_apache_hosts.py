"""Rules of Apache's virtual hosts: a host with its own rules has its own buckets."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import apache
import pytest
from apache import location
from server import Server, wait_until

RULES = """
DThrottleRule default "1/day" burst=3
DThrottleRule login "1/day" burst=2
DThrottle On
"""
LOGIN = location("/login", "DThrottleDomain login")


def host(name: str, *lines: str) -> str:
    """Return a virtual host."""
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


def test_a_host_without_rules_shares_those_of_the_server(server: Server) -> None:
    assert server.statuses("/", 2, Host="shared.test") == [200] * 2
    assert server.statuses("/", 2, Host="also-shared.test") == [200, 403]
    assert server.statuses("/login", 1, Host="shared.test") == [200]
    assert server.statuses("/login", 2, Host="own.test") == [200, 429]


def test_a_host_with_rules_has_its_own_buckets(server: Server) -> None:
    assert server.statuses("/", 2, Host="own.test") == [200, 429]
    assert server.statuses("/", 2, Host="other.test") == [200, 429]
    assert server.statuses("/login", 2, Host="own-login.test") == [200, 429]
    server.get("/", Host="other.test")
    assert 'by domain "default@other.test:0", rule "rule1"' in server.log()


def test_a_request_must_pass_all_rules_of_its_host(server: Server) -> None:
    answer = server.get("/", Host="api.test")
    assert answer.headers["ratelimit-policy"] == '"four";q=4;w=345600, "rule2";q=5;w=18000'
    assert server.statuses("/", 4, Host="api.test") == [200] * 3 + [429]
    # This host has no rule for `login`, so the server's rule applies.
    assert server.statuses("/login", 5, Host="api.test")[-1] == 429


def test_hosts_keep_their_buckets_over_a_graceful_restart() -> None:
    # These two hosts have no name of their own, so their order distinguishes their buckets.
    lines = (
        RULES + host("", 'DThrottleRule default "2/day"') + host("", "DThrottleRule default 1/d")
    )
    with apache.apache(lines + host("last.test", 'DThrottleRule default "1/day"')) as server:
        assert server.statuses("/a", 3) == [200, 200, 429]
        assert server.statuses("/a", 2, Host="last.test") == [200, 429]
        before = server.children()
        server.process.send_signal(signal.SIGUSR1)
        wait_until("other children", lambda: not set(before) & set(server.children()))
        wait_until("a child", lambda: server.get("/free").status == 200)
        assert server.statuses("/a", 1) == [429]
        assert server.statuses("/a", 1, Host="last.test") == [429]


BAD: list[tuple[str, str]] = [
    (host("a", "DThrottleMaxDelayed 1"), "DThrottleMaxDelayed cannot occur within <VirtualHost>"),
    (host("a", "DThrottleTable x"), "DThrottleTable cannot occur within <VirtualHost> section"),
    (host("a", "DThrottleCluster name=x"), "DThrottleCluster cannot occur within <VirtualHost>"),
    (host("a", "DThrottleConfigFile x"), "DThrottleConfigFile cannot occur within <VirtualHost>"),
    (host("a", "DThrottleDomain none"), 'names the unknown domain "none": add a DThrottleRule'),
    # Rules of another host do not count.
    (
        host("a", "DThrottleRule one 1/s") + host("b", "DThrottleDomain one"),
        'names the unknown domain "one": add a DThrottleRule',
    ),
    (
        "DThrottleDomain one\n" + host("a", "DThrottleRule one 1/s"),
        'names the unknown domain "one": add a DThrottleRule',
    ),
    (host("a" * 250, "DThrottleRule default 1/s"), "must have 1 to 255 bytes, got 260"),
    (host("a", "DThrottle On"), "DThrottle is on, but there is no rule"),
]


@pytest.mark.parametrize(("lines", "message"), BAD)
def test_an_error_in_a_virtual_host_is_explained(lines: str, message: str) -> None:
    status, text, tables = apache.check_config(lines, table="")
    assert (status, tables) == (1, [])
    assert message in text, text


def test_rules_of_virtual_hosts_alone_are_enough() -> None:
    lines = host("a", "DThrottle On", "DThrottleRule default 1/s", "DThrottleRule x 1/s")
    assert (
        apache.check_config(lines + host("b", "DThrottleDomain x", "DThrottleRule x 2/s"))[0] == 0
    )
