"""A node that checks a tag at a constant rate. hammer.js, hammer.c and core/examples/node.rs are equal.

`python hammer.py CONFIG`, with the configuration as JSON, prints `ready` when the node has started.
Then it executes the commands on its standard input, one per line:

- run START RATE MS TAG: from START on, checks the tag RATE times per second for MS milliseconds.
  Prints a row `TENTH CHECKS ADMITTED BALANCE` for each tenth of a second, then `done`. Times are
  milliseconds since 1970.
- balance TAG: prints the balance of the tag's bucket.
- fork: forks a child that does nothing, and prints its process id.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from dthrottle import Throttle

TENTH = 100


def run(throttle: Throttle, start: int, rate: int, ms: int, tag: str) -> None:
    """Check the tag at a constant rate."""
    tenth, checks, admitted = start // TENTH, 0, 0
    end, number = start + ms, 0
    while True:
        due = min(start + number * 1000 / rate, end)
        while (now := time.time() * 1000) < due:
            time.sleep((due - now) / 1000)
        while tenth < min(now, end) // TENTH:
            print(tenth, checks, admitted, throttle.peek(tag).balance, flush=True)
            tenth, checks, admitted = tenth + 1, 0, 0
        if now >= end:
            break
        number += 1
        checks += 1
        admitted += throttle.allow(tag)
    print("done", flush=True)


def fork() -> int:
    """Fork a child that inherits all file descriptors and sleeps."""
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    return child


def main() -> None:
    """Execute the commands."""
    # Let the system reap the children.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    throttle = Throttle(**json.loads(sys.argv[1]))
    throttle.allow("hello")
    print("ready", flush=True)
    for line in sys.stdin:
        match line.split():
            case ["run", start, rate, ms, tag]:
                run(throttle, int(start), int(rate), int(ms), tag)
            case ["balance", tag]:
                print(throttle.peek(tag).balance, flush=True)
            case ["fork"]:
                print(fork(), flush=True)
            case _:
                raise ValueError(line)


if __name__ == "__main__":
    main()
