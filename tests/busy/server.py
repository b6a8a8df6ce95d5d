"""Servers that answer 503 above their capacity.

``python server.py 4`` starts four servers, prints their ports as JSON, and runs until it is killed.
``GET /capacity/N`` sets the requests per second of a server; its burst is the capacity of a fifth of
a second. Busy responses to ``GET /pause`` have a Retry-After of one second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time


class Service:
    """One server, with the units that are left of its capacity."""

    def __init__(self) -> None:
        self.capacity = 120.0
        self.units = 24.0
        self.at = time.monotonic()

    def take_unit(self) -> bool:
        """Take one unit; return false if there is none."""
        now = time.monotonic()
        units = self.units + (now - self.at) * self.capacity
        self.units, self.at = min(units, self.capacity / 5), now
        if self.units < 1:
            return False
        self.units -= 1
        return True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1]
                status = b"200 OK"
                pause = b"Retry-After: 1\r\n" if path == b"/pause" else b""
                if path.startswith(b"/capacity/"):
                    self.capacity = float(path.removeprefix(b"/capacity/"))
                elif not self.take_unit():
                    status = b"503 Service Unavailable"
                status += b"\r\n" + (pause if status.startswith(b"503") else b"")
                writer.write(b"HTTP/1.1 " + status + b"Content-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def main(count: int) -> None:
    """Run the servers."""
    servers = [
        await asyncio.start_server(Service().serve, "127.0.0.1", 0, backlog=512)
        for _ in range(count)
    ]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
