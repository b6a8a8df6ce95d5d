"""The servers that are compared, each with its own configuration and one static file."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

# Whether this is a short run, which only checks that the benchmark works.
SMALL = bool(os.environ.get("BENCH_SMALL"))
REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = REPOSITORY / "target" / "modules"
APACHE = Path("/usr/lib/apache2/modules")

# No request is refused, because a refusal takes a cheaper code path.
RATE = 1_000_000
BURST = 1_000_000

NGINX = """
{load}
daemon off;
master_process {master};
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
user {user};
events {{ worker_connections 512; }}
http {{
    access_log off;
    keepalive_requests 100000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {zone}
    server {{
        listen 127.0.0.1:{port};
        root {folder};
        {use}
    }}
}}
"""

APACHE_CONFIG = """
ServerRoot {folder}
ServerName bench
PidFile {folder}/pid
Listen 127.0.0.1:{port}
LoadModule mpm_prefork_module {apache}/mod_mpm_prefork.so
LoadModule authz_core_module {apache}/mod_authz_core.so
{load}
User nobody
Group nogroup
ErrorLog {folder}/error.log
Mutex file:{folder} default
DefaultRuntimeDir {folder}
DocumentRoot {folder}
KeepAlive On
MaxKeepAliveRequests 0
StartServers 1
MaxRequestWorkers 1
MinSpareServers 1
MaxSpareServers 1
{log}
{use}
"""
LOG = "%h %l %u %t %>s %b"


@dataclass(frozen=True)
class Kind:
    """A server, with or without a limiter."""

    server: str
    limiter: str
    keys: int = 1
    # For nginx: `nodelay` or `delay`. The rate is so high that no request is delayed.
    mode: str = "nodelay"
    # For Apache: whether there is an access log, which shows decisions.
    logs: bool = False

    def command(
        self,
        folder: Path,
        port: int,
        *,
        single_process: bool,
        zone: str = "z:32m",
        rate: str = f"{RATE}r/s",
    ) -> list[str]:
        """Write the configuration; return the command that starts the server."""
        (folder / "file.txt").write_text("x" * 1000 + "\n")
        path = folder / "server.conf"
        if self.server == "nginx":
            path.write_text(
                self._nginx(folder, port, "off" if single_process else "on", zone, rate)
            )
            program = shutil.which("nginx") or "/usr/sbin/nginx"
            return [program, "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(path)]
        path.write_text(self._apache(folder, port))
        program = shutil.which("apache2") or "/usr/sbin/apache2"
        return [program, "-f", str(path), "-X" if single_process else "-DFOREGROUND"]

    def _nginx(self, folder: Path, port: int, master: str, name: str, rate: str) -> str:
        load = zone = use = ""
        burst = BURST if rate.endswith("/s") else 0
        mode = self.mode.removeprefix("delay")
        key = "$arg_k" if self.keys > 1 else "$binary_remote_addr"
        if self.limiter == "limit_req":
            # limit_req has no rates below one per minute.
            zone = f"limit_req_zone {key} zone={name} rate={rate.replace('/d', '/m')};"
            use = f"limit_req zone=z burst={burst} {mode};".replace("burst=0", "")
        elif self.limiter == "ours":
            load = f"load_module {MODULES}/nginx/ngx_http_dthrottle_module.so;"
            zone = (
                f"dthrottle_table bench dir={folder};dthrottle_zone {key} zone={name} rate={rate};"
            )
            use = f"dthrottle zone=z burst={burst} {mode};"
        user = "nobody nogroup" if os.geteuid() == 0 else ""
        text = NGINX.format(**locals())
        return text if user else text.replace("user ;", "")

    def _apache(self, folder: Path, port: int) -> str:
        load = use = log = ""
        apache = APACHE
        if self.logs:
            seen = " %{dthrottle-decision}n %{dthrottle-remaining}n %{dthrottle-delay}n"
            log = f'CustomLog {folder}/access.log "{LOG}{seen if self.limiter == "ours" else ""}"'
        if self.limiter == "ours":
            load = f"LoadModule dthrottle_module {MODULES}/apache/.libs/mod_dthrottle.so"
            use = (
                f"DThrottleTable bench dir={folder}\nDThrottle On\n"
                f"DThrottleRule default {RATE}/s burst={BURST}"
            )
        elif self.limiter == "mod_qos":
            # Debian does not link mod_qos with the library of its regular expressions.
            load = f"LoadFile libpcre.so.3\nLoadModule qos_module {APACHE}/mod_qos.so"
            use = f"QS_LocRequestPerSecLimit / {RATE}\nQS_ClientEntries 100000"
        elif self.limiter == "mod_evasive":
            load = f"LoadModule evasive20_module {APACHE}/mod_evasive20.so"
            use = f"DOSHashTableSize 3097\nDOSPageCount {BURST}\nDOSSiteCount {BURST}"
        text = APACHE_CONFIG.format(**locals())
        return text if os.geteuid() == 0 else text.replace("User nobody\nGroup nogroup\n", "")
