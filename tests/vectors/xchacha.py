"""XChaCha20-Poly1305 in plain Python, following RFC 8439 and draft-irtf-cfrg-xchacha-03.

It is slow.
"""

from __future__ import annotations

import struct

MASK = 0xFFFF_FFFF
CONSTANTS = struct.unpack("<4L", b"expand 32-byte k")
# Each quarter round mixes four words. The first line has the columns, the second the diagonals.
QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & MASK


def rounds(words: list[int]) -> list[int]:
    x = list(words)
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            for to, add, turn, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[to] = (x[to] + x[add]) & MASK
                x[turn] = rotate(x[turn] ^ x[to], bits)
    return x


def block(key: bytes, counter: int, nonce: bytes) -> bytes:
    words = [*CONSTANTS, *struct.unpack("<8L", key), counter, *struct.unpack("<3L", nonce)]
    mixed = zip(rounds(words), words, strict=True)
    return struct.pack("<16L", *((after + before) & MASK for after, before in mixed))


def hchacha(key: bytes, nonce: bytes) -> bytes:
    words = rounds([*CONSTANTS, *struct.unpack("<8L", key), *struct.unpack("<4L", nonce)])
    return struct.pack("<8L", *words[:4], *words[12:])


def encrypt(key: bytes, nonce: bytes, text: bytes) -> bytes:
    blocks = range(1, len(text) // 64 + 2)
    stream = b"".join(block(key, counter, nonce) for counter in blocks)
    return bytes(a ^ b for a, b in zip(text, stream, strict=False))


def poly1305(key: bytes, message: bytes) -> bytes:
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC_0FFFFFFC_0FFFFFFC_0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total += int.from_bytes(message[at : at + 16] + b"\1", "little")
        total = total * r % (2**130 - 5)
    return ((total + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 16)


def tag(key: bytes, nonce: bytes, additional: bytes, sealed: bytes) -> bytes:
    lengths = struct.pack("<2Q", len(additional), len(sealed))
    return poly1305(block(key, 0, nonce)[:32], padded(additional) + padded(sealed) + lengths)


def inner(key: bytes, nonce: bytes) -> tuple[bytes, bytes]:
    """Derive the key and the nonce of ChaCha20 from those of XChaCha20."""
    return hchacha(key, nonce[:16]), bytes(4) + nonce[16:]


def seal(key: bytes, nonce: bytes, additional: bytes, text: bytes) -> bytes:
    """Return the sealed text and its tag, which also authenticates `additional`."""
    key, nonce = inner(key, nonce)
    sealed = encrypt(key, nonce, text)
    return sealed + tag(key, nonce, additional, sealed)


def unseal(key: bytes, nonce: bytes, additional: bytes, sealed: bytes) -> bytes | None:
    """Return the text, or None if the tag does not match."""
    key, nonce = inner(key, nonce)
    text, end = sealed[:-16], sealed[-16:]
    return encrypt(key, nonce, text) if tag(key, nonce, additional, text) == end else None
