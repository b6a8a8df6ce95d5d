"""The wheel: its files, and its use in clean environments; and the README."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
import vectors

import dthrottle

README = Path(__file__).parents[1] / "README.md"

USE = """
import sys, dthrottle
clock = dthrottle.ManualClock()
throttle = dthrottle.Throttle("1/s", clock=clock)
assert throttle.allow("t") and not throttle.allow("t")
try:
    throttle.check(None)
except dthrottle.ArgumentError as error:
    assert str(error) == "`tag` must be str or bytes, got None", error
else:
    raise SystemExit("no ArgumentError")
print(sys.version_info[:2], dthrottle.__version__, dthrottle.__file__)
"""


@pytest.fixture
def wheel() -> Path:
    """Return the wheel that was built."""
    (wheel,) = (vectors.REPOSITORY / "target" / "wheels").glob("dthrottle-*.whl")
    return wheel


def run(*command: str | Path, **environment: str) -> str:
    """Run a command without the Python variables of this environment, and return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        env={**kept, **environment},
        timeout=600,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_supports_every_later_python(wheel: Path) -> None:
    name, version, python, abi, _platform = wheel.stem.split("-")
    assert (name, python, abi) == ("dthrottle", "cp310", "abi3")
    assert version == dthrottle.__version__


def test_wheel_contains_all_sources_and_types(wheel: Path) -> None:
    files = zipfile.ZipFile(wheel).namelist()
    package = {Path(name).name for name in files if name.startswith("dthrottle/")}
    sources = {path.name for path in (README.parent / "python" / "dthrottle").rglob("*.py*")}
    assert package == sources | {"py.typed", "_dthrottle.abi3.so"}
    assert {"py.typed", "_dthrottle.pyi"} <= package


def test_wheel_contains_its_licences(wheel: Path) -> None:
    files = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "licenses/" in name}
    assert files == {"LICENSE-APACHE", "LICENSE-MIT"}


def test_version_is_that_of_the_workspace() -> None:
    cargo = (vectors.REPOSITORY / "Cargo.toml").read_text("utf-8")
    (version,) = re.findall(r'^version = "(.*)"$', cargo, re.MULTILINE)
    assert dthrottle.__version__ == version
    assert importlib.metadata.version("dthrottle") == dthrottle.__version__
    assert importlib.metadata.requires("dthrottle") is None


def test_wheel_installs_into_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
    assert str(tmp_path) in run(python, "-c", USE)
    run(python, "-m", "pip", "check")


def test_sdist_builds_a_working_wheel(tmp_path: Path) -> None:
    tools = Path(sys.executable).parent
    manifest = README.parent / "Cargo.toml"
    run(tools / "maturin", "sdist", "--manifest-path", manifest, "--out", tmp_path)
    (sdist,) = tmp_path.glob("dthrottle-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("dthrottle-*/")
    # Dependencies are already compiled. All files of an archive have one old date, and cargo compiles
    # the crates again only if their files are newer than its output.
    for file in source.rglob("*.rs"):
        file.touch()
    target = str(vectors.REPOSITORY / "target")
    more = {"CARGO_TARGET_DIR": target, "MATURIN_PEP517_ARGS": "--profile dev"}
    more["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    wheels = Path(target, "wheels")
    before = set(wheels.iterdir())
    run(*pip, source, **more)
    for copy in set(wheels.iterdir()) - before:
        copy.unlink()
    (wheel,) = tmp_path.glob("dthrottle-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "made")
    made = str(tmp_path / "made")
    assert made in run(sys.executable, "-c", USE, PYTHONPATH=made)


def pythons() -> Iterator[Path]:
    """Yield other Pythons: those on the path, and those of pyenv."""
    for minor in range(10, 20):
        if found := which(f"python3.{minor}"):
            yield Path(found)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(root.glob("versions/3.*/bin/python3"))


def serves(python: Path) -> bool:
    """Return whether a Python can be run and the wheel supports it."""
    ask = "import sys, sysconfig; sys.exit(sys.version_info < (3, 10) "
    ask += "or sys.implementation.name != 'cpython' "
    ask += "or bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    try:
        return subprocess.run([python, "-c", ask], capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


def test_wheel_works_in_every_installed_python(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    found = {Path(sys.executable), *filter(serves, pythons())}
    message = [run(python, "-c", USE, PYTHONPATH=str(tmp_path)) for python in sorted(found)]
    assert all(str(tmp_path) in line for line in message)
    print("".join(message))


def test_code_blocks_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = README.read_text("utf-8").split("## Usage")[1].split("## Development")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", usage, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in blocks} == {"python", "toml"}
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for index, (language, text) in enumerate(blocks):
        if language == "toml":
            Path("dthrottle.toml").write_text(text, "utf-8")
        else:
            exec(compile(text, f"README block {index}", "exec"), names)
    # The tables of the middleware are named after the folder, and outlive the process.
    name = f"dthrottle-*-{tmp_path.name}-*"
    for table in [*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)]:
        table.unlink()
    message = capsys.readouterr().out
    assert "go on\n" in message
    # Seven units were used, and some of them have been refilled.
    assert re.search(r"^send (19[3-9]|200) of 1000$", message, re.MULTILINE)
    assert "line 2: `brust` is an unknown key; did you mean `burst`?" in message


def test_errors_after_a_second_import_have_the_new_classes() -> None:
    """The second import makes new exception classes, and the module must raise those."""
    script = """
import sys
import dthrottle
try:
    dthrottle.Throttle("1/s").check("tag", 2)
except dthrottle.CostError:
    pass
for name in [name for name in sys.modules if name.split(".")[0] == "dthrottle"]:
    del sys.modules[name]
import dthrottle
try:
    dthrottle.Throttle("1/s").check("tag", 2)
except dthrottle.CostError:
    print("caught")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("caught\n", "")
