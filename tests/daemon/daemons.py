"""Runs daemons for tests, each with its own folder, table and ports."""

from __future__ import annotations

import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target/debug/dthrottled"
LONG = 30.0
TOKEN = "correct-horse-battery"


class Daemon:
    """A daemon with these rules and these keys of ``[daemon]``."""

    def __init__(
        self,
        rules: str,
        keys: str = "",
        name: str = "daemon-test",
        token: str | None = TOKEN,
    ) -> None:
        self.dir = Path(tempfile.mkdtemp(prefix="dthrottled-"))
        self.socket = self.dir / "socket"
        self.config = self.dir / "dthrottle.toml"
        listen = f'listen = ["{self.socket}", "127.0.0.1:0"]'
        http = "" if "http" in keys else 'http = "127.0.0.1:0"'
        table = f'table = {{ name = "{name}", dir = "{self.dir}" }}'
        if token is not None:
            keys += f'\ntoken = "{token}"'
        self.config.write_text(f"{table}\n{rules}\n[daemon]\n{listen}\n{http}\n{keys}\n")
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start or restart the daemon."""
        self.process = subprocess.Popen(
            [BINARY, "--config", self.config], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.log: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_follow, args=(self.process.stderr, self.log), daemon=True).start()
        ready = self.wait_for("is ready")
        addresses = re.search(
            r"lines on (\S+) and (\S+); http on (\S+); resp on (\S+); smockron on (\S+);", ready
        )
        assert addresses is not None, ready
        self.tcp, self.http, self.resp, self.smockron = addresses.groups()[1:]

    def wait_for(self, words: str) -> str:
        """Wait for a line of the log that contains these words, and return it."""
        while words not in (line := self.log.get(timeout=LONG)):
            pass
        return line

    def has_logged(self, words: str) -> bool:
        """Return whether a line that has not been read yet contains these words."""
        while not self.log.empty():
            if words in self.log.get():
                return True
        return False

    def kill(self) -> None:
        """Kill the daemon."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def __enter__(self) -> Daemon:  # noqa: PYI034 - Self is in typing from 3.11 on
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        shutil.rmtree(self.dir)


def _follow(log: IO[str], lines: queue.SimpleQueue[str]) -> None:
    with log:
        for line in log:
            lines.put(line)
