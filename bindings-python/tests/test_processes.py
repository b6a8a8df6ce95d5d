"""Threads and forks."""

from __future__ import annotations

import subprocess
import sys
import threading

from dthrottle import Throttle

THREADS = 8


def test_threads_take_exactly_the_burst() -> None:
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


FORK = """
import os, threading
from dthrottle import Throttle

throttle = Throttle("1/100 years", burst=100)
assert throttle.allow("t", 40)

stop = threading.Event()
def busy():
    while not stop.is_set():
        throttle.allow("other")
thread = threading.Thread(target=busy)
thread.start()

for _ in range(20):
    child = os.fork()
    if child == 0:
        # The child has a copy of the buckets, as they were.
        fine = throttle.allow("t", 60) and not throttle.allow("t") and throttle.stats().allowed > 0
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
stop.set()
thread.join()
assert throttle.peek("t").remaining == 60
"""


def test_forked_child_goes_on() -> None:
    # In a process of its own, because this one may have threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK]
    done = subprocess.run(command, timeout=60, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
