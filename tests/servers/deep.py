"""Long tests: both servers under valgrind, and their memory after a million requests.

Run by `make test-servers-deep`, not with the other tests.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import apache
import nginx
import pytest
from server import Load, Server, free_port, running, server_folder, wait_in_delay

VALGRIND = ["valgrind", "--show-leak-kinds=definite", "--num-callers=30"]
REQUESTS = 1_000_000
NGINX_HTTP = """
dthrottle_zone $arg_key zone=many rate=1000000r/s;
dthrottle_zone "$arg_key" zone=few rate=1r/s;
"""
NGINX_USES = (
    nginx.location("/many", "dthrottle zone=many burst=1000000 nodelay;")
    + nginx.location("/few", "dthrottle zone=few burst=1;")
    + nginx.location("/both", "dthrottle zone=few burst=1;", "dthrottle zone=many;")
)
ON = ["DThrottle On", "DThrottleTag %{QUERY_STRING}"]
APACHE_LINES = (
    "DThrottleRule many 1000000/s\nDThrottleRule few 1/s burst=2\n"
    + apache.location("/many", *ON, "DThrottleDomain many")
    + apache.location("/few", *ON, "DThrottleDomain few", "DThrottleMaxDelay 1s")
    + apache.location("/both", *ON, "DThrottleDomain few", "DThrottleHeaders On")
)


def nginx_single_process(folder: Path, port: int) -> list[str]:
    return nginx.write(folder, port, NGINX_HTTP, NGINX_USES, main="master_process off;")


def apache_single_process(folder: Path, port: int) -> list[str]:
    return [*apache.write(folder, port, APACHE_LINES, mpm="worker"), "-X"]


def request_all_locations(server: Server) -> None:
    Load(server, "/many?key=a", 200).join()
    Load(server, "/both?key=b", 50).join()
    Load(server, "/few?key=c", 30).join()
    for number in range(5):
        waiting = wait_in_delay(server, f"/few?key=d{number}")
        if waiting:
            waiting.close()


# Children of Apache exit without closing the throttle, because other threads may still use it.
@pytest.mark.parametrize(
    ("make_command", "leaks"), [(nginx_single_process, "full"), (apache_single_process, "no")]
)
def test_valgrind_finds_no_error_in_the_modules(
    make_command: Callable[[Path, int], list[str]], leaks: str
) -> None:
    with server_folder(None) as folder:
        port, log = free_port(), folder / "valgrind.log"
        log.touch()
        folder.chmod(0o777)
        command = [
            *VALGRIND,
            f"--leak-check={leaks}",
            f"--log-file={log}",
            *make_command(folder, port),
        ]
        with running(command, folder, port, end=signal.SIGTERM) as server:
            request_all_locations(server)
        text = log.read_text()
    assert "ERROR SUMMARY" in text, text
    # An error or leak is a paragraph. Those without dthrottle belong to the server.
    paragraphs = re.split(r"^==\d+== $", text, flags=re.MULTILINE)
    ours = [each for each in paragraphs if "dthrottle" in each and " at 0x" in each]
    assert ours == [], "\n".join(ours)


def resident(process: int) -> int:
    """Return the private memory of a process in KB, without the table."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", text)
    assert found
    return int(found[1])


def send_requests(server: Server, requests: int) -> None:
    """Send this number of requests with one of a thousand keys each."""
    script = server.folder / "keys.lua"
    script.write_text(
        'request = function() return wrk.format("GET", "/many?key=" .. math.random(1000)) end\n'
    )
    done = 0
    while done < requests:
        command = ["wrk", "-t2", "-c8", "-d5s", "-s", str(script)]
        text = subprocess.run(
            [*command, f"http://127.0.0.1:{server.port}"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert "Non-2xx" not in text, text
        found = re.search(r"(\d+) requests in", text)
        assert found
        done += int(found[1])


@pytest.mark.parametrize("kind", ["nginx", "apache"])
def test_memory_does_not_grow_during_a_million_requests(kind: str) -> None:
    if kind == "nginx":
        started = nginx.nginx(NGINX_HTTP, NGINX_USES, workers="1")
    else:
        started = apache.apache(APACHE_LINES + "StartServers 1\nMaxSpareThreads 10\n")
    with started as server:
        send_requests(server, REQUESTS // 5)
        before = {child: resident(child) for child in server.children()}
        send_requests(server, REQUESTS)
        for child, memory in before.items():
            after = resident(child)
            print(f"{kind}: {memory} KB, {after} KB after {REQUESTS} requests")
            assert after < memory + 512
