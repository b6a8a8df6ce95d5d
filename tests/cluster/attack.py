"""Sends random bytes, recorded datagrams, and recorded datagrams with one changed bit to every node.

python attack.py PORT OWN ADDRESS ... runs until it is killed, on a host that sees all datagrams.
"""

from __future__ import annotations

import random
import socket
import sys
import time

ETH_P_ALL = 3
# The number of recorded frames to keep, enough that some are seconds old.
MAX_FRAMES = 5000
# The datagrams of each kind for each node, a hundred times per second.
DATAGRAMS_PER_NODE = 2
# The headers before the payload: Ethernet, IPv4, UDP.
HEADERS = 14 + 20 + 8


def record(tap: socket.socket, port: int, own: bytes, frames: list[tuple[str, bytes]]) -> None:
    """Record datagrams to the port of a node, with the device on which they were seen."""
    wanted = b"\x11", port.to_bytes(2, "big")
    while True:
        try:
            frame, (device, _, kind, *_rest) = tap.recvfrom(2000)
        except BlockingIOError:
            return
        if kind != socket.PACKET_OUTGOING or (frame[23:24], frame[36:38]) != wanted:
            continue
        if frame[26:30] != own:
            if len(frames) < MAX_FRAMES:
                frames.append((device, frame))
            else:
                frames[random.randrange(MAX_FRAMES)] = (device, frame)


def main(port: int, own: str, addresses: list[str]) -> None:
    """Attack until this process is killed."""
    packed = socket.inet_aton(own)
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setblocking(False)
    outsider = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    frames: list[tuple[str, bytes]] = []
    while True:
        record(tap, port, packed, frames)
        for address in addresses:
            for _ in range(DATAGRAMS_PER_NODE):
                outsider.sendto(random.randbytes(random.randrange(1400)), (address, port))
                if not frames:
                    continue
                # Replay a frame unchanged, replay its payload from here, and change one bit of it.
                device, frame = random.choice(frames)
                tap.sendto(frame, (device, 0))
                payload = bytearray(random.choice(frames)[1][HEADERS:])
                outsider.sendto(payload, (address, port))
                payload[random.randrange(len(payload))] ^= 1 << random.randrange(8)
                outsider.sendto(payload, (address, port))
        time.sleep(0.01)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
