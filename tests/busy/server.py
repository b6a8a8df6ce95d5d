"""Servers that say 503 above a capacity of their own, one for each port that is asked for.

``python server.py 4`` prints the ports as JSON and serves until it is ended. Each lets through so many
requests a second as ``GET /capacity/N`` last said, with room for a fifth of a second. To ``GET /pause``
its busy answers have a Retry-After of one second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time


class Service:
    """One server, and how much it can still do."""

    def __init__(self) -> None:
        self.capacity = 120.0
        self.room = 24.0
        self.at = time.monotonic()

    def serves(self) -> bool:
        """Whether there is room for one more."""
        now = time.monotonic()
        room = self.room + (now - self.at) * self.capacity
        self.room, self.at = min(room, self.capacity / 5), now
        if self.room < 1:
            return False
        self.room -= 1
        return True

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1]
                status = b"200 OK"
                pause = b"Retry-After: 1\r\n" if path == b"/pause" else b""
                if path.startswith(b"/capacity/"):
                    self.capacity = float(path.removeprefix(b"/capacity/"))
                elif not self.serves():
                    status = b"503 Service Unavailable"
                fields = pause if status.startswith(b"503") else b""
                writer.write(b"HTTP/1.1 " + status + b"\r\n" + fields + b"Content-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def main(count: int) -> None:
    """Serve until the end."""
    servers = [
        await asyncio.start_server(Service().talk, "127.0.0.1", 0, backlog=512)
        for _ in range(count)
    ]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
