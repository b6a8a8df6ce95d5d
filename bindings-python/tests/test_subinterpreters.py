"""Each interpreter of a process loads its own native module, and all share named tables."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from test_package import pythons, serves, wheel

__all__ = ["wheel"]

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


@pytest.fixture
def package(wheel: Path, tmp_path: Path) -> Path:
    """Return a folder with the package, for other Pythons than this one."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "package")
    return tmp_path / "package"


def run(code: str, package: Path, python: Path | str = sys.executable) -> list[str]:
    done = subprocess.run(
        [python, "-c", SCRIPT + code],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), python
    return done.stdout.splitlines()


def installed_pythons() -> set[Path]:
    return {Path(sys.executable), *filter(serves, pythons())}


def test_every_interpreter_loads_the_module_and_shares_named_tables(
    package: Path, tmp_path: Path
) -> None:
    for number, python in enumerate(installed_pythons()):
        folder = tmp_path / str(number)
        folder.mkdir()
        check = CHECK.format(folder=str(folder))
        # The second one begins after the first one has ended, and both after the main one.
        code = (
            f"check = {check!r}\n"
            + """
exec(check)
for _ in range(2):
    interpreter = create()
    run(interpreter, check)
    interpreters.destroy(interpreter)
"""
        )
        error = "`cost` must be an int from 0 to 2**64 - 1, got -1"
        expected = [
            line for answer in ("4 True", "2 True", "0 False") for line in (answer, error, error)
        ]
        assert run(code, package, python) == expected, python


def test_interpreter_loads_the_module_after_all_descriptors_were_closed(package: Path) -> None:
    code = """
import os
import dthrottle
for _ in range(3):
    run(create(), "import dthrottle; print(dthrottle.Throttle('1/hour').allow('alice'))")
    os.closerange(3, 256)
"""
    for python in installed_pythons():
        assert run(code, package, python) == ["True"] * 3, python


def test_module_can_be_imported_again_in_one_interpreter(package: Path) -> None:
    code = """
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
    assert run(code, package) == ["ArgumentError True"] * 2


def test_interpreter_with_a_gil_of_its_own_gets_an_error(package: Path) -> None:
    # Python before 3.12 has no such interpreters.
    code = """
if sys.version_info >= (3, 12):
    interpreter = interpreters.create()
    try:
        run(interpreter, "import dthrottle")
    except Exception as error:
        print("does not support" in str(error) and "isolated subinterpreter" in str(error))
else:
    print(True)
"""
    for python in installed_pythons():
        assert run(code, package, python) == ["True"], python
