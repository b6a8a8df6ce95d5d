"""Measures CPU time per request and requests per second with wrk. Both vary considerably."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from client import free_port, wait
from kinds import MODULES, SMALL, Kind

SECONDS = 1 if SMALL else 3
TICKS = os.sysconf("SC_CLK_TCK")
SCRIPT = """
request = function()
    return wrk.format("GET", "/file.txt?k=" .. math.random(0, {keys} - 1))
end
"""


def speed(kind: Kind) -> tuple[float, float]:
    """Return microseconds of CPU time per request, and requests per second."""
    with tempfile.TemporaryDirectory(prefix="dthrottle-bench-") as name:
        folder, port = Path(name), free_port()
        folder.chmod(0o777)
        command = kind.command(folder, port, single_process=False)
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{MODULES}/lib"}
        server = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
        try:
            wait(port, server)
            script = folder / "keys.lua"
            script.write_text(SCRIPT.format(keys=kind.keys))
            load = ["wrk", "-t1", "-c1", f"-d{SECONDS}s"]
            load += ["-s", str(script)] if kind.keys > 1 else []
            load += [f"http://127.0.0.1:{port}/file.txt"]
            before = _cpu(server.pid)
            done = subprocess.run(load, check=True, capture_output=True, text=True).stdout
            used = _cpu(server.pid) - before
        finally:
            server.terminate()
            server.wait(60)
    found = re.search(r"(\d+) requests in ([\d.]+)s", done)
    if not found or "Non-2xx" in done:
        raise SystemExit(f"{kind}: {done}")
    requests = int(found[1])
    return used / requests * 1e6, requests / float(found[2])


def _cpu(process: int) -> float:
    """Return the CPU seconds of the children of a process."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    fields = [
        Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split() for child in children
    ]
    return sum(int(field[11]) + int(field[12]) for field in fields) / TICKS
