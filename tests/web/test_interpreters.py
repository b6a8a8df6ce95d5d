"""uWSGI runs each mounted application in its own interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from servers import BIN, free_port, serve


@pytest.mark.parametrize("processes", [1, 2])
def test_mounted_applications_share_a_named_table(folder: Path, processes: int) -> None:
    port = free_port()
    command = [str(BIN / "uwsgi"), "--master", "--processes", str(processes), "--need-app"]
    command += ["--http-socket", f"127.0.0.1:{port}", "--die-on-term", "--disable-logging"]
    command += ["--virtualenv", sys.prefix, "--manage-script-name"]
    command += ["--mount", "/one=mount_app.py", "--mount", "/two=mount_app.py"]
    table = {"name": "mounted", "dir": str(folder.parent), "size": 1000}
    with serve(folder, command, {"table": table}, processes, port=port) as server:
        answers = [server.get(path, X_Client="alice") for path in ["/one", "/two"] * 6]
    assert [status for status, _, _ in answers] == [200] * 10 + [429] * 2
    assert len({body for status, _, body in answers if status == 200}) == 2, "two interpreters"
