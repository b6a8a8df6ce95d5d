"""Counts the instructions per request of the Flask application with valgrind, without a server.

The count hardly varies between runs, even on a busy machine. The count of a short run is subtracted
from the count of a longer one, so that the start of the program does not count.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flask_apps import make
from report import SMALL, Rounds
from werkzeug.test import EnvironBuilder

SHORT, LONG = (5, 15) if SMALL else (100, 600)
KINDS = {"bare": "flask_bare_instructions", "ours": "flask_instructions"}
# Flask starts slowly in valgrind, so a short run starts it only once.
SMALL_RUN = ("ours", LONG)


def measure() -> Rounds:
    """Return instructions per request."""
    if SMALL:
        return {KINDS["ours"]: [_count(SMALL_RUN) / LONG]}
    runs = [(kind, requests) for kind in KINDS for requests in (SHORT, LONG)]
    with ThreadPoolExecutor(2) as threads:
        counts = dict(zip(runs, threads.map(_count, runs), strict=True))
    return {
        name: [(counts[kind, LONG] - counts[kind, SHORT]) / (LONG - SHORT)]
        for kind, name in KINDS.items()
    }


def _count(run: tuple[str, int]) -> int:
    kind, requests = run
    with tempfile.TemporaryDirectory(prefix="dthrottle-bench-") as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        command += [sys.executable, str(Path(__file__).resolve()), kind, str(requests)]
        # Use the same hashes of strings in every run.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PWD": folder}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        name = f"dthrottle-{os.getuid()}-{Path(folder).name}-*"
        for table in [*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)]:
            table.unlink()
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"valgrind failed: {done.stderr}")
    return int(found[1])


def _child(kind: str, requests: int) -> None:
    app = make(kind)
    environ = EnvironBuilder(path="/", environ_base={"REMOTE_ADDR": "127.0.0.1"}).get_environ()

    def start(status: str, _headers: object, _exc_info: object = None) -> None:
        if status != "200 OK":
            raise SystemExit(status)

    for _ in range(requests):
        response = app(dict(environ), start)
        b"".join(response)
        response.close()


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]))
