"""Throws garbage, recordings, and recordings with a bit changed at every node, until it is ended.

python attack.py PORT OWN ADDRESS ...: runs where it can see what all nodes send.
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


def record(tap: socket.socket, port: int, own: bytes, frames: list[tuple[str, bytes]]) -> None:
    """Take what nodes sent to the port of any node, with the device on which it was seen."""
    wanted = b"\x11", port.to_bytes(2, "big")
    while True:
        try:
            frame, (device, _, kind, *_rest) = tap.recvfrom(2000)
        except BlockingIOError:
            return
        if kind != socket.PACKET_OUTGOING or (frame[23:24], frame[36:38]) != wanted:
            continue
        if frame[26:30] != own:
            if len(frames) < KEPT:
                frames.append((device, frame))
            else:
                frames[random.randrange(KEPT)] = (device, frame)


def main(port: int, own: str, addresses: list[str]) -> None:
    """Throw."""
    packed = socket.inet_aton(own)
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setblocking(False)
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    frames: list[tuple[str, bytes]] = []
    while True:
        record(tap, port, packed, frames)
        for address in addresses:
            for _ in range(EACH):
                stranger.sendto(random.randbytes(random.randrange(1400)), (address, port))
                if not frames:
                    continue
                # The same from the same to the same; to any other from here; changed.
                device, frame = random.choice(frames)
                tap.sendto(frame, (device, 0))
                payload = bytearray(random.choice(frames)[1][HEADERS:])
                stranger.sendto(payload, (address, port))
                payload[random.randrange(len(payload))] ^= 1 << random.randrange(8)
                stranger.sendto(payload, (address, port))
        time.sleep(0.01)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
