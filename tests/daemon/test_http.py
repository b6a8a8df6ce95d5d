"""Metrics, health, checks and events over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from daemons import LONG, TOKEN, Daemon
from prometheus_client.parser import text_string_to_metric_families

BEARER = f"Bearer {TOKEN}"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    rules = 'rate = "3 per day"\n[domains."a \\"b\\\\"]\nrate = "60/min"'
    with Daemon(rules) as daemon:
        yield daemon


def get(daemon: Daemon, path: str, **headers: str | None) -> tuple[int, str, str]:
    """Return status, type and text. Sends the token unless a header replaces it."""
    fields = {"Authorization": BEARER, **headers}
    names = {name.replace("_", "-"): value for name, value in fields.items() if value is not None}
    request = urllib.request.Request(f"http://{daemon.http}{path}", headers=names)
    try:
        with urllib.request.urlopen(request, timeout=LONG) as response:
            return response.status, response.headers["Content-Type"], response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


GET_METRICS = f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: {BEARER}\r\n\r\n".encode()


def metrics(daemon: Daemon) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    status, kind, text = get(daemon, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        assert family.type in ("counter", "gauge", "histogram"), family.name
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, key
            samples[key] = sample.value
    return samples


def test_metrics_count_decisions_and_lines(daemon: Daemon) -> None:
    def count(samples: dict[tuple[str, frozenset[tuple[str, str]]], float], result: str) -> float:
        labels = frozenset({"domain": "default", "rules": "config", "result": result}.items())
        return samples["dthrottle_decisions_total", labels]

    before = metrics(daemon)
    host, port = daemon.tcp.split(":")
    with socket.create_connection((host, int(port)), timeout=LONG) as client:
        client.sendall(b"metrics\n" * 5)
        assert client.recv(15, socket.MSG_WAITALL) == b"OK\n" * 3 + b"NO\n" * 2
        after = metrics(daemon)
        assert after["dthrottled_connections", frozenset()] == 1
    assert count(after, "allowed") - count(before, "allowed") == 3
    assert count(after, "refused") - count(before, "refused") == 2
    assert after["dthrottled_lines_total", frozenset()] == 5
    odd = frozenset({"domain": 'a "b\\', "rule": "rule1"}.items())
    assert after["dthrottle_rule_burst", odd] == 60
    assert after["dthrottle_rule_rate", odd] == pytest.approx(1)


def test_healthz_answers_ok(daemon: Daemon) -> None:
    assert get(daemon, "/healthz") == (200, "text/plain", "ok\n")


def test_check_answers_with_json(daemon: Daemon) -> None:
    def check(query: str) -> dict[str, object]:
        status, kind, text = get(daemon, f"/check?{query}")
        assert kind == "application/json"
        return {"status": status, **json.loads(text)}

    first = check("tag=a%20b+c&cost=2")
    assert first["allowed"] is True
    assert (first["granted"], first["limit"], first["remaining"]) == (2, 3, 1)
    peek = check("tag=a%20b%20c&cost=2&peek=1")
    assert (peek["allowed"], peek["remaining"], peek["rule"]) == (False, 1, "rule1")
    assert check("tag=a b c".replace(" ", "+"))["remaining"] == 0
    assert check("tag=a+b+c")["allowed"] is False
    for query, kind, message in [
        ("", "argument", "tag is missing"),
        ("tag=x&cost=5", "cost", "can never pass"),
        ("tag=x&cost=y", "argument", "cost must be a whole number"),
        ("tag=x&domain=none", "domain", "unknown domain"),
        ("tag=x&price=5", "argument", "is not a parameter"),
    ]:
        answer = check(query)
        assert (answer["status"], answer["error"]) == (400, kind), query
        assert message in str(answer["message"])


def test_unknown_paths_and_methods_are_errors(daemon: Daemon) -> None:
    assert get(daemon, "/nothing")[0] == 404
    connection = http.client.HTTPConnection(daemon.http, timeout=LONG)
    connection.request("DELETE", "/metrics", headers={"Authorization": BEARER})
    assert connection.getresponse().status == 405
    connection.close()


def test_only_checks_of_this_machine_are_allowed_without_a_token() -> None:
    with Daemon('rate = "3 per day"', token=None) as daemon:
        assert get(daemon, "/healthz")[0] == 200
        assert get(daemon, "/check?tag=x")[0] == 200
        assert get(daemon, "/check?tag=x", Host="evil.example.com")[0] == 403
        assert get(daemon, "/check?tag=x", Sec_Fetch_Site="cross-site")[0] == 403
        for path in ("/", "/metrics", "/events"):
            status, _, text = get(daemon, path)
            assert (status, text) == (403, "only for clients with a token: set daemon.token\n")


def test_every_path_except_healthz_needs_the_token() -> None:
    with Daemon('rate = "3 per day"', 'http = "0.0.0.0:0"') as daemon:
        for path in ("/", "/metrics", "/events", "/check?tag=x"):
            assert get(daemon, path, Authorization=None)[0] == 401
        assert get(daemon, "/metrics", Authorization=f"{BEARER}x")[0] == 401
        assert get(daemon, "/metrics")[0] == 200
        assert get(daemon, f"/?token={TOKEN}", Authorization=None)[0] == 200
        assert get(daemon, "/healthz", Authorization=None)[0] == 200


def test_the_debt_of_a_tag_is_bounded_by_max_delay() -> None:
    with Daemon('rate = "1/s"\nburst = 1', 'max_delay = "5s"') as daemon:
        for _ in range(20):
            answer = json.loads(get(daemon, "/check?tag=victim&max_delay_ms=20000000")[2])
        assert answer["allowed"] is False
        assert answer["retry_after"] < 7


def test_events_stream_the_state_of_the_daemon(daemon: Daemon) -> None:
    url = f"http://{daemon.http}/events?token={TOKEN}"
    with urllib.request.urlopen(url, timeout=LONG) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        lines = [response.readline() for _ in range(4)]
    first, second = (json.loads(line.removeprefix(b"data: ")) for line in lines[::2])
    assert isinstance(first["history"], list)
    assert second["history"] is None
    assert [domain["name"] for domain in first["rules"]] == ["default", 'a "b\\']


def test_connections_that_send_nothing_or_never_read_are_closed() -> None:
    """Tests several kinds at the same time, because each takes long."""
    with Daemon('rate = "3 per day"', 'write_timeout = "1s"') as daemon, ExitStack() as stack:
        host, port = daemon.http.split(":")

        def connect(words: bytes) -> socket.socket:
            client = socket.create_connection((host, int(port)), timeout=LONG)
            client.sendall(words)
            return stack.enter_context(client)

        def is_closed(client: socket.socket) -> bool:
            try:
                while client.recv(65536):
                    pass
            except ConnectionResetError:
                pass
            return True

        get_health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        silent = [
            connect(b""),
            connect(b"GET / HTTP/1.1\r\nHost: local"),
            # Sends a request and then nothing.
            connect(get_health),
        ]
        flood = connect(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with suppress(OSError):
            for number in range(100_000):
                flood.sendall(b"X-%d: %s\r\n" % (number, b"x" * 100))
        assert is_closed(flood)
        # Requests whose responses are not read.
        not_reading = connect(b"")
        not_reading.settimeout(5)
        with suppress(OSError):
            for _ in range(1000):
                not_reading.sendall(GET_METRICS * 1000)
        not_reading.settimeout(LONG)
        assert is_closed(not_reading)
        slow = metrics(daemon)["dthrottled_connections_too_slow_total", frozenset()]
        assert slow == 1
        assert get(daemon, "/healthz")[0] == 200
        for client in silent:
            assert is_closed(client)
