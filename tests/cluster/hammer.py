"""A node that is asked at an even pace; hammer.js, hammer.c and core/examples/node.rs do the same.

python hammer.py CONFIG, the configuration as JSON, prints `ready` when the node has begun. Then it
does what each line of its input says:

- run START RATE MS TAG: from a time of day on, asks RATE times a second for so many milliseconds.
  Prints a row for each tenth of a second that has passed, `TENTH ASKED ADMITTED BALANCE`, then
  `done`. All times are milliseconds since 1970.
- balance TAG: prints what the tag's bucket holds.
- fork: leaves a child that does nothing, and prints its number.
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
    """Ask at an even pace."""
    tenth, asked, admitted = start // TENTH, 0, 0
    end, number = start + ms, 0
    while True:
        due = min(start + number * 1000 / rate, end)
        while (now := time.time() * 1000) < due:
            time.sleep((due - now) / 1000)
        while tenth < min(now, end) // TENTH:
            print(tenth, asked, admitted, throttle.peek(tag).balance, flush=True)
            tenth, asked, admitted = tenth + 1, 0, 0
        if now >= end:
            break
        number += 1
        asked += 1
        admitted += throttle.allow(tag)
    print("done", flush=True)


def fork() -> int:
    """Leave a child that has everything this process has."""
    child = os.fork()
    if child == 0:
        while True:
            signal.pause()
    return child


def main() -> None:
    """Do what the input says."""
    # Nobody shall have to wait for the children.
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
