"""Runs the code blocks of the README and of the documentation, as a user would paste them.

A block runs in an empty folder with the packages of this checkout. What it prints must be what the
comments on its printing lines promise: `print(x)  # 199`. Rust blocks are doctests of the core. A
block of ```ini eom.conf is a file of that name for the blocks of its page that run. Blocks of
```python daemon and the like run beside a dthrottled, with its doors in place of the usual ones.
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
# By its name: mypy sees a folder at a time.
daemons = import_module("daemons")

NAMES = ("busy", "c", "configuration", "daemon", "governor", "node", "python")
PAGES = ["README.md", *(f"docs/{name}.md" for name in NAMES)]
FENCE = re.compile(r"^```([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The daemon that the pages speak of.
RULES = 'rate = "100/s"\nburst = 200\n[domains.login]\nrate = "5 per minute"\n'
# Clients wait for 50 ms at most, and units come back in 10 ms; a machine that does much else may need
# longer for both.
TRIES = 5
PROMISE = re.compile(
    r"(?:\bprint|console\.log|\bprintf)\(.*\);?\s+(?:#|//|/\*)\s*(.*?)\s*(?:\*/)?$", re.MULTILINE
)
SHELL_PROMISE = re.compile(r"    # (.*)$", re.MULTILINE)


def promised(code: str) -> list[str]:
    """What the block says it prints."""
    return PROMISE.findall(code) or SHELL_PROMISE.findall(code)


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
    """Run a line at a time; `command  # output`, whose blanks and ends of lines are one."""
    outputs = []
    for line in code.splitlines():
        done = run(["sh", "-c", f"PATH={daemons.BINARY.parent}:$PATH; {line}"], folder)
        outputs.append(" ".join(done.split()))
    return "\n".join(outputs)


def beside_daemon(runner: Callable[[str, Path], str]) -> Callable[[str, Path], str]:
    def run_beside(code: str, folder: Path) -> str:
        with daemons.Daemon(RULES, 'resp = "127.0.0.1:0"') as daemon:
            token = daemon.dir / "token"
            token.write_text(f"{daemons.TOKEN}\n")
            doors = {
                "/etc/dthrottle/token": str(token),
                "/run/dthrottled/dthrottled.sock": str(daemon.socket),
                "127.0.0.1:7373": daemon.tcp,
                "127.0.0.1 7373": daemon.tcp.replace(":", " "),
                "127.0.0.1:7380": daemon.http,
                "redis-cli -p 6379": f"redis-cli -p {daemon.resp.split(':')[1]}",
            }
            for usual, door in doors.items():
                code = code.replace(usual, door)
            return runner(code, folder)

    return run_beside


def remove_tables(name: str) -> None:
    """Remove the named tables that a block has left behind."""
    for table in [*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)]:
        table.unlink()


def run_start(code: str, folder: Path) -> str:
    """Run lines that each start a daemon: it must get ready, and end when it is told to."""
    (folder / "dthrottle.toml").write_text("table = { private = true }\n" + RULES)
    doors = ["--listen", "./socket", "--http", "off"]
    for line in code.splitlines():
        name, *words = shlex.split(line, comments=True)
        table = [] if "--config" in words else ["--table", folder.name]
        command = [str(daemons.BINARY.parent / name), *words, *doors, *table]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as daemon:
            assert daemon.stderr is not None
            said = daemon.stderr.readline()
            daemon.terminate()
            if "is ready" not in said or daemon.wait(timeout=60) != 0:
                raise RuntimeError(f"{line}: {said}")
        remove_tables(f"dthrottle-*{folder.name}*")
    return "\n".join(promised(code))


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
    "c daemon": beside_daemon(run_c),
    "js daemon": beside_daemon(run_js),
    "python daemon": beside_daemon(run_python),
    "sh daemon": beside_daemon(run_sh),
    "sh start": run_start,
}
# Clusters need a secret's file and open ports: the core's own tests read them.
ELSEWHERE = {"rust", "sh", "text", "toml cluster", "toml daemon"}
FILES = ("ini ", "json ", "python ")


def printed_by(language: str, code: str, files: dict[str, str]) -> list[str]:
    """Run a block in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        try:
            return RUNNERS[language](code, Path(folder)).splitlines()
        finally:
            # Middleware names its table after the folder, and leaves it behind.
            remove_tables(f"dthrottle-*-{Path(folder).name}-*")


def check(language: str, code: str, files: dict[str, str] | None = None) -> str | None:
    """What is wrong with a block, if anything."""
    # A configuration prints nothing; its comments are remarks.
    wanted = [] if language == "toml" else promised(code)
    if language != "toml" and not wanted:
        return "the block promises no output, so it shows nothing"
    try:
        for _ in range(TRIES):
            printed = printed_by(language, code, files or {})
            if printed == wanted:
                return None
    except RuntimeError as error:
        return str(error)
    return f"printed {printed}, promised {wanted}"


def self_test() -> None:
    """A block that breaks its promise, or fails, must be noticed."""
    assert check("python", "print(1 + 1)  # 2\n") is None
    assert check("python", "print(1 + 1)  # 3\n") is not None
    assert check("python", "print(1)  # 1\nraise SystemExit(1)\n") is not None
    assert check("toml", "rat = 1\n") is not None
    assert check("toml", "rate = 1    # a remark\n") is None
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
            if language in ELSEWHERE:
                continue
            fault = check(language, code, files)
            if fault is None:
                passed += 1
            else:
                failed += 1
                print(f"{page}: the {language} block beginning {code.splitlines()[0]!r}: {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
