"""Nodes in four languages: each is a process of its own that takes orders, as hammer.py says."""

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
# How long anything may take before it counts as never.
NEVER = 60.0


@dataclass(frozen=True)
class Row:
    """What happened on a node in a tenth of a second, and the balance at its end."""

    tenth: int
    asked: int
    admitted: int
    balance: int


def command(language: str, config: dict[str, Any]) -> list[str]:
    """Give the program of a language with its configuration: as objects, or as TOML."""
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
    """A process that is, or belongs to, a node."""

    def __init__(
        self,
        language: str,
        config: dict[str, Any],
        *words: str,
        on: Sequence[str] = (),
    ) -> None:
        self.language = language
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = subprocess.Popen(
            [*on, *command(language, config), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process. `ip netns exec` becomes the program it starts."""
        return self._process.pid

    def wait_ready(self) -> None:
        """Wait until it has begun."""
        line = self.line()
        assert line == "ready", (self.language, line)

    def line(self) -> str | None:
        """Read a line; none: it has ended."""
        return self._lines.get(timeout=NEVER)

    def tell(self, order: str) -> None:
        """Give an order."""
        assert self._process.stdin
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()

    def ask(self, order: str) -> str:
        """Give an order that is answered with a line."""
        self.tell(order)
        line = self.line()
        assert line is not None, f"{self.language} ended at {order}"
        return line

    def balance(self, tag: str) -> int:
        """Give what a tag's bucket holds."""
        return int(self.ask(f"balance {tag}"))

    def stats(self) -> dict[str, int]:
        """Give what a node in Rust knows of the cluster."""
        words = (word.partition("=") for word in self.ask("stats").split())
        return {name: int(number) for name, _, number in words}

    def rows(self) -> Iterator[Row]:
        """Give the rows of a run until it is done, or the process has ended."""
        while (line := self.line()) not in ("done", None):
            yield Row(*map(int, str(line).split()))

    def kill(self) -> None:
        """End it wherever it is."""
        self._process.kill()
        self._process.wait(NEVER)

    def end(self) -> None:
        """Let it end by itself, if it has not yet."""
        assert self._process.stdin
        try:
            self._process.stdin.close()
            self._process.wait(NEVER)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.kill()
        self._reader.join(NEVER)

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


def start_all(nodes: Sequence[Node]) -> None:
    """Wait until all have begun."""
    for node in nodes:
        node.wait_ready()


def poll(what: str) -> Iterator[float]:
    """Give the time that has passed, again and again, and fail when it is too much."""
    begin = time.monotonic()
    while (passed := time.monotonic() - begin) < NEVER:
        yield passed
        time.sleep(0.01)
    raise AssertionError(f"never: {what}")
