"""Runs nginx with the module. Completes configurations from the lines of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server import MODULES, NOBODY, Server, free_port, running, server_folder

WORKERS = "3"
# As root, nginx starts workers of another user. The tests also run it as an ordinary user.
RIGHTS = ["root", "nobody"] if os.geteuid() == 0 else ["self"]

CONFIG = """
load_module {folder}/ngx_http_dthrottle_module.so;
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
{main}
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {table}
    {http}
    server {{
        listen 127.0.0.1:{port};
        root {folder}/html;
        add_header X-Process $pid always;
        add_header X-Status $dthrottle_status always;
        add_header X-Remaining $dthrottle_remaining always;
        add_header Retry-After $dthrottle_retry_after always;
        location = /free {{ rewrite ^ /index.html break; dthrottle off; }}
        {server}
    }}
}}
"""


def location(path: str, *lines: str) -> str:
    """Return a location that serves the page and has these lines."""
    return f"location {path} {{ rewrite ^ /index.html break; {' '.join(lines)} }}\n"


def write(
    folder: Path,
    port: int,
    http: str,
    server: str,
    main: str = "",
    table: str = "dthrottle_table test size=1000 dir={folder}/tables;",
    workers: str = WORKERS,
) -> list[str]:
    """Write a configuration, and return the command that uses it."""
    shutil.copy(MODULES / "nginx" / "ngx_http_dthrottle_module.so", folder)
    path = folder / "nginx.conf"
    table = table.format(folder=folder)
    path.write_text(CONFIG.format(**locals()))
    return command(folder, path)


def command(folder: Path, path: Path) -> list[str]:
    """Return the command that uses a configuration."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return [program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(path)]


@contextmanager
def nginx(http: str, server: str, *, rights: str = "self", **options: str) -> Iterator[Server]:
    """Run nginx until the end of the block."""
    user = NOBODY if rights == "nobody" else None
    with server_folder(user) as folder:
        port = free_port()
        with running(write(folder, port, http, server, **options), folder, port, user) as started:
            yield started


def check_config(http: str, server: str, **options: str) -> tuple[int, str, list[Path]]:
    """Check a configuration. Return the exit status, the output, and the tables that exist."""
    with server_folder(None) as folder:
        done = test(folder, write(folder, free_port(), http, server, **options))
        said = done.stderr.replace(str(folder), "FOLDER")
        return done.returncode, said, list((folder / "tables").iterdir())


def test(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `nginx -t`."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    return subprocess.run([*command, "-t"], capture_output=True, text=True, env=environment)
