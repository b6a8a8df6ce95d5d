"""Real servers. Each runs in its own folder, with a copy of the applications."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
SECONDS = 60


@dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int = 0
    path: str = ""
    """The path of the Unix socket; empty if the server listens on a port."""

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection that is not open yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        if self.path:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(SECONDS)
        return connection

    def get(
        self, path: str = "/", *, method: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Make a request on a new connection, and return status, headers and body."""
        connection = self.connection()
        try:
            if self.path:
                connection.sock.connect(self.path)
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, headers=named)
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return response.status, fields, response.read()
        finally:
            connection.close()

    def wait(self, workers: int) -> None:
        """Wait until a number of workers have answered."""
        end, seen = time.monotonic() + SECONDS, set[str]()
        while len(seen) < workers:
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}"
            assert time.monotonic() < end, f"{len(seen)} of {workers} workers answer"
            with ThreadPoolExecutor(2 * workers) as threads:
                seen.update(filter(None, threads.map(self._process, range(4 * workers))))

    def _process(self, _number: int) -> str | None:
        try:
            return self.get("/")[1]["x-process"]
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
            return None


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def tables(folder: Path) -> list[Path]:
    """Return the tables with default names of the applications in a folder."""
    name = f"dthrottle-{os.getuid()}-{folder.name}-*"
    return sorted([*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)])


@contextmanager
def serve(
    folder: Path, command: list[str], options: dict[str, Any], workers: int = 1, **where: Any
) -> Iterator[Server]:
    """Run a server in a folder. The block begins when all workers answer."""
    folder.mkdir(parents=True, exist_ok=True)
    for application in HERE.glob("*_app.py"):
        shutil.copy(application, folder)
    environment = {**os.environ, "OPTIONS": json.dumps(options), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PWD"] = str(folder)
    process = subprocess.Popen(command, cwd=folder, env=environment)
    server = Server(process, folder, **where)
    try:
        server.wait(workers)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def gunicorn(
    folder: Path, *arguments: str, app: str = "wsgi_app:application", **options: Any
) -> Any:
    """Run gunicorn with four workers."""
    port = free_port()
    command = [str(BIN / "gunicorn"), "--workers", "4", "--bind", f"127.0.0.1:{port}"]
    command += ["--log-level", "warning", *arguments, app]
    return serve(folder, command, options, 4, port=port)


def uvicorn(
    folder: Path, *arguments: str, app: str = "asgi_app:app", workers: int = 2, **options: Any
) -> Any:
    """Run uvicorn with two workers."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--workers", str(workers), "--port", str(port)]
    command += ["--log-level", "error", *arguments, app]
    return serve(folder, command, options, workers, port=port)


def uwsgi(folder: Path, *arguments: str, **options: Any) -> Any:
    """Run uWSGI with four workers, each of which loads the application."""
    port = free_port()
    command = [str(BIN / "uwsgi"), "--master", "--processes", "4", "--lazy-apps", "--need-app"]
    command += ["--http-socket", f"127.0.0.1:{port}", "--die-on-term", "--disable-logging"]
    command += ["--virtualenv", sys.prefix, "--wsgi-file", "wsgi_app.py", *arguments]
    return serve(folder, command, options, 4, port=port)
