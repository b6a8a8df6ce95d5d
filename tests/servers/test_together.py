"""nginx, Apache, gunicorn and Express share one table, or are four nodes of a cluster."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import apache
import nginx
import pytest
from hosts import Host, hosts
from server import Load, Server, free_port, run_in_parallel, running, server_folder

BURST = 1000
RATE, NODE_BURST, SECONDS = 100, 100, 20
SECRET = "a secret of the tests, long enough"
HERE = Path(__file__).parent
RULE = f"[domains.web]\nrate = '1/day'\nburst = {BURST}\n"
NODE_RULE = f"[domains.web]\nrate = '{RATE}/s'\nburst = {NODE_BURST}\n"


def write(folder: Path, name: str, table: str, rest: str) -> Path:
    """Write a configuration. The servers run as several users, so the table belongs to a group."""
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


def all_four(paths: Sequence[Path]) -> list[AbstractContextManager[Server]]:
    """Return all four servers, not started yet, each with its configuration."""
    is_root = os.geteuid() == 0
    user = f"User nobody\nGroup #{os.getegid()}" if is_root else ""
    gunicorn = [str(Path(sys.executable).parent / "gunicorn"), "--workers", "3"]
    gunicorn += ["--bind", "127.0.0.1:PORT", "--log-level", "warning", "wsgi_app:application"]
    on = ["DThrottle On", "DThrottleDomain web", "DThrottleTag %{QUERY_STRING}"]
    return [
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


def test_four_servers_share_one_table_exactly() -> None:
    with server_folder(None) as folder, ExitStack() as stack:
        started = all_four([write(folder, "all", "all", RULE)] * 4)
        servers = [stack.enter_context(server) for server in started]
        loads = run_in_parallel(lambda server: Load(server, "/web?one", BURST // 2).join(), servers)
        assert [seen.lost for seen in loads] == [0] * 4
        assert sum(seen.statuses[200] for seen in loads) == BURST
        assert sum(seen.statuses[429] for seen in loads) == BURST
        assert all(seen.statuses[200] > 0 for seen in loads), "each server must allow some requests"
        assert len(list((folder / "tables").iterdir())) == 1
        # The bucket is empty for all of them.
        for server in servers:
            assert server.get("/web?one").status == 429
            assert server.get(f"/web?{server.port}").status == 200


def node_of(here: Host, all_hosts: list[Host], folder: Path) -> Path:
    """Write the configuration of a node."""
    peers = [host.node for host in all_hosts if host is not here]
    cluster = (
        f"[cluster]\nname = 'four'\nlisten = '{here.node}'\npeers = {peers}\nsecret = '{SECRET}'\n"
    )
    name = str(all_hosts.index(here))
    return write(folder, name, name, NODE_RULE + cluster)


def test_four_servers_on_four_hosts_share_one_bucket() -> None:
    with server_folder(None) as folder, hosts(4) as all_hosts, ExitStack() as stack:
        paths = [node_of(host, all_hosts, folder) for host in all_hosts]
        servers = []
        for host, started in zip(all_hosts, all_four(paths), strict=True):
            servers.append(host.call(started.__enter__))
            stack.push(started)
        if os.geteuid() == 0:
            spaces = {Path(f"/proc/{s.process.pid}/ns/net").readlink() for s in servers}
            assert len(spaces) == 4
        for host, server in zip(all_hosts, servers, strict=True):
            host.call(server.get, "/web?other")  # The first check starts the exchange.
        time.sleep(2)
        pairs = zip(all_hosts, servers, strict=True)
        loads = [host.call(Load, server, "/web?one") for host, server in pairs]
        time.sleep(SECONDS)
        seen = [load.stop() for load in loads]
        assert len(list((folder / "tables").iterdir())) == 4
    assert all(set(each.statuses) == {200, 429} for each in seen)
    assert [each.lost for each in seen] == [0] * 4
    times = sorted(at for each in seen for at in each.allowed_at)
    exact = NODE_BURST + RATE * (times[-1] - times[0])
    assert len(times) == pytest.approx(exact, rel=0.02)
