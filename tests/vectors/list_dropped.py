"""Datagrams for protocol.json that are dropped, with the cause. Each has one error."""

from __future__ import annotations

import struct

from list_protocol import (
    KEYS,
    MOST,
    NODE,
    OTHER,
    Entry,
    entries,
    fingerprint,
    report,
    section,
    service,
)  # fmt: skip
from wire_bodies import origin, read, varint, write
from wire_keys import KINDS, Dropped, Envelope, seal, unseal

HELLO = write("hello", {
    "challenge": 1, "echo": 2, "top": 3, "rules": 4, "slack_us": 5, "slack_age_us": 6,
    "address": "192.0.2.7:7373",
})  # fmt: skip
GAP = {"origins": [{**NODE, "ranges": [[1, 1], [3, 300]]}]}
SNAPSHOT = {
    "part": 0, "parts": 1, "windows": [{**NODE, "top": 9, "missing": [[2, 3]]}],
    "sections": [{"rule": 1, "entries": [[fingerprint(1), 5]]}],
}  # fmt: skip
BUSY = write("payload", {"number": 1, "age_us": 0, "entries": [service(1)]})
TEN = b"\xff" * 9 + b"\x01"  # the varint of 2^64 - 1, in ten bytes


def envelope(kind: str = "hello", flags: int = 0) -> Envelope:
    return Envelope(KINDS.index(kind) + 1, flags, NODE["node"], NODE["incarnation"], 2000)


def changed(datagram: bytes, at: int, by: int = 1) -> bytes:
    changed = bytearray(datagram)
    changed[at] ^= by
    return bytes(changed)


def outside() -> list[tuple[str, str, str, bytes]]:
    """Return the cause, name, keys of the reader, and datagram of each wrong envelope."""
    shared = KEYS["shared"]
    good = seal(shared, envelope(), HELLO)
    other_version, other_magic = envelope(), envelope()
    other_version.version, other_magic.magic = 2, b"dt"
    unknown, none = envelope(), envelope()
    unknown.kind, none.kind = 11, 0
    return [
        ("short", "empty", "shared", b""),
        ("short", "only an envelope", "shared", good[:32]),
        ("short", "one byte less than envelope and tag", "shared", good[:31] + good[-16:]),
        ("long", "one byte too long", "shared", good.ljust(1233, b"\0")),
        ("magic", "another magic", "shared", seal(shared, other_magic, HELLO)),
        ("version", "another version", "shared", seal(shared, other_version, HELLO)),
        ("cluster", "another cluster", "shared", seal(KEYS["binary"], envelope(), HELLO)),
        ("key", "another secret", "other secret", good),
        ("key", "a packet key that the reader does not have", "last month's", seal(KEYS["rotating"], envelope(), HELLO)),
        ("key", "sealed, but the reader expects no sealing", "unsealed", good),
        ("auth", "changed kind", "shared", changed(good, 3)),
        ("auth", "changed flag", "shared", changed(good, 4)),
        ("auth", "changed sender", "shared", changed(good, 15)),
        ("auth", "changed incarnation", "shared", changed(good, 16, 0x80)),
        ("auth", "changed packet number", "shared", changed(good, 31)),
        ("auth", "changed body", "shared", changed(good, 32)),
        ("auth", "changed tag", "shared", changed(good, -1)),
        ("auth", "the last byte is missing", "shared", good[:-1]),
        ("auth", "not sealed, but the tag is not zero", "unsealed", changed(seal(KEYS["unsealed"], envelope(), HELLO), -1)),
        ("kind", "kind 0", "shared", seal(shared, none, HELLO)),
        ("kind", "kind 11", "shared", seal(shared, unknown, HELLO)),
    ]  # fmt: skip


def bodies() -> list[tuple[str, str, int, bytes]]:
    """Return the name, kind, flags and bytes of each malformed body."""
    one = report(section(entries(1)))
    head = struct.pack(">QLB", 1, 0, 1) + struct.pack(">QH", 7, 1)

    def entry(quantum: bytes = b"\1", age: bytes = b"\0", value: bytes = b"\2") -> bytes:
        return head + quantum + age + bytes(7) + value

    return [
        ("report: empty", "report", 0, b""),
        ("report: number 0", "report", 0, write("report", report(first=0, last=0))),
        ("report: a number above 2^64 - 1", "report", 0, struct.pack(">QLB", MOST, 1, 0)),
        ("report: relayed, but without an origin", "report", 1, struct.pack(">QLB", 1, 0, 0)),
        ("report: a section is missing", "report", 0, struct.pack(">QLB", 1, 0, 1)),
        ("report: an entry is missing", "report", 0, write("report", one)[:-8]),
        ("report: a fingerprint is cut off", "report", 0, write("report", one)[:-2]),
        ("report: 65535 entries are missing", "report", 0, struct.pack(">QLBQH", 1, 0, 1, 7, 65535) + b"\1\0"),
        ("report: quantum 0", "report", 0, entry(quantum=b"\0")),
        ("report: quantum too great", "report", 0, entry(quantum=varint(2**40 + 1))),
        ("report: age too great", "report", 0, entry(age=varint(2**40 + 1))),
        ("report: an entry with 0 hits", "report", 0, entry(value=b"\0")),
        ("report: a saturated entry with 0 hits", "report", 0, entry(value=b"\1")),
        ("report: too many hits", "report", 0, entry(value=varint(2**33))),
        ("varint: an age not in its shortest form", "report", 0, entry(age=b"\x80\0")),
        ("varint: hits not in their shortest form", "report", 0, entry(value=b"\x82\0")),
        ("varint: does not end", "report", 0, entry(value=b"\x82")),
        ("varint: eleven bytes", "hello", 0, bytes(16) + b"\x80" * 10 + b"\1" + HELLO[17:]),
        ("varint: more than 64 bits", "hello", 0, bytes(16) + b"\xff" * 9 + b"\2" + HELLO[17:]),
        ("gap: empty", "gap", 0, b""),
        ("gap: 2^64 - 1 origins", "gap", 0, TEN + bytes(100)),
        ("gap: the second origin is missing", "gap", 0, b"\2" + write("gap", GAP)[1:]),
        ("gap: more ranges than bytes", "gap", 0, b"\1" + origin(NODE) + TEN + b"\1\0" * 3),
        ("gap: number 0", "gap", 0, b"\1" + origin(NODE) + b"\1\0\0"),
        ("gap: ranges that touch", "gap", 0, b"\1" + origin(NODE) + b"\2\1\1\3\0"),
        ("gap: ranges that overlap", "gap", 0, b"\1" + origin(NODE) + b"\2\1\4\3\0"),
        ("gap: ranges out of order", "gap", 0, b"\1" + origin(NODE) + b"\2\5\0\1\0"),
        ("gap: a number above 2^64 - 1", "gap", 0, b"\1" + origin(NODE) + b"\1" + TEN + b"\1"),
        ("gap: a range after the number 2^64 - 1", "gap", 0, b"\1" + origin(NODE) + b"\2" + TEN + b"\0\1\0"),
        ("gone: cut off", "gone", 0, write("gone", GAP)[:-1]),
        ("digest: empty", "digest", 0, b""),
        ("digest: the second origin is missing", "digest", 0, b"\2" + origin(NODE) + b"\5"),
        ("digest: cut off", "digest", 0, b"\1" + origin(OTHER)),
        ("hello: empty", "hello", 0, b""),
        ("hello: cut off", "hello", 0, HELLO[:-1]),
        ("hello: neither IPv4 nor IPv6", "hello", 0, HELLO[:-9] + b"\5" + HELLO[-8:]),
        ("hello: IPv6, cut off", "hello", 0, HELLO[:-9] + b"\6" + bytes(17)),
        ("payload: empty", "payload", 0, b""),
        ("payload: number 0", "payload", 0, b"\0" + BUSY[1:]),
        ("payload: without an age", "payload", 0, b"\1"),
        ("payload: age too great", "payload", 0, b"\1" + varint(2**40 + 1) + BUSY[2:]),
        ("busy: 2^64 - 1 services", "payload", 0, b"\1\0" + TEN + bytes(100)),
        ("busy: the second service is missing", "payload", 0, b"\1\0\2" + BUSY[3:]),
        ("busy: cut off", "payload", 0, BUSY[:-1]),
        ("busy: a service with 0 responses", "payload", 0, BUSY[:11] + b"\0" + BUSY[12:]),
        ("busy: age too great", "payload", 0, BUSY[:12] + varint(2**40 + 1) + b"\0"),
        ("busy: pause too long", "payload", 0, BUSY[:-1] + varint(2**40 + 1)),
        ("busy: a pause not in its shortest form", "payload", 0, BUSY[:-1] + b"\x80\0"),
        ("snapshot: empty", "snapshot", 0, b""),
        ("snapshot: part 0 of 0", "snapshot", 0, bytes(4) + write("snapshot", SNAPSHOT)[4:]),
        ("snapshot: part 2 of 2", "snapshot", 0, b"\0\2\0\2" + write("snapshot", SNAPSHOT)[4:]),
        ("snapshot: 2^64 - 1 windows", "snapshot", 0, b"\0\0\0\1" + TEN + bytes(100)),
        ("snapshot: missing numbers above the top", "snapshot", 0, b"\0\0\0\1\1" + origin(NODE) + b"\5\1\5\1\0"),
        ("snapshot: without the number of sections", "snapshot", 0, b"\0\0\0\1\0"),
        ("snapshot: cut off", "snapshot", 0, write("snapshot", SNAPSHOT)[:-1]),
        ("snapshot: a use above 2^60", "snapshot", 0, write("snapshot", SNAPSHOT)[:-1] + varint(2**60 + 1)),
    ]  # fmt: skip


def dropped() -> list[Entry]:
    list_ = outside()
    for name, kind, flags, body in bodies():
        datagram = seal(KEYS["shared"], envelope(kind, flags), body)
        list_.append(("malformed", name, "shared", datagram))
    for cause, name, keys, datagram in list_:
        assert why(keys, datagram) == cause, f"{name}: {why(keys, datagram)}, not {cause}"
    return [
        {"name": name, "keys": keys, "cause": cause, "hex": datagram.hex()}
        for cause, name, keys, datagram in list_
    ]


def why(keys: str, datagram: bytes) -> str | None:
    """Return the cause that the model gives, or None."""
    try:
        envelope, body = unseal(KEYS[keys], datagram)
        read(KINDS[envelope.kind - 1], envelope.flags, body)
    except Dropped as cause:
        return str(cause)
    return None
