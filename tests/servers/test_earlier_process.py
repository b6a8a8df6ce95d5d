"""A table keeps its buckets when a server restarts. The log says so, and tests can avoid it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apache as apache_config
import nginx as nginx_config
import pytest
from server import Server, free_port, running, server_folder

WARNING = "because of requests before this process opened the table"
VARIABLE = "DTHROTTLE_FRESH_TABLES"


@contextmanager
def run(kind: str, folder: Path, *, is_fresh: bool) -> Iterator[Server]:
    """Run a server with one worker, whose clients may send two requests to /limited."""
    port = free_port()
    if kind == "nginx":
        http = "dthrottle_zone $remote_addr zone=clients rate=1r/d;"
        limited = nginx_config.location("/limited", "dthrottle zone=clients burst=1 nodelay;")
        main = f"env {VARIABLE}=1;" if is_fresh else ""
        command = nginx_config.write(folder, port, http, limited, main=main, workers="1")
        with running(command, folder, port, end=signal.SIGQUIT) as server:
            yield server
        return
    lines = 'DThrottleRule default "1/day" burst=2\n'
    lines += apache_config.location("/limited", "DThrottle On")
    command = [*apache_config.write(folder, port, lines), "-X"]
    with pytest.MonkeyPatch.context() as patch:
        if is_fresh:
            patch.setenv(VARIABLE, "1")
        with running(command, folder, port, end=signal.SIGTERM) as server:
            yield server


@pytest.mark.parametrize(("kind", "refused"), [("nginx", 503), ("apache", 429)])
def test_a_refusal_that_an_earlier_start_caused_is_logged_once(kind: str, refused: int) -> None:
    with server_folder(None) as folder:
        with run(kind, folder, is_fresh=False) as server:
            assert server.statuses("/limited", 3) == [200, 200, refused]
            assert WARNING not in server.log()
        with run(kind, folder, is_fresh=False) as server:
            assert server.statuses("/limited", 2) == [refused, refused]
            assert server.log().count(WARNING) == 1
            assert f"`dthrottle table remove test --dir {folder}/tables`" in server.log()


@pytest.mark.parametrize("kind", ["nginx", "apache"])
def test_a_server_with_fresh_tables_starts_with_full_buckets(kind: str) -> None:
    with server_folder(None) as folder:
        for _ in range(2):
            with run(kind, folder, is_fresh=True) as server:
                assert server.statuses("/limited", 2) == [200, 200]
                assert server.get("/limited").status != 200
        assert list((folder / "tables").iterdir()) == []
