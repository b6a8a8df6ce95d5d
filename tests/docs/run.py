"""Runs the code blocks of the README and of the documentation, as a user would paste them.

A block runs in an empty folder with the packages of this checkout. What it prints must be what the
comments on its printing lines promise: `print(x)  # 199`. Rust blocks are doctests of the core. A
block of ```ini eom.conf is a file of that name for the blocks of its page that run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("busy", "c", "configuration", "governor", "node", "python")),
]
FENCE = re.compile(r"^```([^\n]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(
    r"(?:\bprint|console\.log|\bprintf)\(.*\);?\s+(?:#|//|/\*)\s*(.*?)\s*(?:\*/)?$", re.MULTILINE
)


def promised(code: str) -> list[str]:
    """What the block says it prints."""
    return PROMISE.findall(code)


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
}
# Clusters need a secret's file and open ports: the core's own tests read them.
ELSEWHERE = {"rust", "sh", "text", "toml cluster", "toml daemon"}
FILES = ("ini ", "json ", "python ")


def check(language: str, code: str, files: dict[str, str] | None = None) -> str | None:
    """What is wrong with a block, if anything."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (files or {}).items():
            (Path(folder) / name).write_text(text)
        try:
            printed = RUNNERS[language](code, Path(folder)).splitlines()
        except RuntimeError as error:
            return str(error)
        finally:
            # Middleware names its table after the folder, and leaves it behind.
            for table in Path("/dev/shm").glob(f"dthrottle-*-{Path(folder).name}-*"):
                table.unlink()
    wanted = promised(code)
    if language != "toml" and not wanted:
        return "the block promises no output, so it shows nothing"
    return None if printed == wanted else f"printed {printed}, promised {wanted}"


def self_test() -> None:
    """A block that breaks its promise, or fails, must be noticed."""
    assert check("python", "print(1 + 1)  # 2\n") is None
    assert check("python", "print(1 + 1)  # 3\n") is not None
    assert check("python", "print(1)  # 1\nraise SystemExit(1)\n") is not None
    assert check("toml", "rat = 1\n") is not None
    assert check("python", "print(open('a').read())  # 5\n", {"a": "5"}) is None


def main() -> int:
    self_test()
    passed = failed = 0
    for page in PAGES:
        files: dict[str, str] = {}
        for language, code in FENCE.findall((ROOT / page).read_text()):
            if language.startswith(FILES):
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
