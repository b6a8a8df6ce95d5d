"""A client that sends an exact number of requests, pipelined on one connection."""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Iterable

BATCH = 50
SECONDS = 30


def keys(count: int, requests: int) -> list[int]:
    """Return a key for each request, the same ones in every run."""
    if count == 1:
        return [0] * requests
    dice = random.Random(7)
    return [dice.randrange(count) for _ in range(requests)]


def request_all(port: int, chosen: Iterable[int]) -> None:
    """Send a request for each key; exit unless all responses have status 200."""
    listed = list(chosen)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        for start in range(0, len(listed), BATCH):
            batch = listed[start : start + BATCH]
            lines = [f"GET /file.txt?k={key} HTTP/1.1\r\nHost: bench\r\n\r\n" for key in batch]
            connection.sendall("".join(lines).encode())
            _receive(connection, len(batch))


def count_passed(port: int, chosen: Iterable[int]) -> int:
    """Send a request for each key; return how many responses have status 200."""
    listed, passed = list(chosen), 0
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        for start in range(0, len(listed), BATCH):
            batch = listed[start : start + BATCH]
            lines = [f"GET /file.txt?k={key} HTTP/1.1\r\nHost: bench\r\n\r\n" for key in batch]
            connection.sendall("".join(lines).encode())
            text = b""
            # Each response ends with the file or with the page of a refusal.
            while text.count(b"xx\n") + text.count(b"</html>\r\n") < len(batch):
                more = connection.recv(1 << 20)
                if not more:
                    raise SystemExit(f"the server closed the connection: {text[-500:]!r}")
                text += more
            passed += text.count(b"HTTP/1.1 200 OK")
    return passed


def _receive(connection: socket.socket, count: int) -> None:
    """Read `count` responses. The file ends with the only newline that follows an x."""
    text = b""
    while text.count(b"xx\n") < count:
        more = connection.recv(1 << 20)
        if not more:
            raise SystemExit(f"the server closed the connection: {text[-500:]!r}")
        text += more
    if text.count(b"HTTP/1.1 200 OK") != count:
        raise SystemExit(f"a response has another status than 200: {text[:500]!r}")


def wait(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return request_all(port, [0])
        except OSError:
            if server.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the server does not answer: {server.args!r}") from None
            time.sleep(0.05)


def free_port() -> int:
    """Return a port that is currently free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
