"""Throws garbage, recordings, and recordings with a bit changed at every node, until it is ended.

python attack.py PORT ADDRESS ...: runs where it can see what all nodes send. Prints how many
datagrams it has thrown of each kind, every second.
"""

from __future__ import annotations

import random
import socket
import sys
import time

ETH_P_ALL = 3
# Recordings that are kept: enough to be seconds old.
KEPT = 5000
# So many of each kind for each node, a hundred times a second.
EACH = 2
# What is before the payload of a UDP datagram over IPv4 in an Ethernet frame.
HEADERS = 14 + 20 + 8


def record(tap: socket.socket, port: int, frames: list[tuple[str, bytes]]) -> None:
    """Take what was sent to the port of any node, with the device on which it was seen."""
    wanted = port.to_bytes(2, "big")
    while True:
        try:
            frame, (device, _, kind, *_rest) = tap.recvfrom(2000)
        except BlockingIOError:
            return
        if kind == socket.PACKET_OUTGOING and frame[23:24] == b"\x11" and frame[36:38] == wanted:
            if len(frames) < KEPT:
                frames.append((device, frame))
            else:
                frames[random.randrange(KEPT)] = (device, frame)


def main(port: int, addresses: list[str]) -> None:
    """Throw."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setblocking(False)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    frames: list[tuple[str, bytes]] = []
    thrown = {"garbage": 0, "again": 0, "elsewhere": 0, "changed": 0}
    for number in range(sys.maxsize):
        record(tap, port, frames)
        for address in addresses:
            for _ in range(EACH):
                stranger.sendto(random.randbytes(random.randrange(1400)), (address, port))
                thrown["garbage"] += 1
                if not frames:
                    continue
                # The same from the same to the same; to any other from here; changed.
                device, frame = random.choice(frames)
                tap.sendto(frame, (device, 0))
                payload = bytearray(random.choice(frames)[1][HEADERS:])
                stranger.sendto(payload, (address, port))
                payload[random.randrange(len(payload))] ^= 1 << random.randrange(8)
                stranger.sendto(payload, (address, port))
                for kind in ("again", "elsewhere", "changed"):
                    thrown[kind] += 1
        if number % 100 == 0:
            print(*thrown.values(), flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
