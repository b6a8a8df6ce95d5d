"""Attacks of another user of the machine, and limits of the system."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from daemons import BINARY, LONG, TOKEN, Daemon

from dthrottle.client import Client

# The user nobody may not be able to read the interpreter of the virtual environment.
PYTHON = "/usr/bin/python3"
STATE = ("reset\0tag=victim", "refund\0tag=victim", "stats", "peers", "rules", "top")

# Opens connections, prints "open", and keeps them open until its input ends. Sends the same words on
# each connection again and again.
KEEP_OPEN = """
import select, socket, sys
address, count, words = sys.argv[1].rsplit(":", 1), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
held = []
for _ in range(count):
    held.append(socket.create_connection((address[0], int(address[1]))))
    held[-1].sendall(words)
print("open", flush=True)
while not select.select([sys.stdin], [], [], 1)[0]:
    for client in held if words else ():
        try:
            client.sendall(words)
            client.recv(65536, socket.MSG_DONTWAIT)
        except OSError:
            pass
"""

ASK = """
import socket, sys
kind, target, words = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
client = socket.socket(socket.AF_UNIX if kind == "unix" else socket.AF_INET)
if kind == "unix":
    client.connect(target)
else:
    client.connect((target.rsplit(":", 1)[0], int(target.rsplit(":", 1)[1])))
client.sendall(words)
print(client.makefile().readline(), end="")
"""


@contextmanager
def idle_connections_of_nobody(address: str, count: int, words: bytes = b"") -> Iterator[None]:
    """Keep connections of another user open."""
    command = [PYTHON, "-c", KEEP_OPEN, address, str(count), words.hex()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user="nobody", group="nogroup"
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        try:
            yield
        finally:
            process.communicate()


def ask_as_nobody(kind: str, target: str, words: bytes) -> subprocess.CompletedProcess[str]:
    command = [PYTHON, "-c", ASK, kind, target, words.hex()]
    return subprocess.run(
        command, user="nobody", group="nogroup", capture_output=True, text=True, timeout=LONG
    )


def connect(target: str) -> socket.socket:
    """Connect to a path, or to an address with a port."""
    client = socket.socket(socket.AF_UNIX if "/" in target else socket.AF_INET)
    client.settimeout(LONG)
    host, _, port = target.rpartition(":")
    client.connect(target if "/" in target else (host, int(port)))
    return client


def ask(daemon: Daemon, line: str) -> str:
    with connect(str(daemon.socket)) as client:
        client.sendall(f"\0{line}\n".encode())
        return client.makefile().readline()


def stats(daemon: Daemon) -> dict[str, int]:
    counts: dict[str, int] = json.loads(ask(daemon, "stats").removeprefix("OK "))["counts"]
    return counts


def test_the_daemon_opens_no_tcp_port_by_default(tmp_path: Path) -> None:
    command = [str(BINARY), "--rate", "1/s", "--table", f"default-{tmp_path.name}"]
    # The socket must not be in systemd's directory of the table, which clients cannot enter.
    environment = {"RUNTIME_DIRECTORY": "/nowhere", "XDG_RUNTIME_DIR": str(tmp_path)}
    folder = str(tmp_path)
    if os.geteuid() == 0:
        script = 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$0" "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, *command]
        environment["PATH"] = os.environ["PATH"]
        folder = "/run/dthrottled"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            ready = process.stderr.readline()
            addresses = (
                f"lines on {folder}/dthrottled.sock; http on none; resp on none; smockron on none"
            )
            assert addresses in ready
            links = [str(fd.readlink()) for fd in Path(f"/proc/{process.pid}/fd").iterdir()]
            sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
            for name in ("tcp", "tcp6"):
                rows = Path(f"/proc/{process.pid}/net/{name}").read_text().splitlines()[1:]
                assert not sockets & {row.split()[9] for row in rows}
        finally:
            process.kill()
    for left in Path("/dev/shm").glob(f"dthrottle-*default-{tmp_path.name}*"):
        left.unlink()


def test_the_error_says_what_to_do_if_there_is_no_default_socket() -> None:
    done = subprocess.run(
        [BINARY, "--rate", "1/s", "--table", "none"],
        env={}, user="nobody", group="nogroup", capture_output=True, text=True, timeout=LONG,
    )  # fmt: skip
    if "Permission denied" in done.stderr and not done.stderr.startswith("dthrottled:"):
        pytest.skip("nobody cannot run the binary here")
    assert done.returncode == 1
    assert "XDG_RUNTIME_DIR is not set" in done.stderr


def test_idle_tcp_connections_of_another_user_do_not_affect_the_unix_socket() -> None:
    with (
        Daemon('rate = "3 per day"', "max_connections = 100") as daemon,
        Client(daemon.socket, timeout=LONG) as before,
    ):
        assert before.allow_many(["x"] * 403) == [True] * 3 + [False] * 400
        with idle_connections_of_nobody(daemon.tcp, 500):
            for _ in range(20):
                with Client(daemon.socket, timeout=LONG) as client:
                    assert client.allow_many(["x"] * 20) == [False] * 20
                    assert client.counts().failed_open == 0
            # Nor do they prevent others from using the TCP port.
            with Client(daemon.tcp, timeout=LONG) as client:
                assert client.allow_many(["x"] * 20) == [False] * 20
                assert client.counts().failed_open == 0
            assert before.allow_many(["x"] * 400) == [False] * 400
            assert before.counts().failed_open == 0
            assert 400 <= stats(daemon)["connections_closed_idle"] <= 402


def test_a_full_listener_does_not_close_a_connection_in_use() -> None:
    with (
        Daemon('rate = "3 per day"', "max_connections = 10") as daemon,
        connect(daemon.tcp) as used,
        ExitStack() as stack,
    ):
        for _ in range(30):
            used.sendall(b"x\n")
            assert len(used.recv(3, socket.MSG_WAITALL)) == 3
            idle = connect(daemon.tcp)
            stack.enter_context(idle)
            idle.sendall(b"x\n")
            assert len(idle.recv(3, socket.MSG_WAITALL)) == 3
        assert stats(daemon)["connections_closed_idle"] == 21


def test_another_user_cannot_change_or_see_state() -> None:
    with Daemon('rate = "3 per day"') as daemon, Client(daemon.socket, timeout=LONG) as client:
        assert client.allow_many(["victim"] * 4) == [True] * 3 + [False]
        for words in STATE:
            verb = words.split("\0")[0]
            done = ask_as_nobody("unix", str(daemon.socket), f"\0{words}\n".encode())
            assert "PermissionError" in done.stderr
            for token in ("", "\0token=", "\0token=another-horse-battery"):
                line = words.replace(verb, verb + token, 1)
                answer = ask_as_nobody("tcp", daemon.tcp, f"\0{line}\n".encode()).stdout
                assert answer.startswith(f"ERROR argument {verb} needs the daemon's Unix socket")
            line = words.replace(verb, f"{verb}\0token={TOKEN}", 1)
            assert ask_as_nobody("tcp", daemon.tcp, f"\0{line}\n".encode()).stdout.startswith("OK")
        # A decision needs no token.
        assert ask_as_nobody("tcp", daemon.tcp, b"other\n").stdout == "OK\n"
        check = b"\0check\0cost=2\0tag=other\n"
        assert ask_as_nobody("tcp", daemon.tcp, check).stdout.startswith("OK limit=3 remaining=0 ")


def test_the_debt_of_a_tag_is_bounded_by_max_delay() -> None:
    """Many calls cannot increase the debt further."""
    with Daemon('rate = "1/s"\nburst = 1') as daemon:
        line = b"\0check\0max_delay_ms=20000000\0tag=victim\n"
        with connect(daemon.tcp) as client:
            client.sendall(line * 1000)
            answers = client.makefile()
            first = [answers.readline()[:2] for _ in range(1000)]
        assert first[:60] == ["OK"] * 60
        assert first.count("OK") <= 61 + LONG
        found = re.search(r" retry_after_ns=(\d+)", ask(daemon, "peek\0tag=victim"))
        assert found is not None
        assert int(found[1]) <= 62e9


def test_connections_without_a_token_do_not_block_http() -> None:
    words = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    token = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    with (
        Daemon('rate = "3 per day"') as daemon,
        idle_connections_of_nobody(daemon.http, 400, words),
    ):
        for _ in range(31):
            with connect(daemon.http) as client:
                client.sendall(b"GET /metrics HTTP/1.1\r\n" + token)
                assert client.recv(15, socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"
        # The daemon closed idle connections immediately, because only 256 fit.
        assert stats(daemon)["connections_closed_idle"] >= 400 - 256
        with connect(daemon.http) as client:
            client.sendall(b"GET /events HTTP/1.1\r\n" + token)
            events = client.makefile("rb")
            assert events.readline() == b"HTTP/1.1 200 OK\r\n"
            with idle_connections_of_nobody(daemon.http, 400):
                # The first event has the history. The others are sent once a second.
                for _ in range(3):
                    while line := events.readline():
                        if line.startswith(b"data: "):
                            break
                    assert line, "the connection with the token was closed"


def test_the_number_of_event_streams_is_bounded() -> None:
    with Daemon('rate = "3 per day"') as daemon, ExitStack() as stack:
        get = f"GET /events?token={TOKEN} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        statuses = []
        for _ in range(40):
            client = connect(daemon.http)
            stack.enter_context(client)
            client.sendall(get)
            statuses.append(client.recv(12, socket.MSG_WAITALL)[9:])
        assert statuses == [b"200"] * 32 + [b"503"] * 8
        stack.close()
        deadline = time.monotonic() + LONG
        while True:
            with connect(daemon.http) as client:
                client.sendall(get)
                if client.recv(12, socket.MSG_WAITALL)[9:] == b"200":
                    break
            assert time.monotonic() < deadline, "a closed stream must make room for another"


def with_files(count: int, daemon: Daemon) -> list[str]:
    return ["sh", "-c", f"ulimit -n {count}; exec {BINARY} --config {daemon.config}"]


def test_a_too_low_limit_of_open_files_is_an_error_in_one_line() -> None:
    with Daemon('rate = "3 per day"') as daemon:
        daemon.kill()
        for count in (10, 20, 30):
            command = with_files(count, daemon)
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
            assert done.returncode == 1
            message = r"dthrottled: the limit of open files must be at least \d+, got " + str(count)
            assert re.match(message, done.stderr), done.stderr
            assert done.stderr.count("\n") == 1


def test_the_limit_of_connections_is_lowered_to_the_limit_of_open_files() -> None:
    """Otherwise connections would wait in the backlog without an answer."""
    with Daemon('rate = "3 per day"', "workers = 2") as daemon, ExitStack() as stack:
        daemon.kill()
        with subprocess.Popen(
            with_files(200, daemon), stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                message = process.stderr.readline()
                assert "max_connections is" in message
                assert "instead of 10000: the limit of open files is 200" in message
                while "is ready" not in message:
                    message = process.stderr.readline()
                found = re.search(r"lines on \S+ and (\S+); http on (\S+);", message)
                assert found is not None
                for target in (*found.groups(), str(daemon.socket)) * 100:
                    client = stack.enter_context(connect(target))
                    if target == found[2]:
                        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                        assert client.recv(15, socket.MSG_WAITALL) == b"HTTP/1.1 200 OK"
                    else:
                        client.sendall(b"x\n")
                        assert len(client.recv(3, socket.MSG_WAITALL)) == 3
            finally:
                process.kill()
