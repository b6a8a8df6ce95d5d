"""Processes of three languages on one named table admit exactly the burst of every tag."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]

BURST = 1000
TAGS = 100
ROUNDS = 20
# The checks of eight of the ten processes exceed the burst of a tag, those of seven do not.
CHECKS = 140

Hammer = subprocess.Popen[str]


@pytest.fixture(scope="module")
def hammer_c(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile hammer.c, and return the path of the program."""
    program = str(tmp_path_factory.mktemp("c") / "hammer")
    library = REPOSITORY / "target" / "release"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-I", str(REPOSITORY / "include")]
    command += [str(HERE / "hammer.c"), "-o", program]
    command += ["-L", str(library), "-ldthrottle", f"-Wl,-rpath,{library}"]
    subprocess.run(command, check=True)
    return program


@pytest.fixture
def hammers(hammer_c: str, tmp_path: Path) -> Iterator[list[Hammer]]:
    """Start all processes at the same time, so that they also race to make the table."""
    commands = [[sys.executable, str(HERE / "hammer.py")]] * 4
    commands += [["node", str(HERE / "hammer.js")]] * 4 + [[hammer_c]] * 2
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, str(tmp_path), str(TAGS), str(CHECKS)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for command in commands
        ]
        yield started
        for process in started:
            process.communicate(timeout=60)
    assert [process.returncode for process in started] == [0] * len(started)
    assert len(list(tmp_path.iterdir())) == 1


def read(process: Hammer) -> str:
    """Read a line of output."""
    assert process.stdout
    return process.stdout.readline()


def test_processes_of_three_languages_pass_exactly_the_burst(hammers: list[Hammer]) -> None:
    assert [read(process) for process in hammers] == ["ready\n"] * len(hammers)
    for number in range(ROUNDS):
        for process in hammers:
            assert process.stdin
            process.stdin.write(f"round {number}\n")
            process.stdin.flush()
        passed = [[int(count) for count in read(process).split()] for process in hammers]
        assert [len(counts) for counts in passed] == [TAGS] * len(hammers)
        assert [sum(counts) for counts in zip(*passed, strict=True)] == [BURST] * TAGS
