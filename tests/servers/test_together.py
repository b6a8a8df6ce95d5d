"""nginx, Apache, gunicorn and Express: with one table exact, as four nodes one bucket."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apache
import nginx
import pytest
from server import Load, Server, folder_for, free_port, running, side_by_side

BURST = 1000
RATE, NODE_BURST, SECONDS = 100, 100, 20
HERE = Path(__file__).parent
RULE = f"[domains.web]\nrate = '1/day'\nburst = {BURST}\n"
NODE_RULE = f"[domains.web]\nrate = '{RATE}/s'\nburst = {NODE_BURST}\n"


def write(folder: Path, name: str, table: str, rest: str) -> Path:
    """Write a configuration. The servers are several users: a group may use the table."""
    given = f"name = '{table}', dir = '{folder}/tables', group = '{os.getegid()}', size = 1000"
    path = folder / f"{name}.toml"
    path.write_text(f"table = {{ {given} }}\n{rest}")
    return path


@contextmanager
def application(command: list[str], path: Path) -> Iterator[Server]:
    """Run an application that reads the configuration itself."""
    port = free_port()
    os.environ["CONFIG"], os.environ["PORT"] = str(path), str(port)
    bound = [part.replace("PORT", str(port)) for part in command]
    with running(bound, HERE, port, end=signal.SIGTERM) as server:
        yield server


@contextmanager
def all_four(paths: list[Path]) -> Iterator[list[Server]]:
    """Run all of them, each with its configuration."""
    is_root = os.geteuid() == 0
    user = f"User nobody\nGroup #{os.getegid()}" if is_root else ""
    gunicorn = [str(Path(sys.executable).parent / "gunicorn"), "--workers", "3"]
    gunicorn += ["--bind", "127.0.0.1:PORT", "--log-level", "warning", "wsgi_app:application"]
    on = ["DThrottle On", "DThrottleDomain web", "DThrottleTag %{QUERY_STRING}"]
    started = [
        nginx.nginx(
            f"dthrottle_config {paths[0]}; dthrottle_zone $args zone=web; dthrottle_status 429;",
            nginx.location("/web", "dthrottle zone=web;", "dthrottle_log_level info;"),
            table="",
            main="user nobody root;" if is_root else "",
        ),
        apache.apache(
            f"DThrottleConfigFile {paths[1]}\n" + apache.location("/web", *on),
            table="",
            user=user,
        ),
        application(gunicorn, paths[2]),
        application(["node", str(HERE / "express_app.js")], paths[3]),
    ]
    with ExitStack() as stack:
        yield [stack.enter_context(server) for server in started]


def test_four_servers_share_one_table_exactly() -> None:
    with folder_for(None) as folder, all_four([write(folder, "all", "all", RULE)] * 4) as servers:
        loads = side_by_side(lambda server: Load(server, "/web?one", BURST // 2).join(), servers)
        assert [seen.broken for seen in loads] == [0] * 4
        assert sum(seen.statuses[200] for seen in loads) == BURST
        assert sum(seen.statuses[429] for seen in loads) == BURST
        assert all(seen.statuses[200] > 0 for seen in loads), "one of them never let anything pass"
        assert len(list((folder / "tables").iterdir())) == 1
        # What one takes is gone for the others.
        for server in servers:
            assert server.get("/web?one").status == 429
            assert server.get(f"/web?{server.port}").status == 200


def test_four_servers_as_four_nodes_are_one_bucket() -> None:
    ports = [free_port() for _ in range(4)]
    with folder_for(None) as folder:
        paths = []
        for port in ports:
            peers = ", ".join(f"'127.0.0.1:{other}'" for other in ports if other != port)
            cluster = f"[cluster]\nname = 'four'\nlisten = '127.0.0.1:{port}'\npeers = [{peers}]\n"
            paths.append(write(folder, str(port), str(port), NODE_RULE + cluster))
        with all_four(paths) as servers:
            for server in servers:
                server.get("/web?nobody")  # by which it joins
            time.sleep(2)
            loads = [Load(server, "/web?one") for server in servers]
            time.sleep(SECONDS)
            seen = [load.stop() for load in loads]
        assert len(list((folder / "tables").iterdir())) == 4
    assert all(set(each.statuses) == {200, 429} for each in seen)
    assert [each.broken for each in seen] == [0] * 4
    times = sorted(at for each in seen for at in each.allowed_at)
    exact = NODE_BURST + RATE * (times[-1] - times[0])
    assert len(times) == pytest.approx(exact, rel=0.02)
