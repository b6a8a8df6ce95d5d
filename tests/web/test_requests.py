"""Single requests to real servers: responses, proxies, delayed requests, clients that leave."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import http_sf
import pytest
from servers import BIN, Server, gunicorn, serve, uvicorn


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder with a short path, because paths of sockets have at most 107 bytes."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def listed(value: str) -> Any:
    """Parse a list of items with parameters."""
    return http_sf.parse(value.encode(), tltype="list")


@pytest.mark.parametrize("run", [gunicorn, uvicorn], ids=["wsgi", "starlette"])
def test_responses_have_header_fields_and_refusals_a_body(folder: Path, run: Any) -> None:
    with run(folder) as server:
        status, headers, body = server.get("/burst", X_Client="a")
        assert (status, body) == (200, b"hello")
        for field, letter, number in [("ratelimit-policy", "q", 100), ("ratelimit", "r", 99)]:
            ((name, parameters),) = listed(headers[field])
            assert (name, parameters[letter]) == ("/burst", number)
        for _ in range(99):
            server.get("/burst", X_Client="a")
        status, headers, body = server.get("/burst", X_Client="a")
        assert (status, body) == (429, b"Too Many Requests\n")
        assert int(headers["retry-after"]) > 10**9
        assert listed(headers["ratelimit"])[0][1]["r"] == 0
        status, headers, body = server.get("/burst", method="HEAD", X_Client="a")
        assert (status, body, headers["content-length"]) == (429, b"", "18")
        status, headers, _ = server.get("/")
        assert status == 200
        assert "ratelimit" not in headers


@pytest.mark.parametrize("run", [gunicorn, uvicorn], ids=["wsgi", "starlette"])
def test_client_behind_a_trusted_proxy_is_limited(folder: Path, run: Any) -> None:
    with run(folder) as server:
        assert server.get("/proxied", X_Forwarded_For="203.0.113.1")[0] == 200
        assert server.get("/proxied", X_Forwarded_For="6.6.6.6, 203.0.113.1")[0] == 429
        assert server.get("/proxied", X_Forwarded_For="203.0.113.2")[0] == 200


def test_client_behind_a_proxy_on_a_unix_socket_is_limited(folder: Path, short: Path) -> None:
    path = str(short / "sock")
    commands = {
        "gunicorn": ["--bind", f"unix:{path}", "--log-level", "warning", "wsgi_app:application"],
        "uvicorn": ["--uds", path, "--log-level", "error", "asgi_app:app"],
    }
    for number, (name, arguments) in enumerate(commands.items()):
        with serve(folder, [str(BIN / name), *arguments], {}, path=path) as server:
            host = f"203.0.113.{number}"
            assert server.get("/proxied", X_Forwarded_For=f"6.6.6.6, {host}")[0] == 200
            assert server.get("/proxied", X_Forwarded_For=f"6.6.6.7, {host}")[0] == 429


def test_delayed_requests_are_spaced(folder: Path) -> None:
    with gunicorn(folder, "--worker-class", "gthread", "--threads", "4") as server:
        assert server.get("/delayed", X_Client="a")[0] == 200
        begin = time.monotonic()
        statuses: list[int] = []
        threads = [
            threading.Thread(
                target=lambda: statuses.append(server.get("/delayed", X_Client="a")[0])
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One request per second passes.
        assert statuses == [200, 200, 200]
        assert time.monotonic() - begin > 1.9


@pytest.mark.parametrize(
    ("app", "paths"),
    [
        ("wsgi_app:application", ["/later"]),
        ("flask_app:application", ["/later"]),
        ("django_app:application", ["/delayed", "/delayed_later"]),
    ],
    ids=["wsgi", "flask", "django"],
)
def test_worker_without_threads_delays_no_request(folder: Path, app: str, paths: list[str]) -> None:
    """With four workers, six requests with delays of 10 minutes and more would block the server."""
    with gunicorn(folder, "--worker-class", "sync", app=app) as server:
        for path in paths:
            with ThreadPoolExecutor(8) as threads:
                requests = [threads.submit(server.get, path, X_Client="a") for _ in range(8)]
            assert sorted(one.result()[0] for one in requests) == [200] + [429] * 7
            assert server.get(path, X_Client="b")[0] == 200, "other clients are served"


def until_counts(server: Server, **expect: int) -> None:
    """Wait until the middleware has the expected counts."""
    end = time.monotonic() + 60
    while json.loads(server.get("/counts")[2]) != expect:
        assert time.monotonic() < end, server.get("/counts")
        time.sleep(0.05)


def test_client_that_leaves_while_delayed_is_refunded(folder: Path) -> None:
    with uvicorn(folder, workers=1) as server:
        assert server.get("/delayed", X_Client="a")[0] == 200
        for number in range(3):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(b"GET /delayed HTTP/1.1\r\nHost: a\r\nX-Client: a\r\n\r\n")
                # The request is delayed for a minute. It would be refused if the previous one had not
                # been refunded.
                until_counts(server, delayed=number + 1, gave_up=number)
                assert server.get("/delayed", X_Client="a")[0] == 429
                # Other clients are served meanwhile.
                assert server.get("/delayed", X_Client=f"b{number}")[0] == 200
            until_counts(server, delayed=number + 1, gave_up=number + 1)
