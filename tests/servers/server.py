"""Runs a web server in its own folder, and sends requests to it."""

from __future__ import annotations

import http.client
import itertools
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = REPOSITORY / "target" / "modules"
NOBODY = 65534
SECONDS = 60
THREADS = 8

Result = TypeVar("Result")
Item = TypeVar("Item")


@dataclass
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    seconds: float


@dataclass
class LoadResult:
    """The responses to all requests of a load."""

    statuses: Counter[int] = field(default_factory=Counter)
    processes: Counter[str] = field(default_factory=Counter)
    allowed_at: list[float] = field(default_factory=list)
    answered_at: list[float] = field(default_factory=list)
    broken: int = 0
    """Requests whose connection was lost."""
    hung: int = 0
    """Requests without a response."""

    def rate(self) -> float:
        """Return the allowed requests per second: the slope of their number over time."""
        times = sorted(self.allowed_at)
        return statistics.linear_regression(times, range(len(times))).slope

    @property
    def lost(self) -> int:
        """Return the number of requests without a response."""
        return self.broken + self.hung

    def longest_silence(self) -> float:
        """Return the longest time without any response."""
        times = sorted(self.answered_at)
        return max(after - before for before, after in itertools.pairwise(times))


@dataclass
class Server:
    """A running server."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    def get(self, path: str, **headers: str) -> Answer:
        """Send a request on its own connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            begun = time.monotonic()
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", path, headers={"Connection": "close", **named})
            response = connection.getresponse()
            response.read()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, fields, time.monotonic() - begun)
        finally:
            connection.close()

    def statuses(self, path: str, count: int, **headers: str) -> list[int]:
        """Send requests one after another, and return their status codes."""
        return [self.get(path, **headers).status for _ in range(count)]

    def children(self) -> list[int]:
        """Return the processes that serve requests."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(child) for child in path.read_text().split()]

    def log(self) -> str:
        """Return the error log."""
        return (self.folder / "error.log").read_text()


class Load:
    """Requests one path from several threads, a number of times or until it is stopped."""

    def __init__(self, server: Server, path: str, requests: int | None = None) -> None:
        self.seen = LoadResult()
        self._server, self._path, self._left = server, path, requests
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> LoadResult:
        """Stop, and return the responses."""
        self._stop.set()
        return self.join()

    def join(self) -> LoadResult:
        """Wait for the last response."""
        for thread in self._threads:
            thread.join()
        return self.seen

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                if self._left == 0:
                    return
                if self._left is not None:
                    self._left -= 1
            self._ask()

    def _ask(self) -> None:
        try:
            answer = self._server.get(self._path)
        except TimeoutError:
            with self._lock:
                self.seen.hung += 1
            return
        except (OSError, http.client.HTTPException):
            with self._lock:
                self.seen.broken += 1
            return
        now = time.monotonic()
        with self._lock:
            self.seen.answered_at.append(now)
            self.seen.statuses[answer.status] += 1
            self.seen.processes[answer.headers.get("x-process", "")] += 1
            if answer.status == 200:
                self.seen.allowed_at.append(now)


def run_in_parallel(run: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call a function that mostly waits for all items at the same time."""
    listed = list(items)
    with ThreadPoolExecutor(len(listed)) as threads:
        return list(threads.map(run, listed))


def send_at_once(server: Server, path: str, count: int, since: float | None = None) -> list[Answer]:
    """Send requests at the same time, and return the responses in the order of their arrival.

    All times are measured from the same moment, because threads start late on a busy machine.
    """
    begin = time.monotonic() if since is None else since

    def ask(_: int) -> Answer:
        answer = server.get(path)
        return replace(answer, seconds=time.monotonic() - begin)

    with ThreadPoolExecutor(count) as threads:
        answers = list(threads.map(ask, range(count)))
    return sorted(answers, key=lambda answer: answer.seconds)


def retry_with_keys(check: Callable[[str], None]) -> None:
    """Run a check that depends on the clock until it succeeds once, each time with another key.

    A stall of the machine breaks one attempt. A defect breaks all of them.
    """
    for attempt in range(4):
        with suppress(AssertionError):
            return check(f"attempt{attempt}")
    return check("last")


def wait_in_delay(server: Server, path: str) -> socket.socket | None:
    """Send a request, and return the connection if the request is being delayed."""
    client = socket.create_connection(("127.0.0.1", server.port))
    client.settimeout(0.7)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    try:
        client.recv(100)
    except TimeoutError:
        return client
    client.close()
    return None


def wait_until(what: str, done: Callable[[], Result | None]) -> Result:
    """Wait until a function returns a true value, and return it."""
    end = time.monotonic() + SECONDS
    while not (given := done()):
        assert time.monotonic() < end, f"not within {SECONDS} s: {what}"
        time.sleep(0.02)
    return given


def open_files(process: int) -> set[str]:
    """Return the targets of the open file descriptors of a process."""
    found = set()
    with suppress(FileNotFoundError):
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(str(link.readlink()))
    return found


def free_port() -> int:
    """Return a port that is probably free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def server_folder(user: int | None) -> Iterator[Path]:
    """Create a folder of a user with the library for the modules and a page to serve."""
    folder = Path(tempfile.mkdtemp(prefix="dthrottle-servers-"))
    try:
        folder.chmod(0o755)
        shutil.copy(MODULES / "lib" / "libdthrottle.so.0", folder)
        (folder / "html").mkdir()
        (folder / "html" / "index.html").write_text("hello\n")
        (folder / "tables").mkdir()
        (folder / "tables").chmod(0o777)
        if user is not None:
            os.chown(folder, user, -1)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def running(
    command: list[str],
    folder: Path,
    port: int,
    user: int | None = None,
    end: signal.Signals = signal.SIGQUIT,
) -> Iterator[Server]:
    """Run a server as a user, by default the current one, until the end of the block."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    groups: list[int] | None = None if user is None else []
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        user=user,
        group=user,
        extra_groups=groups,
        # Apache sends signals to its whole process group.
        start_new_session=True,
    )
    server = Server(folder, port, process)

    def answers() -> bool:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        try:
            return server.get("/free").status == 200
        except OSError:
            return False

    try:
        wait_until("the server answers", answers)
        yield server
    finally:
        process.send_signal(end)
        try:
            code = process.wait(SECONDS)
            # Apache in one process (-X) may not have set its handler of SIGTERM yet.
            assert code == 0 or ("-X" in command and code == -signal.SIGTERM), code
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
