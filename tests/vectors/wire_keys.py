"""The keys of a cluster and the envelope of a datagram, following docs/protocol.md."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

import xchacha

KINDS = [
    "report", "gap", "gone", "digest", "snapshot_request", "snapshot", "swim", "hello", "leave",
    "payload",
]  # fmt: skip
SALT = b"dthrottle 1"


class Dropped(Exception):
    """The datagram is dropped. The text is the cause."""


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt, secret, "sha256")


def expand(prk: bytes, info: bytes, length: int) -> bytes:
    out = last = b""
    for number in range(1, -(-length // 32) + 1):
        last = hmac.digest(prk, last + info + bytes([number]), "sha256")
        out += last
    return out[:length]


def derive(secret: bytes, purpose: str, cluster: str, length: int) -> bytes:
    return expand(extract(SALT, secret), f"{purpose}\0{cluster}".encode(), length)


@dataclass
class Keys:
    """The keys in a node's configuration. If `sealed` is false, datagrams are not encrypted."""

    name: str
    cluster: str
    secret: bytes = b""
    packet_keys: tuple[bytes, ...] = ()
    sealed: bool = True

    def fingerprint_key(self) -> bytes:
        return derive(self.secret, "fingerprint", self.cluster, 16)

    def cluster_id(self) -> bytes:
        return hashlib.sha256(self.cluster.encode()).digest()[:2]

    def keys(self) -> list[bytes]:
        if self.packet_keys:
            return [derive(key, "packet key", self.cluster, 32) for key in self.packet_keys]
        return [derive(self.secret, "packet", self.cluster, 32)]

    def key_id(self, which: int = 0) -> int:
        return derive(self.keys()[which], "key id", "", 1)[0] if self.sealed else 0


@dataclass
class Envelope:
    """The fields of an envelope that a node chooses."""

    kind: int
    flags: int
    node: int
    incarnation: int
    packet: int
    version: int = 1
    magic: bytes = b"dT"

    def pack(self, key_id: int, cluster_id: bytes) -> bytes:
        head = struct.pack(">BBBB", self.version, self.kind, self.flags, key_id)
        return self.magic + head + cluster_id + self.nonce()

    def nonce(self) -> bytes:
        return struct.pack(">QQQ", self.node, self.incarnation, self.packet)


def seal(keys: Keys, envelope: Envelope, body: bytes, which: int = 0) -> bytes:
    head = envelope.pack(keys.key_id(which), keys.cluster_id())
    if not keys.sealed:
        return head + body + bytes(16)
    return head + xchacha.seal(keys.keys()[which], envelope.nonce(), head, body)


def unseal(keys: Keys, datagram: bytes) -> tuple[Envelope, bytes]:
    head, sealed = datagram[:32], datagram[32:]
    if len(datagram) < 48:
        raise Dropped("short")
    if len(datagram) > 1232:
        raise Dropped("long")
    if head[:2] != b"dT":
        raise Dropped("magic")
    if head[2] != 1:
        raise Dropped("version")
    if head[6:8] != keys.cluster_id():
        raise Dropped("cluster")
    which = [n for n in range(len(keys.keys())) if keys.key_id(n) == head[5]]
    if not which:
        raise Dropped("key")
    if keys.sealed:
        bodies = [xchacha.unseal(keys.keys()[n], head[8:], head, sealed) for n in which]
        body = next((body for body in bodies if body is not None), None)
    else:
        body = sealed[:-16] if sealed[-16:] == bytes(16) else None
    if body is None:
        raise Dropped("auth")
    if not 1 <= head[3] <= len(KINDS):
        raise Dropped("kind")
    return Envelope(head[3], head[4], *struct.unpack(">QQQ", head[8:])), body
