"""A client that tries to send requests at a constant rate.

``python client.py '{"url": ..., "rate": ..., "start": ..., "seconds": ..., "busy": ...}'`` prints JSON:
for every second since the start, how many requests it tried to send, how many got 200, 503 or failed,
and how many its throttle did not send. ``busy`` has the options of a BusyThrottle, or null for none.
Requests that are more than LATE seconds behind schedule are left out.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import urllib3

from dthrottle.busy import BusyThrottle, ServiceBusy
from dthrottle.busy.urllib3 import BusyPoolManager

THREADS = 8
LATE = 0.3


def main(task: dict[str, Any]) -> None:
    """Send the requests, and print the counts."""
    rate, start, seconds = task["rate"], task["start"], task["seconds"]
    kinds = ("wanted", "good", "busy", "not_sent", "failed")
    counts = {kind: [0] * seconds for kind in kinds}
    http: urllib3.PoolManager = urllib3.PoolManager(maxsize=THREADS)
    if task["busy"] is not None:
        http = BusyPoolManager(BusyThrottle(**task["busy"]), maxsize=THREADS)

    def send(second: int) -> None:
        try:
            response = http.request("GET", task["url"], retries=False, timeout=10)
            kind = "good" if response.status == 200 else "busy"
        except ServiceBusy:
            kind = "not_sent"
        except urllib3.exceptions.HTTPError:
            kind = "failed"
        # Not locked: a lost count does not matter.
        counts[kind][second] += 1

    with ThreadPoolExecutor(THREADS) as threads:
        for i in range(int(seconds * rate)):
            late = time.time() - start - i / rate
            if late < 0:
                time.sleep(-late)
            elif late > LATE:
                continue
            second = int(time.time() - start)
            if second < seconds:
                counts["wanted"][second] += 1
                threads.submit(send, second)
    print(json.dumps(counts))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
