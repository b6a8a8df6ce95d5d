"""Instructions of a request to the Flask application, without a server, as valgrind counts them.

They are the same in every run, however busy the machine is. The count of a short run is taken from
that of a longer one, so that what happens once does not count.
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
# To start Flask in valgrind takes long: the small form starts it once.
SMALL_RUN = ("ours", LONG)


def measure() -> Rounds:
    """Give instructions a request."""
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
        # Strings hash the same in every run.
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
        answer = app(dict(environ), start)
        b"".join(answer)
        answer.close()


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]))
