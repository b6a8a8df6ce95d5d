"""One node that calls services, told line by line what to do: see test_nodes.py.

``python node.py '{"busy": ..., "throttle": ...}'``: the options of its BusyThrottle, and of a
Throttle beside it or null. Every line of input is a list of a word and a URL; every answer is a line
of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import urlsplit

from dthrottle import Throttle
from dthrottle.busy import BusyThrottle, ServiceBusy
from dthrottle.busy.urllib3 import BusyPoolManager


def main(task: dict[str, Any]) -> None:
    """Do what is asked for, one line after the other."""
    beside = Throttle(**task["throttle"]) if task["throttle"] else None
    throttle = BusyThrottle(**task["busy"])
    if beside:
        beside.start()
    throttle.start()
    http = BusyPoolManager(throttle)

    def send(url: str) -> int:
        try:
            return http.request("GET", url, retries=False, timeout=10).status
        except ServiceBusy:
            return 0

    for line in sys.stdin:
        word, url = json.loads(line)
        answer: object
        if word == "send":
            answer = send(url)
        elif word == "limit":
            answer = throttle.limit(urlsplit(url).netloc)
        else:
            stats = throttle.stats()
            answer = {"peers": stats.peers, "remote_busy": stats.remote_busy, "busy": stats.busy}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
