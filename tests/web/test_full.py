"""Full file systems: the table is in another one, or there is one warning and requests pass."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import BIN, free_port, serve, tables

BURST = 10


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that is neither in /dev/shm nor in /tmp."""
    made = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="full"))
    yield made
    shutil.rmtree(made)
    for table in Path("/tmp").glob(f"dthrottle-{os.getuid()}-{made.name}-*"):
        table.unlink()


# Mounts that only the server sees. /tmp keeps its files, because the checkout may be there.
FULL = "mount -t tmpfs -o size=64k tmpfs /dev/shm && mount -t tmpfs -o size=64k tmpfs /run"
READ_ONLY = "mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp"


def statuses(folder: Path, mounts: list[str], *more: str) -> list[int]:
    """Return the statuses of requests to two workers under these mounts."""
    port = free_port()
    server = [str(BIN / "gunicorn"), "--workers", "2", "--bind", f"127.0.0.1:{port}", *more]
    shell = " && ".join([*mounts, 'exec "$@"'])
    command = ["unshare", "--mount", "sh", "-c", shell, "sh", *server, "node_app:application"]
    config = {"rate": "1 per 100 years", "burst": BURST}
    with serve(folder, command, config, 2, port=port) as running:
        seen = [running.get("/limited", X_Client="a")[0] for _ in range(6 * BURST)]
        assert tables(folder) == []
    assert seen.count(200) + seen.count(429) == len(seen)
    return seen


def test_table_is_in_tmp_if_dev_shm_is_full(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert statuses(folder, [FULL]).count(200) == BURST, "the workers share a table in /tmp"
    assert "shared only" not in capfd.readouterr().err


def test_full_file_systems_cause_one_warning_and_requests_pass(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    full = [FULL, READ_ONLY]
    assert statuses(folder, full, "--preload") == [200] * BURST + [429] * 5 * BURST
    log = capfd.readouterr().err
    assert log.count("shared only with forked children") == 1, (
        "the process that makes the middleware warns once"
    )

    assert BURST < statuses(folder, full).count(200) <= 2 * BURST, "each worker counts separately"
    assert capfd.readouterr().err.count("shared only with forked children") == 2
