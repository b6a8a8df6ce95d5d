"""Runs Apache with the module. Completes configurations from the lines of a test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server import MODULES, NOBODY, Server, free_port, running, server_folder

MPMS = ["prefork", "worker", "event"]
LIBRARY = Path("/usr/lib/apache2/modules")
NEEDED = ["authz_core", "headers", "remoteip", "setenvif", "alias", "dir"]

CONFIG = """
ServerRoot {folder}
ServerName test
PidFile {folder}/apache.pid
Listen 127.0.0.1:{port}
{loads}
{user}
ErrorLog {folder}/error.log
LogLevel notice
Mutex file:{folder} default
DefaultRuntimeDir {folder}
DocumentRoot {folder}/html
RemoteIPHeader X-Client
RemoteIPInternalProxy 127.0.0.1
StartServers 3
<IfModule mpm_prefork_module>
    MaxRequestWorkers 20
    MinSpareServers 3
</IfModule>
<IfModule !mpm_prefork_module>
    ThreadsPerChild 10
    MaxRequestWorkers 60
    MinSpareThreads 20
    MaxSpareThreads 60
</IfModule>
{names}
{table}
{lines}
<Location /free>
    DThrottle Off
</Location>
AliasMatch ^/ {folder}/html/index.html
"""

# Directives that name the variables of the module.
NAMES = """
LogFormat "%P %>s %U %{DTHROTTLE_DECISION}e %{dthrottle-remaining}n %{dthrottle-delay}n" seen
CustomLog {folder}/access.log seen
Header always set X-Status "%{DTHROTTLE_DECISION}e" "expr=-n env('DTHROTTLE_DECISION')"
Header always set X-Remaining "%{DTHROTTLE_REMAINING}e" "expr=-n env('DTHROTTLE_REMAINING')"
"""


def location(path: str, *lines: str) -> str:
    """Return a location with these lines."""
    body = "\n    ".join(lines)
    return f"<Location {path}>\n    {body}\n</Location>\n"


def write(
    folder: Path,
    port: int,
    lines: str,
    mpm: str = "event",
    table: str = "DThrottleTable test size=1000 dir={folder}/tables",
    user: str | None = None,
    names: str = NAMES,
) -> list[str]:
    """Write a configuration, and return the command that uses it."""
    shutil.copy(MODULES / "apache" / ".libs" / "mod_dthrottle.so", folder)
    named = [*NEEDED, f"mpm_{mpm}"]
    loads = "\n".join(f"LoadModule {name}_module {LIBRARY}/mod_{name}.so" for name in named)
    loads += f"\nLoadModule dthrottle_module {folder}/mod_dthrottle.so"
    table = table.format(folder=folder)
    names = names.replace("{folder}", str(folder))
    if user is None:
        user = "User nobody\nGroup nogroup" if os.geteuid() == 0 else ""
    path = folder / "apache.conf"
    path.write_text(CONFIG.format(**locals()))
    return [shutil.which("apache2") or "/usr/sbin/apache2", "-f", str(path)]


@contextmanager
def apache(lines: str, *, rights: str = "self", **options: str) -> Iterator[Server]:
    """Run Apache until the end of the block."""
    user = NOBODY if rights == "nobody" else None
    with server_folder(user) as folder:
        port = free_port()
        command = [*write(folder, port, lines, **options), "-DFOREGROUND"]
        with running(command, folder, port, user, signal.SIGTERM) as started:
            yield started


def check_config(lines: str, **options: str) -> tuple[int, str, list[Path]]:
    """Check a configuration. Return the exit status, the output, and the tables that exist."""
    with server_folder(None) as folder:
        command = write(folder, free_port(), lines, **options)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        done = subprocess.run([*command, "-t"], capture_output=True, text=True, env=environment)
        said = done.stderr.replace(str(folder), "FOLDER")
        return done.returncode, said, list((folder / "tables").iterdir())


def answered(server: Server, path: str) -> Counter[str]:
    """Count the responses for a path by process, as the access log shows them."""
    lines = (server.folder / "access.log").read_text().splitlines()
    return Counter(line.split()[0] for line in lines if line.split()[2] == path)
