"""The workers of gunicorn share the burst of a client."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import burst

HERE = Path(__file__).parent


@contextmanager
def gunicorn(*options: str, table: Any) -> Iterator[int]:
    """Serve with several workers, and yield the port."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        command = [sys.executable, "-m", "gunicorn", "--workers", str(burst.WORKERS)]
        command += ["--bind", f"fd://{listener.fileno()}", "--log-level", "warning"]
        throttle = json.dumps({"burst": burst.BURST, "table": table})
        server = subprocess.Popen(
            [*command, *options, "app:application"],
            cwd=HERE,
            env={**os.environ, "THROTTLE": throttle, "PYTHONDONTWRITEBYTECODE": "1"},
            pass_fds=[listener.fileno()],
        )
        try:
            yield listener.getsockname()[1]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


def test_preloaded_workers_share_an_unnamed_table() -> None:
    with gunicorn("--preload", table=None) as port:
        burst.send(port).assert_shared_burst()


def test_workers_without_preload_share_a_named_table(tmp_path: Path) -> None:
    with gunicorn(table={"name": "gunicorn", "dir": str(tmp_path), "size": 1000}) as port:
        burst.send(port).assert_shared_burst()


def test_workers_without_preload_and_name_count_separately() -> None:
    with gunicorn(table=None) as port:
        burst.send(port).assert_separate_bursts()


def test_preloaded_workers_do_not_share_a_private_table() -> None:
    with gunicorn("--preload", table={"private": True}) as port:
        burst.send(port).assert_separate_bursts()
