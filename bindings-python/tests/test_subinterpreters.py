"""Each interpreter of a process loads its own native module, and all share named tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
try:
    import _interpreters as interpreters
except ImportError:  # before 3.13
    import _xxsubinterpreters as interpreters

def create():
    if sys.version_info >= (3, 13):
        return interpreters.create("legacy")
    return interpreters.create(isolated=False)

def run(interpreter, code):
    run = interpreters.exec if sys.version_info >= (3, 13) else interpreters.run_string
    failure = run(interpreter, code)
    assert failure is None, failure
"""

CHECK = """
import pickle
import dthrottle
throttle = dthrottle.Throttle("1/hour", burst=5, table={{"name": "shared", "dir": {folder!r}}})
print(throttle.check("alice").remaining, throttle.allow("alice"))
for call in (throttle.check, throttle.allow):
    try:
        call("alice", -1)
    except dthrottle.CostError as error:
        print(error)
decision = throttle.peek("alice")
assert pickle.loads(pickle.dumps(decision)) == decision
"""


def run(code: str) -> str:
    command = [sys.executable, "-c", SCRIPT + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_interpreter_loads_the_module_and_shares_named_tables(tmp_path: Path) -> None:
    check = CHECK.format(folder=str(tmp_path))
    # The second one begins after the first one has ended, and both after the main one.
    output = run(
        f"check = {check!r}\n"
        "exec(check)\n"
        "for _ in range(2):\n"
        "    interpreter = create()\n"
        "    run(interpreter, check)\n"
        "    interpreters.destroy(interpreter)\n"
    )
    error = "`cost` must be an int from 0 to 2**64 - 1, got -1"
    assert output.splitlines() == [
        "4 True",
        error,
        error,
        "2 True",
        error,
        error,
        "0 False",
        error,
        error,
    ]


def test_module_can_be_imported_again_in_one_interpreter() -> None:
    code = """
import sys
for _ in range(2):
    import dthrottle
    throttle = dthrottle.Throttle("1/hour")
    try:
        throttle.allow(5)
    except TypeError as error:
        print(type(error).__name__, throttle.allow("alice"))
    for name in [name for name in sys.modules if name.startswith("dthrottle")]:
        del sys.modules[name]
"""
    assert run(code) == "ArgumentError True\n" * 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no interpreter has a lock of its own")
def test_interpreter_with_a_lock_of_its_own_gets_an_error() -> None:
    assert "isolated subinterpreter" in run("""
interpreter = interpreters.create()
try:
    failure = run(interpreter, "import dthrottle")
except Exception as error:
    print(error)
""")
