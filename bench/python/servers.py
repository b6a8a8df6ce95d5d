"""Measures the CPU time per request of a Flask application under gunicorn with two sync workers.

The figure is the user and system time of all processes of the server, without the client and Redis.
A sync worker closes the connection after each response, so every request has its own connection. The
servers run at the same time and are measured alternately. The memory layout of a process makes it
faster or slower by some percent for its whole life (of two equal applications, one was 6 % slower),
so all servers are restarted several times. The servers share one core, and the client uses another,
with one request at a time, so that they do not evict each other's caches.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from limiters import redis
from report import SMALL, Rounds

HERE = Path(__file__).parent
WORKERS = 2
CORES = sorted(os.sched_getaffinity(0))
STARTS, ROUNDS, REQUESTS = (1, 1, 5) if SMALL else (12, 8, 150)
KINDS = {
    "bare": "flask_bare_us",
    "ours": "flask_us",
    "limiter_memory": "flask_limiter_memory_us",
    "limiter_redis": "flask_limiter_redis_us",
}
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nConnection: close\r\n\r\n"


class Server:
    """A running gunicorn."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process = process
        self.port = port

    def cpu_us(self, requests: int) -> float:
        """Send requests one after another; return microseconds of CPU time per request."""
        before = self._cpu_ns()
        self._request(requests)
        return (self._cpu_ns() - before) / requests / 1000

    def wait(self) -> None:
        """Wait until the server answers and has all its workers."""
        for _ in range(400):
            try:
                if len(self._processes()) == 1 + WORKERS:
                    return self._request(1)
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit("gunicorn does not answer")

    def _request(self, requests: int) -> None:
        for _ in range(requests):
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
                connection.sendall(REQUEST)
                response = bytearray()
                while part := connection.recv(65536):
                    response += part
            if not response.startswith(b"HTTP/1.1 200 ") or not response.endswith(b"hello"):
                raise SystemExit(f"unexpected response: {response!r}")

    def _processes(self) -> list[int]:
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def _cpu_ns(self) -> int:
        # The id of the CPU-time clock of a process (clock_getcpuclockid), which includes all threads.
        # /proc has the time only in hundredths of a second.
        return sum(time.clock_gettime_ns(~pid << 3 | 2) for pid in self._processes())


def measure() -> Rounds:
    """Return microseconds per request."""
    times: Rounds = {name: [] for name in KINDS.values()}
    with redis() as uri:
        os.sched_setaffinity(0, {CORES[-1]})
        try:
            for start in range(STARTS):
                print(f"servers, start {start + 1} of {STARTS}", file=sys.stderr)
                _measure_start(times, uri)
        finally:
            os.sched_setaffinity(0, CORES)
    return times


def _measure_start(times: Rounds, uri: str) -> None:
    with ExitStack() as stack:
        servers = {kind: stack.enter_context(_serve(kind, uri)) for kind in KINDS}
        for server in servers.values():
            server.wait()
        # The first round warms up and is not counted. Every second round is in reverse order, so that
        # no server always follows the same other one.
        for number in range(ROUNDS + 1):
            for kind in list(KINDS)[:: -1 if number % 2 else 1]:
                taken = servers[kind].cpu_us(REQUESTS)
                if number:
                    times[KINDS[kind]].append(taken)


@contextmanager
def _serve(kind: str, uri: str) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="dthrottle-bench-") as folder:
        command = [sys.executable, "-m", "gunicorn", "--workers", str(WORKERS)]
        command += ["--bind", f"127.0.0.1:{port}", "--log-level", "warning"]
        command += ["--no-control-socket", f"flask_apps:make('{kind}')"]
        environment = {**os.environ, "PYTHONPATH": str(HERE), "REDIS": uri, "PWD": folder}
        process = subprocess.Popen(command, cwd=folder, env=environment)
        # Workers inherit the core.
        os.sched_setaffinity(process.pid, {CORES[0]})
        try:
            yield Server(process, port)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
            # Remove the application's default table, which outlives it.
            name = f"dthrottle-{os.getuid()}-{Path(folder).name}-*"
            for table in [*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)]:
                table.unlink()
