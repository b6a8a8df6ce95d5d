"""The sockets for Smockron: misbehaving peers, and options of TCP."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import socket
import time
from pathlib import Path
from unittest.mock import patch

from daemons import BINARY, LONG, Daemon
from gatekeepers import RULES, gatekeeper, now_ms, read_count

from dthrottle.client import Client

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03"


def is_closed(client: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        while client.recv(65536):
            pass
    return True


def test_messages_for_a_gatekeeper_that_does_not_read_are_dropped() -> None:
    with (
        Daemon(RULES, 'smockron = "127.0.0.1:0"\nwrite_timeout = "1h"') as daemon,
        Client(daemon.socket, timeout=LONG) as client,
        gatekeeper(daemon, "web") as keeper,
        contextlib.ExitStack() as stack,
    ):
        host, port = daemon.smockron.split(":")
        not_reading = stack.enter_context(
            socket.create_connection((host, int(port) + 1), timeout=LONG)
        )
        ready = GREETING + b"\x04" + bytes([len(READY) + 3]) + READY + b"SUB"
        not_reading.sendall(ready + b"\x00\x05\x01web\x00")
        deadline = time.monotonic() + 2 * LONG
        while read_count(client, "smockron_dropped") == 0:
            assert time.monotonic() < deadline
            for _ in range(100):
                keeper.send("web", "ACCEPTED", "x" * 20_000)
            while keeper.control.poll(1):
                keeper.control.recv_multipart()
        assert "WARN" in daemon.wait_for("did not read 1000 messages")
        keeper.wait_until_connected("web")


def test_misbehaving_peers_are_closed_and_do_not_affect_others() -> None:
    """Tests several kinds at the same time, because each takes long."""
    with (
        Daemon(RULES, 'smockron = "127.0.0.1:0"\nwrite_timeout = "1s"') as daemon,
        contextlib.ExitStack() as stack,
    ):
        host, port = daemon.smockron.split(":")

        def connect(words: bytes, control: bool = False) -> socket.socket:
            address = (host, int(port) + control)
            client = stack.enter_context(socket.create_connection(address, timeout=LONG))
            client.sendall(words)
            return client

        silent = [connect(b"", control) for control in (False, True)] + [
            connect(GREETING),
            connect(b"\xff"),
        ]
        ready = GREETING + b"\x04" + bytes([len(READY) + 3]) + READY
        hostile = [
            ready + b"PUB" + b"\x06" + b"\xff" * 8,
            ready + b"PUB" + b"\x80\x01x",
            GREETING + b"\x00\x01x",
            b"GET / HTTP/1.1\r\n" * 10,
            os.urandom(1000).replace(b"\xff", b"\x00"),
        ]
        for words in hostile:
            assert is_closed(connect(words)), words[:80]
        # Pings are answered. A subscription that cannot match a domain is ignored.
        pinging = connect(ready + b"PUB" + b"\x04\x0b\x04PING\x00\x00ping", control=False)
        received = b""
        while not received.endswith(b"\x04PONGping"):
            received += pinging.recv(1000)
        connect(
            ready + b"SUB" + b"\x02" + (60_000).to_bytes(8, "big") + b"\x01" + bytes(59_999), True
        )
        not_reading = connect(ready + b"SUB" + b"\x00\x05\x01web\x00", control=True)
        keeper = stack.enter_context(gatekeeper(daemon, "web"))
        # Messages of 60 KB that one gatekeeper reads, but the other does not.
        long = "x" * 60_000
        with Client(daemon.socket, timeout=LONG) as client:
            deadline = time.monotonic() + LONG
            while read_count(client, "connections_too_slow") == 0:
                assert time.monotonic() < deadline
                keeper.send("web", "ACCEPTED", long)
                while keeper.control.poll(1):
                    keeper.control.recv_multipart()
        assert is_closed(not_reading)
        for client_ in silent:
            assert is_closed(client_)
        keeper.wait_until_connected("web")


def test_an_oversize_message_is_skipped_and_the_connection_stays_open() -> None:
    """Otherwise a client with a long tag could turn the limit off for all clients."""
    with (
        Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon,
        Client(daemon.socket, timeout=LONG) as client,
        gatekeeper(daemon, "slow") as keeper,
    ):
        host, port = daemon.smockron.split(":")
        with socket.create_connection((host, int(port)), timeout=LONG) as raw:
            raw.sendall(GREETING + b"\x04" + bytes([len(READY) + 3]) + READY + b"PUB")
            now = str(now_ms()).encode()
            for _ in range(11):
                for tag in (b"x" * 65_537, b"x" * 1_000_000, b"alice"):
                    for frame in (b"slow\0", b"ACCEPTED", tag, now):
                        raw.sendall(b"\x03" + len(frame).to_bytes(8, "big") + frame)
                    raw.sendall(b"\x00\x00")
            assert keeper.receive()[2] == b"alice"
            assert read_count(client, "smockron_bad") == 22
            assert "WARN" in daemon.wait_for("more than 64 KB or 64 frames")
            assert not daemon.has_logged("smockron: "), (
                "the cause must be logged only once a minute"
            )


def open_idle_connections(daemon: Daemon, count: int, stack: contextlib.ExitStack) -> None:
    """Open connections to both sockets that send nothing or only the greeting."""
    host, port = daemon.smockron.split(":")
    ready = GREETING + b"\x04" + bytes([len(READY) + 3]) + READY
    for number in range(count):
        for control in (False, True):
            address = (host, int(port) + control)
            idle = stack.enter_context(socket.create_connection(address, timeout=LONG))
            if number % 2:
                with contextlib.suppress(OSError):
                    idle.sendall(ready + (b"SUB" if control else b"PUB"))


def test_idle_peers_do_not_lock_out_gatekeepers() -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    with (
        Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon,
        contextlib.ExitStack() as stack,
        gatekeeper(daemon, "slow") as before,
        Client(daemon.socket, timeout=LONG) as client,
    ):
        connected = read_count(client, "connections_closed_idle")
        open_idle_connections(daemon, 1100, stack)
        with gatekeeper(daemon, "slow") as after:
            assert read_count(client, "connections_closed_idle") - connected >= 200
            # The subscriber was idle longest, but is established and so still connected.
            for _ in range(11):
                after.send("slow", "ACCEPTED", "alice")
            assert before.receive()[2] == after.receive()[2] == b"alice"


def test_idle_peers_do_not_use_the_descriptors_of_other_listeners() -> None:
    with Daemon(RULES, 'smockron = "127.0.0.1:0"\nworkers = 2') as daemon:
        daemon.kill()
        with patch("daemons.BINARY", limited(daemon, 200)):
            daemon.start()
        with contextlib.ExitStack() as stack:
            open_idle_connections(daemon, 150, stack)
            with Client(daemon.socket, timeout=LONG) as client:
                assert client.check("x", domain="slow").allowed
                assert client.counts().failed_open == 0
            with gatekeeper(daemon, "slow") as keeper:
                keeper.wait_until_connected("slow")


def limited(daemon: Daemon, files: int) -> Path:
    """Write a script that runs the daemon with a limit of open files."""
    script = daemon.dir / "limited"
    script.write_text(f'#!/bin/sh\nulimit -n {files}\nexec {BINARY} "$@"\n')
    script.chmod(0o755)
    return script


# The number of the system call, for which Python has no function.
PIDFD_GETFD = 438


def nodelay(daemon: Daemon, client: socket.socket) -> list[int]:
    """Read the option at the daemon's end of a connection, with copies of its descriptors."""
    assert daemon.process is not None
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    pid, found = daemon.process.pid, []
    pidfd = os.pidfd_open(pid)
    try:
        for number in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if not number.readlink().name.startswith("socket:"):
                    continue
                copy = syscall(PIDFD_GETFD, pidfd, int(number.name), 0)
                if copy < 0:
                    continue
                with socket.socket(fileno=copy) as theirs:
                    if theirs.getpeername() == client.getsockname():
                        found.append(theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    finally:
        os.close(pidfd)
    return found


def test_both_sockets_have_tcp_nodelay() -> None:
    with Daemon(RULES, 'smockron = "127.0.0.1:0"') as daemon:
        host, port = daemon.smockron.split(":")
        for control in (False, True):
            address = (host, int(port) + control)
            with socket.create_connection(address, timeout=LONG) as client:
                assert client.recv(64).startswith(b"\xff"), "the daemon sends its greeting first"
                (value,) = nodelay(daemon, client)
                assert value != 0
