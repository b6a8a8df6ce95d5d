"""Bytes that a key takes in the memory that nginx's workers share, while keys are remembered.

Each limiter gets the size that limit_req needs for so many keys. Every key is used up, then asked
for again: who is let through a second time was forgotten.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from client import count_passed, free_port, wait
from kinds import MODULES, Kind

# What a key of limit_req takes, by its documentation; the rest is for nginx's own.
LIMIT_REQ_BYTES = 128
SPARE = 1.05


def memory(kind: Kind) -> tuple[float, int]:
    """Give bytes a key, and how many keys were forgotten."""
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
        # What was never written to takes no memory.
        tables = [512 * path.stat().st_blocks for path in folder.glob("dthrottle-*-bench")]
    if first != kind.keys - 1:
        raise SystemExit(f"{kind}: {first} of {kind.keys - 1} keys passed the first time")
    return (sum(tables) or size) / kind.keys, second
