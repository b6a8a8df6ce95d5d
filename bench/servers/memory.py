"""Measures the bytes per key in the memory that the workers of nginx share.

Each limiter gets the size that limit_req needs for the number of keys. Every key is checked until it
is over its limit, and then once more: if it passes again, it was evicted.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from client import count_passed, free_port, wait
from kinds import MODULES, Kind

# The bytes per key of limit_req, by its documentation. nginx itself needs the rest.
LIMIT_REQ_BYTES = 128
SPARE = 1.05


def memory(kind: Kind) -> tuple[float, int]:
    """Return bytes per key, and how many keys were evicted."""
    with tempfile.TemporaryDirectory(prefix="dthrottle-bench-") as name:
        folder, port = Path(name), free_port()
        folder.chmod(0o777)
        size = int(kind.keys * LIMIT_REQ_BYTES * SPARE)
        command = kind.command(folder, port, single_process=False, zone=f"z:{size}", rate="1r/d")
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{MODULES}/lib"}
        server = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
        try:
            wait(port, server)
            first, second = (count_passed(port, range(1, kind.keys)) for _ in range(2))
        finally:
            server.terminate()
            server.wait(60)
        # Pages that were never written do not use memory.
        tables = [512 * path.stat().st_blocks for path in folder.glob("dthrottle-*-bench")]
    if first != kind.keys - 1:
        raise SystemExit(f"{kind}: {first} of {kind.keys - 1} keys passed the first time")
    return (sum(tables) or size) / kind.keys, second
