"""Threads and child processes that share a throttle."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dthrottle import Throttle

THREADS = 8


def test_concurrent_threads_are_allowed_exactly_the_burst() -> None:
    throttle = Throttle("1/100 years", burst=1000)
    domain = throttle.domain("default")
    start = threading.Barrier(THREADS)
    taken = [0] * THREADS

    def take(mine: int) -> None:
        start.wait()
        for index in range(500):
            handle = (throttle, domain)[index % 2]
            taken[mine] += handle.allow("t") if index % 3 else bool(handle.check("t"))

    threads = [threading.Thread(target=take, args=(mine,)) for mine in range(THREADS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert sum(taken) == 1000
    assert throttle.stats().refused == THREADS * 500 - 1000


def run(script: str, *arguments: str) -> None:
    """Run a script in a new process, because this one may have threads."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments]
    done = subprocess.run(command, timeout=120, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


FORK = """
import os, sys
from dthrottle import Throttle

CHILDREN, BURST, TAGS = 4, 100, 10
table = {"private": True} if "private" in sys.argv else None
throttle = Throttle("1/100 years", burst=BURST, table=table)
pipes = []
for child in range(CHILDREN):
    reader, writer = os.pipe()
    if os.fork() == 0:
        taken = sum(throttle.allow(str(i % TAGS)) for i in range(TAGS * BURST))
        os.write(writer, str(taken).encode())
        os._exit(0)
    os.close(writer)
    pipes.append(reader)
taken = [int(os.read(reader, 100)) for reader in pipes]
for _ in range(CHILDREN):
    assert os.wait()[1] == 0
left = sum(throttle.peek(str(i)).remaining for i in range(TAGS))
expected = (CHILDREN * TAGS * BURST, TAGS * BURST) if table else (TAGS * BURST, 0)
assert (sum(taken), left) == expected, (taken, left)
"""


@pytest.mark.parametrize("table", ["shared", "private"])
def test_forked_children_share_the_buckets(table: str) -> None:
    run(FORK, table)


THREADS_AND_FORK = """
import os, sys, threading
from dthrottle import Throttle

sys.setswitchinterval(1e-6)
throttle = Throttle("1/100 years", burst=1000)
stop = threading.Event()
def busy():
    count = 0
    while not stop.is_set():
        count += 1
        throttle.allow("other")
        throttle.check(str(count))
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()

for _ in range(50):
    child = os.fork()
    if child == 0:
        fine = throttle.allow("t", 10) and throttle.allow("new") and throttle.stats().allowed > 0
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
stop.set()
for thread in threads:
    thread.join()
assert throttle.peek("t").remaining == 500
assert throttle.peek("new").remaining == 950
"""


def test_fork_while_threads_check_leaves_a_working_child() -> None:
    run(THREADS_AND_FORK)


MULTIPROCESSING = """
import multiprocessing
from dthrottle import Throttle

throttle = Throttle("1/100 years", burst=1000)

def take(_):
    return sum(throttle.allow("t") for _ in range(500))

with multiprocessing.get_context("fork").Pool(4) as pool:
    taken = pool.map(take, range(8), chunksize=1)
assert sum(taken) == 1000, taken
assert not throttle.allow("t")
"""


def test_multiprocessing_pool_shares_the_buckets() -> None:
    run(MULTIPROCESSING)


SPAWN = """
import multiprocessing, sys
from dthrottle.wsgi import ThrottleMiddleware

def app(environ, start_response):
    start_response("200 OK", [])
    return []

app = ThrottleMiddleware(app, "1/100 years", burst=100)

def take(_):
    statuses = []
    for _ in range(50):
        app({"REMOTE_ADDR": "203.0.113.7"}, lambda status, headers: statuses.append(status[:3]))
    return statuses.count("200")

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(4) as pool:
        taken = pool.map(take, range(8), chunksize=1)
    assert sum(taken) == 100, taken
    print(sum(taken))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_spawned_processes_share_the_buckets_of_middleware(tmp_path: Path, method: str) -> None:
    folder = tmp_path / f"pool{random.getrandbits(32):08x}"
    folder.mkdir()
    (folder / "pool.py").write_text(SPAWN, "utf-8")
    try:
        command = [sys.executable, "pool.py", method]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        assert (done.stdout, done.returncode) == ("100\n", 0), done.stderr
    finally:
        name = f"dthrottle-{os.getuid()}-{folder.name}-*"
        tables = [*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)]
        for table in tables:
            table.unlink()
    assert len(tables) == 1, "the processes leave one table"


APPLICATION = """
import sys
from wsgiref.util import setup_testing_defaults
from dthrottle.wsgi import ThrottleMiddleware

def hello(environ, start_response):
    start_response("200 OK", [])
    return [b""]

app = ThrottleMiddleware(hello, "2/day", table={"name": "app", "dir": sys.argv[1]})
for _ in range(3):
    environ = {"REMOTE_ADDR": "203.0.113.7"}
    setup_testing_defaults(environ)
    app(environ, lambda status, _fields: print(status[:3]))
"""


def run_application(folder: Path, fresh: str) -> tuple[list[str], list[str]]:
    """Send three requests in a new process. Return their statuses, and the lines of the log."""
    done = subprocess.run(
        [sys.executable, "-c", APPLICATION, folder],
        env={**os.environ, "DTHROTTLE_FRESH_TABLES": fresh},
        timeout=60,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), done.stderr.splitlines()


def test_refusal_caused_by_an_earlier_process_is_logged_once(tmp_path: Path) -> None:
    assert run_application(tmp_path, "0") == (["200", "200", "429"], [])
    statuses, (line,) = run_application(tmp_path, "0")
    assert statuses == ["429"] * 3
    assert 'before this process opened the table "app"' in line


def test_each_process_has_an_empty_table_if_fresh_tables_are_on(tmp_path: Path) -> None:
    run_application(tmp_path, "0")
    for _ in range(2):
        assert run_application(tmp_path, "1") == (["200", "200", "429"], [])
