"""Counts the instructions per request with valgrind, in a server that runs as one process.

The count hardly varies between runs, even on a busy machine. The count of a short run is subtracted
from the count of a longer one, so that work that happens once does not count.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from client import free_port, keys, request_all, wait
from kinds import MODULES, SMALL, Kind

FEW, MANY = (10, 30) if SMALL else (100, 2100)
SECONDS = 60
# A server that drops root privileges could not write the counts.
USER = 65534 if os.geteuid() == 0 else None


def count(kind: Kind) -> float:
    """Return instructions per request."""
    with ThreadPoolExecutor(2) as threads:
        few, many = threads.map(lambda requests: _collected(kind, requests), (FEW, MANY))
    return (many - few) / (MANY - FEW)


def _collected(kind: Kind, requests: int) -> int:
    with tempfile.TemporaryDirectory(prefix="dthrottle-bench-") as name:
        folder, port = Path(name), free_port()
        folder.chmod(0o777)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out.%p"]
        command += kind.command(folder, port, single_process=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{MODULES}/lib"}
        with (folder / "log").open("w+") as log:
            server = subprocess.Popen(
                command, env=environment, stderr=log, cwd=folder, start_new_session=True, user=USER
            )
            try:
                wait(port, server)
                if kind.keys > 1:
                    request_all(port, range(kind.keys))
                request_all(port, keys(kind.keys, requests))
            finally:
                _end(server)
            log.seek(0)
            text = log.read()
    found = re.search(r"Collected : (\d+)", text)
    if not found:
        raise SystemExit(f"valgrind counted nothing in {kind}: {text}")
    return int(found[1])


def _end(server: subprocess.Popen[bytes]) -> None:
    """Terminate a server. Repeats the signal, because a server may miss it before it sleeps."""
    for _ in range(SECONDS):
        server.terminate()
        try:
            server.wait(1)
            return
        except subprocess.TimeoutExpired:
            pass
    server.kill()
    raise SystemExit(f"the server does not exit: {server.args!r}")
