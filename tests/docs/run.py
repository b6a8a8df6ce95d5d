"""Runs the code blocks of the README and of the documentation.

Each block runs in an empty folder with the packages of this checkout. Its output must equal the
comments on its printing lines: `print(x)  # 199`. Rust blocks run as doctests of the core instead.
A block whose fence is ```ini eom.conf is written to a file of that name, which later blocks of the
page can read. A block whose fence ends with `daemon` runs with a dthrottled of its own: the default
addresses in the block are replaced by the addresses of that daemon.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/daemon"))
# Imported by name, because mypy checks one folder at a time.
daemons = import_module("daemons")

NAMES = ("busy", "c", "configuration", "daemon", "governor", "node", "python")
PAGES = ["README.md", *(f"docs/{name}.md" for name in NAMES)]
FENCE = re.compile(r"^```([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The configuration that the pages assume the daemon to have.
RULES = 'rate = "100/s"\nburst = 200\n[domains.login]\nrate = "5 per minute"\n'
# A client waits at most 50 ms for an answer, and a unit comes back in 10 ms, so a block can fail on a
# busy machine.
TRIES = 5
EXPECTED = re.compile(
    r"(?:\bprint|console\.log|\bprintf)\(.*\);?\s+(?:#|//|/\*)\s*(.*?)\s*(?:\*/)?$", re.MULTILINE
)
SHELL_EXPECTED = re.compile(r"    # (.*)$", re.MULTILINE)


def expected_output(code: str) -> list[str]:
    """Return the output that the comments of a block state."""
    return EXPECTED.findall(code) or SHELL_EXPECTED.findall(code)


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def run_python(code: str, folder: Path) -> str:
    (folder / "main.py").write_text(code)
    return run([str(ROOT / ".venv/bin/python"), "main.py"], folder)


def run_js(code: str, folder: Path) -> str:
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "dthrottle").symlink_to(ROOT / "bindings-node")
    (modules / "dthrottle-wasm").symlink_to(ROOT / "bindings-wasm/pkg")
    for framework in ("express", "fastify"):
        (modules / framework).symlink_to(ROOT / "node_modules" / framework)
    (folder / "main.cjs").write_text(code)
    return run(["node", "main.cjs"], folder)


def run_c(code: str, folder: Path) -> str:
    (folder / "main.c").write_text(code)
    library = ROOT / "target/release"
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{ROOT / 'include'}"]
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-ldthrottle"]
    run(["cc", *flags, "main.c", "-o", "main", *link], folder)
    return run(["./main"], folder)


def run_sh(code: str, folder: Path) -> str:
    """Run one line at a time. In the output, any white space counts as one space."""
    outputs = []
    for line in code.splitlines():
        done = run(["sh", "-c", f"PATH={daemons.BINARY.parent}:$PATH; {line}"], folder)
        outputs.append(" ".join(done.split()))
    return "\n".join(outputs)


def with_daemon(runner: Callable[[str, Path], str]) -> Callable[[str, Path], str]:
    def run_with_daemon(code: str, folder: Path) -> str:
        with daemons.Daemon(RULES, 'resp = "127.0.0.1:0"') as daemon:
            token = daemon.dir / "token"
            token.write_text(f"{daemons.TOKEN}\n")
            addresses = {
                "/etc/dthrottle/token": str(token),
                "/run/dthrottled/dthrottled.sock": str(daemon.socket),
                "127.0.0.1:7373": daemon.tcp,
                "127.0.0.1 7373": daemon.tcp.replace(":", " "),
                "127.0.0.1:7380": daemon.http,
                "redis-cli -p 6379": f"redis-cli -p {daemon.resp.split(':')[1]}",
            }
            for default, address in addresses.items():
                code = code.replace(default, address)
            return runner(code, folder)

    return run_with_daemon


def remove_tables(name: str) -> None:
    """Remove the named tables that a block created."""
    for table in [*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)]:
        table.unlink()


def run_start(code: str, folder: Path) -> str:
    """Run lines that each start a daemon, which must become ready and exit on SIGTERM."""
    (folder / "dthrottle.toml").write_text("table = { private = true }\n" + RULES)
    listeners = ["--listen", "./socket", "--http", "off"]
    for line in code.splitlines():
        name, *arguments = shlex.split(line, comments=True)
        table = [] if "--config" in arguments else ["--table", folder.name]
        command = [str(daemons.BINARY.parent / name), *arguments, *listeners, *table]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as daemon:
            assert daemon.stderr is not None
            message = daemon.stderr.readline()
            daemon.terminate()
            if "is ready" not in message or daemon.wait(timeout=60) != 0:
                raise RuntimeError(f"{line}: {message}")
        remove_tables(f"dthrottle-*{folder.name}*")
    return "\n".join(expected_output(code))


def run_toml(code: str, folder: Path) -> str:
    (folder / "dthrottle.toml").write_text(code)
    return run_python(
        "from dthrottle import Throttle\nThrottle.from_file('dthrottle.toml')\n", folder
    )


RUNNERS: dict[str, Callable[[str, Path], str]] = {
    "python": run_python,
    "js": run_js,
    "js wasm": run_js,
    "c": run_c,
    "toml": run_toml,
    "c daemon": with_daemon(run_c),
    "js daemon": with_daemon(run_js),
    "python daemon": with_daemon(run_python),
    "sh daemon": with_daemon(run_sh),
    "sh start": run_start,
}
# Not run here: Rust blocks are doctests, the tests of the Node package run "js test", and the tests of
# the core parse the cluster configurations, which need the file of a secret and open ports.
SKIPPED = {"js test", "json", "rust", "sh", "text", "toml cluster", "toml daemon", "yaml"}
FILES = ("ini ", "json ", "python ")


def printed_by(language: str, code: str, files: dict[str, str]) -> list[str]:
    """Run a block in a new folder and return the lines that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        try:
            return RUNNERS[language](code, Path(folder)).splitlines()
        finally:
            # Middleware creates a table named after the folder, which outlives the process.
            remove_tables(f"dthrottle-*-{Path(folder).name}-*")


def check(language: str, code: str, files: dict[str, str] | None = None) -> str | None:
    """Return what is wrong with a block, or None."""
    # A configuration prints nothing, so its comments are ordinary comments.
    expected = [] if language == "toml" else expected_output(code)
    if language != "toml" and not expected:
        return "the block states no expected output, so running it checks nothing"
    try:
        for _ in range(TRIES):
            printed = printed_by(language, code, files or {})
            if printed == expected:
                return None
    except RuntimeError as error:
        return str(error)
    return f"printed {printed}, expected {expected}"


def self_test() -> None:
    """Check that wrong output and failing blocks are noticed."""
    assert check("python", "print(1 + 1)  # 2\n") is None
    assert check("python", "print(1 + 1)  # 3\n") is not None
    assert check("python", "print(1)  # 1\nraise SystemExit(1)\n") is not None
    assert check("toml", "rat = 1\n") is not None
    assert check("toml", "rate = 1    # a comment\n") is None
    assert check("sh daemon", "printf 'a\\n' | nc -N 127.0.0.1 7373    # OK\n") is None
    assert check("sh daemon", "printf 'a\\n' | nc -N 127.0.0.1 7373    # NO\n") is not None
    assert check("sh start", "dthrottled --rate 5/s    # a comment\n") is None
    assert check("sh start", "dthrottled --rat 5/s    # a comment\n") is not None
    assert check("python", "print(open('a').read())  # 5\n", {"a": "5"}) is None


def main() -> int:
    self_test()
    passed = failed = 0
    for page in PAGES:
        files: dict[str, str] = {}
        for language, code in FENCE.findall((ROOT / page).read_text()):
            if language.startswith(FILES) and language not in RUNNERS:
                files[language.split()[1]] = code
                continue
            if language in SKIPPED:
                continue
            problem = check(language, code, files)
            if problem is None:
                passed += 1
            else:
                failed += 1
                print(f"{page}: the {language} block beginning {code.splitlines()[0]!r}: {problem}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
