"""A client that wants to send so many requests a second, whatever is answered.

``python client.py '{"url": ..., "rate": ..., "start": ..., "seconds": ..., "busy": ...}'`` prints for
every second since the start how many it wanted to send, how many were answered 200, 503, or failed,
and how many it held back, as JSON. ``busy`` are the options of a BusyThrottle; null: it has none.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import httpx

from dthrottle.busy import BusyThrottle, ServiceBusy
from dthrottle.busy.httpx import AsyncBusyTransport


async def main(task: dict[str, Any]) -> None:
    """Send, and count."""
    seconds: int = task["seconds"]
    kinds = ("wanted", "good", "busy", "held", "failed")
    counts = {kind: [0] * seconds for kind in kinds}
    transport: httpx.AsyncBaseTransport = httpx.AsyncHTTPTransport(
        limits=httpx.Limits(max_connections=50, max_keepalive_connections=50)
    )
    if task["busy"] is not None:
        transport = AsyncBusyTransport(BusyThrottle(**task["busy"]), transport=transport)
    client = httpx.AsyncClient(transport=transport, timeout=10)

    async def send(second: int) -> None:
        try:
            response = await client.get(task["url"])
            kind = "good" if response.status_code == 200 else "busy"
        except ServiceBusy:
            kind = "held"
        except httpx.HTTPError:
            kind = "failed"
        counts[kind][second] += 1

    tasks = set()
    await asyncio.sleep(task["start"] - time.time())
    for i in range(int(seconds * task["rate"])):
        due = task["start"] + i / task["rate"]
        await asyncio.sleep(max(0.0, due - time.time()))
        second = int(i / task["rate"])
        counts["wanted"][second] += 1
        request = asyncio.create_task(send(second))
        tasks.add(request)
        request.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    await client.aclose()
    print(json.dumps(counts))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
