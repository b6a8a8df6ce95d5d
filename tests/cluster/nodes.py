"""Nodes in four languages. Each is a process that takes the commands of hammer.py."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
BUILT = REPOSITORY / "target" / "release"
LANGUAGES = ("python", "node", "c", "rust")
# The longest time to wait for anything.
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Row:
    """The counts of a node in a tenth of a second, and the balance at its end."""

    tenth: int
    checks: int
    admitted: int
    balance: int


def command(language: str, config: dict[str, Any]) -> list[str]:
    """Return the command that starts a node, with its configuration as JSON or TOML."""
    match language:
        case "python":
            return [sys.executable, str(HERE / "hammer.py"), json.dumps(config)]
        case "node":
            return ["node", str(HERE / "hammer.js"), json.dumps(config)]
        case "c":
            return [str(REPOSITORY / "target" / "hammer"), toml(config)]
        case "rust":
            return [str(BUILT / "examples" / "node"), toml(config)]
    raise ValueError(language)


def toml(config: dict[str, Any]) -> str:
    """Write a configuration as TOML."""
    return "".join(f"{key} = {_value(value)}\n" for key, value in config.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


class Node:
    """A process of a node."""

    def __init__(
        self,
        language: str,
        config: dict[str, Any],
        *words: str,
        prefix: Sequence[str] = (),
    ) -> None:
        self.language = language
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            [*prefix, *command(language, config), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Return the process ID of the node, also if `ip netns exec` started it by exec()."""
        return self._process.pid

    def wait_ready(self) -> None:
        """Wait until the node has started."""
        line = self.line()
        assert line == "ready", (self.language, line)

    def line(self) -> str | None:
        """Return the next line, or None if the process has exited."""
        return self._lines.get(timeout=TIMEOUT_S)

    def send(self, command: str) -> None:
        """Send a command."""
        assert self._process.stdin
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def query(self, command: str) -> str:
        """Send a command, and return the line of its answer."""
        self.send(command)
        line = self.line()
        assert line is not None, f"{self.language} exited at {command}"
        return line

    def balance(self, tag: str) -> int:
        """Return the balance of a tag's bucket."""
        return int(self.query(f"balance {tag}"))

    def stats(self) -> dict[str, int]:
        """Return the cluster statistics of a node in Rust."""
        words = (word.partition("=") for word in self.query("stats").split())
        return {name: int(number) for name, _, number in words}

    def rows(self) -> Iterator[Row]:
        """Yield the rows of a run until it is done or the process has exited."""
        while (line := self.line()) not in ("done", None):
            yield Row(*map(int, str(line).split()))

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait(TIMEOUT_S)

    def end(self) -> None:
        """Close its input, so that the process exits, unless it has exited."""
        assert self._process.stdin
        try:
            self._process.stdin.close()
            self._process.wait(TIMEOUT_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.kill()
        self._reader.join(TIMEOUT_S)

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


def start_all(nodes: Sequence[Node]) -> None:
    """Wait until all nodes have started."""
    for node in nodes:
        node.wait_ready()


def poll(what: str) -> Iterator[float]:
    """Yield the seconds that have passed, until the condition `what` takes too long."""
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < TIMEOUT_S:
        yield passed
        time.sleep(0.01)
    raise AssertionError(f"condition not met within {TIMEOUT_S} s: {what}")
