"""nginx with the module: whole configurations from the lines that matter."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server import MODULES, NOBODY, Server, folder_for, free_port, running

WORKERS = "3"
# Root starts workers that are somebody else, and others are what they are.
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
    """Give a location that serves the one file, with these lines in it."""
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
    """Write a configuration, and give the command that uses it."""
    shutil.copy(MODULES / "nginx" / "ngx_http_dthrottle_module.so", folder)
    path = folder / "nginx.conf"
    table = table.format(folder=folder)
    path.write_text(CONFIG.format(**locals()))
    return command(folder, path)


def command(folder: Path, path: Path) -> list[str]:
    """Give the command that uses a configuration."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return [program, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(path)]


@contextmanager
def nginx(http: str, server: str, *, rights: str = "self", **options: str) -> Iterator[Server]:
    """Run nginx until the end of the block."""
    user = NOBODY if rights == "nobody" else None
    with folder_for(user) as folder:
        port = free_port()
        with running(write(folder, port, http, server, **options), folder, port, user) as started:
            yield started


def checked(http: str, server: str, **options: str) -> tuple[int, str, list[Path]]:
    """Test a configuration: status, what is said, and tables that were opened."""
    with folder_for(None) as folder:
        done = test(folder, write(folder, free_port(), http, server, **options))
        said = done.stderr.replace(str(folder), "FOLDER")
        return done.returncode, said, list((folder / "tables").iterdir())


def test(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the test that nginx has for configurations."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    return subprocess.run([*command, "-t"], capture_output=True, text=True, env=environment)
