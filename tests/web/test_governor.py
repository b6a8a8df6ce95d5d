"""Governor in a real WSGI server with four workers, with files as in its specification."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import http_sf
import pytest
from servers import BIN, HERE, SECONDS, Server, free_port, serve, tables

BURST = 100
SLEEP = 0.2

INI = """\
[eom:governor]
rates_file = {folder}/governor.json
project_rates_file = {folder}/governor_project.json
throttle_milliseconds = {milliseconds:.0f}
log_config_file = {folder}/logging.conf
log_config_disable_existing = {disable}

[eom:redis]
host = 192.168.3.11
port = 6379
"""

LOGGING = """\
[loggers]
keys = root

[handlers]
keys = stderr

[formatters]
keys = plain

[logger_root]
level = INFO
handlers = stderr

[handler_stderr]
class = {handler}
args = {arguments}
formatter = plain

[formatter_plain]
format = %(levelname)s %(message)s
"""

# No unit drains during a test.
VELOCITY = 0.0001

RATES = [
    {"name": "burst", "route": "/burst", "limit": BURST, "drain_velocity": VELOCITY},
    {"name": "writes", "route": "/v1/queues(/.*)?", "methods": ["PUT", "POST"], "limit": 2,
     "drain_velocity": VELOCITY},
    {"name": "reads", "route": "/v1/.*", "methods": ["GET"], "limit": 4, "drain_velocity": 0.5},
    {"name": "closed", "route": "/closed", "limit": 0, "drain_velocity": 0},
    {"name": "half", "route": "/half", "limit": 2.5, "drain_velocity": 0},
    {"name": "nobody", "methods": [], "route": "", "limit": 0, "drain_velocity": 0},
]  # fmt: skip
PROJECT_RATES = [
    {"project": "big", "name": "big writes", "route": "/v1/queues/.*", "methods": ["PUT"],
     "limit": 6, "drain_velocity": VELOCITY},
]  # fmt: skip


def write(folder: Path, log: Path | None = None) -> None:
    """Write the application and its files. Logs go to stderr, or to one file."""
    folder.mkdir()
    shutil.copy(HERE / "governor_app.py", folder)
    ini = INI.format(folder=folder, milliseconds=1000 * SLEEP, disable=log is not None)
    handler = ("StreamHandler", "(sys.stderr,)")
    if log is not None:
        handler = ("FileHandler", f"({str(log)!r},)")
    logging = LOGGING.format(handler=handler[0], arguments=handler[1])
    (folder / "eom.conf").write_text(ini, "utf-8")
    (folder / "logging.conf").write_text(logging, "utf-8")
    (folder / "governor.json").write_text(json.dumps(RATES, indent=2), "utf-8")
    (folder / "governor_project.json").write_text(json.dumps(PROJECT_RATES), "utf-8")


def gunicorn(*arguments: str) -> list[str]:
    """Return a command whose stderr is a file."""
    command = ["sh", "-c", 'exec "$@" 2>stderr', "sh", str(BIN / "gunicorn")]
    return [*command, *arguments, "governor_app:application"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder for an application, and remove its tables afterwards."""
    name = f"gov{os.getpid()}-{random.getrandbits(32):08x}"
    made = tmp_path_factory.mktemp("governor") / name
    yield made
    for table in tables(made):
        table.unlink()


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Run one server for all tests. Each test has its own projects."""
    write(folder)
    port = free_port()
    command = gunicorn("--workers", "4", "--bind", f"127.0.0.1:{port}")
    with serve(folder, command, {}, 4, port=port) as made:
        yield made


def lines(server: Server, text: str) -> list[str]:
    """Return the lines of the server's stderr that contain a text."""
    return [line for line in (server.folder / "stderr").read_text().splitlines() if text in line]


def many(server: Server, count: int, path: str, project: str) -> list[Any]:
    """Make requests of one project from eight threads."""
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda _: server.get(path, X_Project_ID=project), range(count)))


def passed(server: Server, count: int, path: str, project: str, method: str = "GET") -> int:
    """Make requests at the same time, and return how many passed."""
    with ThreadPoolExecutor(count) as threads:
        answers = threads.map(
            lambda _: server.get(path, method=method, X_Project_ID=project), range(count)
        )
        statuses = Counter(status for status, _, _ in answers)
    assert statuses[200] + statuses[429] == count
    return statuses[200]


def test_workers_share_a_limit_exactly(server: Server) -> None:
    answers = many(server, BURST + 20, "/burst", "exact")
    assert Counter(status for status, _, _ in answers) == {200: BURST, 429: 20}
    assert len({fields["x-process"] for status, fields, _ in answers if status == 200}) > 1
    assert len(tables(server.folder)) == 1
    # Another project has its own bucket.
    assert server.get("/burst", X_Project_ID="other")[0] == 200
    found = lines(server, "for project exact")
    line = f'WARNING Hit limit of {BURST} per sec. for project exact according to rate rule "burst"'
    assert found == [line] * 20


def test_request_without_a_project_id_gets_400(server: Server) -> None:
    for path in ("/burst", "/nobody/limits/this"):
        status, fields, body = server.get(path)
        assert (status, fields["content-length"], body) == (400, "0", b"")
        assert "x-process" not in fields


def test_empty_project_id_is_counted_as_a_project(server: Server) -> None:
    assert passed(server, 4, "/v1/queues", "", "PUT") == 2
    assert lines(server, "for project  according") != []


def test_limits_of_0_and_fractions_are_exact(server: Server) -> None:
    status, fields, body = server.get("/closed", X_Project_ID="zero")
    assert (status, fields["content-length"], body) == (429, "0", b"")
    assert "retry-after" not in fields
    assert len(lines(server, "Hit limit of 0 per sec. for project zero")) == 1
    assert passed(server, 4, "/half", "zero") == 2
    assert len(lines(server, "Hit limit of 2.5 per sec. for project zero")) == 2
    assert passed(server, 2, "/elsewhere", "zero") == 2, (
        "an empty list of methods matches no request"
    )


def test_log_config_file_configures_logging(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("logs") / f"log{os.getpid()}-{random.getrandbits(32):08x}"
    log = folder / "eom.log"
    write(folder, log)
    port = free_port()
    try:
        with serve(folder, gunicorn("--bind", f"127.0.0.1:{port}"), {}, 1, port=port) as made:
            assert passed(made, 3, "/v1/queues", "logged", "PUT") == 2
            logged = log.read_text().splitlines()
            assert "INFO [eom:redis] is not used any more" in logged[0]
            hit = 'Hit limit of 2 per sec. for project logged according to rate rule "writes"'
            assert logged[1:] == [f"WARNING {hit}"]
            assert lines(made, "Hit limit") == lines(made, "Traceback") == []
    finally:
        for table in tables(folder):
            table.unlink()


def test_rates_of_a_project_precede_general_rates(server: Server) -> None:
    assert passed(server, 8, "/v1/queues/a", "big", "PUT") == 6
    assert passed(server, 4, "/v1/queues/a", "big", "POST") == 2, "its own rate applies to PUT only"
    assert passed(server, 4, "/v1/queues/a", "small", "PUT") == 2


def test_rates_apply_to_their_routes_and_methods_only(server: Server) -> None:
    assert passed(server, 4, "/v1/queues", "match", "POST") == 2
    assert passed(server, 4, "/v1/queues/a?limit=5", "match", "PUT") == 0, (
        "both paths share a bucket"
    )
    for path, method in [("/v1/queuesandmore", "PUT"), ("/v2/v1/queues", "PUT"), ("/v1/a", "HEAD")]:
        assert passed(server, 6, path, "match", method) == 6, "no rate matches"


def test_refusal_sleeps_and_has_an_empty_body(server: Server) -> None:
    status, fields, body = server.get("/v1/a", X_Project_ID="refused")
    assert (status, body) == (200, b"hello")
    for name, expect in [("ratelimit-policy", {"q": 4, "w": 8}), ("ratelimit", {"r": 3, "t": 2})]:
        assert http_sf.parse(fields[name].encode(), tltype="list") == [("reads", expect)]
    passed(server, 8, "/v1/a", "refused")
    begin = time.monotonic()
    status, fields, body = server.get("/v1/a", X_Project_ID="refused")
    assert time.monotonic() - begin >= SLEEP
    assert (status, fields["content-length"], body) == (429, "0", b"")
    assert int(fields["retry-after"]) >= 2
    assert "content-type" not in fields


def test_control_characters_of_a_project_id_are_escaped_in_the_log(server: Server) -> None:
    # Some programs treat these characters as ends of lines, and the server accepts them.
    sent = "evil\u0085\u2028ERROR Hit limit".encode().decode("latin-1")
    statuses = [server.get("/v1/queues", method="PUT", X_Project_ID=sent)[0] for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    found = lines(server, "evil")
    assert len(found) == 2
    for line in found:
        assert "for project evil\\x85\\u2028ERROR Hit limit according" in line


def test_each_worker_logs_which_processes_share_the_counts(server: Server) -> None:
    found = lines(server, "[eom:redis] is not used any more")
    assert len(found) == 4, "one line per worker"
    (table,) = tables(server.folder)
    assert table.name.endswith(found[0].partition(" table ")[2].partition(";")[0])
    assert lines(server, "Traceback") == []


def test_wrong_file_stops_the_server_with_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    write(folder)
    file = folder / "governor.json"
    file.write_text(file.read_text().replace('"limit": 2,', '"limit": "2",'), "utf-8")
    command = gunicorn("--bind", f"127.0.0.1:{free_port()}")
    done = subprocess.run(command, cwd=folder, timeout=SECONDS)
    assert done.returncode != 0
    message = f"{file}: line 15: rate 2 ('writes'): `limit` must be a number from 0 to 1099511627776, got '2'"
    assert message in (folder / "stderr").read_text()
