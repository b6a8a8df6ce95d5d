"""One node that calls services, controlled by test_nodes.py through its standard input.

``python node.py '{"busy": ..., "throttle": ...}'``: the options of its BusyThrottle, and of an
additional Throttle or null. Every line of input is a list of a command and a URL. Every answer is a
line of JSON.
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
    """Run the commands of the standard input."""
    exchanger = Throttle(**task["throttle"]) if task["throttle"] else None
    throttle = BusyThrottle(**task["busy"])
    if exchanger:
        exchanger.start()
    throttle.start()
    http = BusyPoolManager(throttle)

    def send(url: str) -> int:
        try:
            return http.request("GET", url, retries=False, timeout=10).status
        except ServiceBusy:
            return 0

    for line in sys.stdin:
        command, url = json.loads(line)
        answer: object
        if command == "send":
            answer = send(url)
        elif command == "limit":
            answer = throttle.limit(urlsplit(url).netloc)
        else:
            stats = throttle.stats()
            answer = {"peers": stats.peers, "remote_busy": stats.remote_busy, "busy": stats.busy}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
