"""Encodes and decodes the bodies of datagrams, following docs/protocol.md.

A `Body` has the form of the bodies in protocol.json. `write` encodes it without checks.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import Any

from wire_keys import Dropped

Body = dict[str, Any]
Ranges = list[list[int]]


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def origin(of: Body) -> bytes:
    return struct.pack(">QQ", of["node"], of["incarnation"])


def ranges(of: Ranges) -> bytes:
    parts = [varint(first) + varint(last - first) for first, last in of]
    return varint(len(of)) + b"".join(parts)


def entry(fingerprint: int, value: int) -> bytes:
    return fingerprint.to_bytes(8, "big")[:7] + varint(value)


def report(body: Body) -> bytes:
    out = origin(body["origin"]) if body["origin"] else b""
    span = body["last"] - body["first"]
    out += struct.pack(">QLB", body["first"], span, len(body["sections"]))
    for section in body["sections"]:
        out += struct.pack(">QH", section["rule"], len(section["entries"]))
        out += varint(section["quantum"]) + varint(section["age_us"])
        for fingerprint, hits, saturated in section["entries"]:
            out += entry(fingerprint, hits << 1 | saturated)
    return out.ljust(1184 if body["padded"] else 0, b"\0")


def gap(body: Body) -> bytes:
    parts = [origin(each) + ranges(each["ranges"]) for each in body["origins"]]
    return varint(len(parts)) + b"".join(parts)


def digest(body: Body) -> bytes:
    parts = [origin(each) + varint(each["top"]) for each in body["origins"]]
    return varint(len(parts)) + b"".join(parts)


def hello(body: Body) -> bytes:
    out = struct.pack(">QQ", body["challenge"], body["echo"])
    out += varint(body["top"]) + struct.pack(">Q", body["rules"])
    ip, port = body["address"].rsplit(":", 1)
    parsed = ip_address(ip.strip("[]"))
    out += bytes([parsed.version]) + parsed.packed + struct.pack(">H", int(port))
    return out + varint(body["slack_us"]) + varint(body["slack_age_us"])


def snapshot(body: Body) -> bytes:
    out = struct.pack(">HH", body["part"], body["parts"]) + varint(len(body["windows"]))
    for window in body["windows"]:
        out += origin(window) + varint(window["top"]) + ranges(window["missing"])
    out += bytes([len(body["sections"])])
    for section in body["sections"]:
        out += struct.pack(">QH", section["rule"], len(section["entries"]))
        out += b"".join(entry(*each) for each in section["entries"])
    return out


def payload(body: Body) -> bytes:
    """Encode a payload of busy responses."""
    out = varint(body["number"]) + varint(body["age_us"]) + varint(len(body["entries"]))
    for each in body["entries"]:
        out += struct.pack(">QB", each["service"], each["answers"])
        out += varint(each["age_us"]) + varint(each["pause_us"])
    return out


def write(kind: str, body: Body) -> bytes:
    match kind:
        case "report":
            return report(body)
        case "gap" | "gone":
            return gap(body)
        case "digest":
            return digest(body)
        case "hello":
            return hello(body)
        case "snapshot":
            return snapshot(body)
        case "payload":
            return payload(body)
        case "swim":
            return bytes.fromhex(body["bytes_hex"])
    return b""


class Reader:
    """Reads fields from the front of a body. Raises `Dropped` if the body is malformed."""

    def __init__(self, body: bytes) -> None:
        self.rest = body

    def take(self, count: int) -> bytes:
        self.need(count <= len(self.rest))
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def need(self, condition: bool) -> None:
        if not condition:
            raise Dropped("malformed")

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def varint(self) -> int:
        taken = self.take(1)
        while taken[-1] & 0x80:
            taken += self.take(1)
        value = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(taken))
        self.need(value < 2**64 and taken == varint(value))
        return value

    def origin(self) -> Body:
        return {"node": self.number(8), "incarnation": self.number(8)}

    def ranges(self, top: int = 2**64 - 1) -> Ranges:
        out: Ranges = []
        for _ in range(self.read_count(2)):
            first = self.varint()
            out.append([first, first + self.varint()])
            before = out[-2][1] if len(out) > 1 else -1
            self.need(first > before + 1 and out[-1][1] <= top)
        return out

    def read_count(self, min_size: int) -> int:
        count = self.varint()
        self.need(count * min_size <= len(self.rest))
        return count

    def entry(self) -> tuple[int, int]:
        return self.number(7) << 8, self.varint()

    def address(self) -> str:
        version = self.number(1)
        self.need(version in (4, 6))
        ip = ip_address(self.take(4 if version == 4 else 16))
        return (f"{ip}" if version == 4 else f"[{ip}]") + f":{self.number(2)}"

    def report_section(self) -> Body:
        rule, count = self.number(8), self.number(2)
        quantum, age_us = self.varint(), self.varint()
        self.need(1 <= quantum <= 2**40 and age_us <= 2**40)
        entries = [self.entry() for _ in range(count)]
        self.need(all(1 <= value >> 1 < 2**32 for _, value in entries))
        listed = [[fingerprint, value >> 1, bool(value & 1)] for fingerprint, value in entries]
        return {"rule": rule, "quantum": quantum, "age_us": age_us, "entries": listed}

    def snapshot_section(self) -> Body:
        rule, count = self.number(8), self.number(2)
        entries = [list(self.entry()) for _ in range(count)]
        self.need(all(used <= 2**60 for _, used in entries))
        return {"rule": rule, "entries": entries}

    def busy_entry(self) -> Body:
        head = {"service": self.number(8), "answers": self.number(1)}
        entry = {**head, "age_us": self.varint(), "pause_us": self.varint()}
        self.need(entry["answers"] >= 1 and max(entry["age_us"], entry["pause_us"]) <= 2**40)
        return entry

    def window(self) -> Body:
        of, top = self.origin(), self.varint()
        return {**of, "top": top, "missing": self.ranges(top)}


def read(kind: str, flags: int, body: bytes) -> Body:
    """Decode a body. Bytes after its fields are ignored; `padded` is true if they are padding."""
    reader = Reader(body)
    match kind:
        case "report":
            of = reader.origin() if flags & 1 else None
            first = reader.number(8)
            last = first + reader.number(4)
            reader.need(first >= 1 and last < 2**64)
            sections = [reader.report_section() for _ in range(reader.number(1))]
            padded = len(body) == 1184 and not any(reader.rest)
            return {
                "origin": of, "first": first, "last": last, "padded": padded, "sections": sections
            }  # fmt: skip
        case "gap" | "gone":
            items = range(reader.read_count(17))
            return {"origins": [{**reader.origin(), "ranges": reader.ranges()} for _ in items]}
        case "digest":
            items = range(reader.read_count(17))
            return {"origins": [{**reader.origin(), "top": reader.varint()} for _ in items]}
        case "hello":
            head = {"challenge": reader.number(8), "echo": reader.number(8)}
            head = {**head, "top": reader.varint(), "rules": reader.number(8)}
            address = reader.address()
            slack = (reader.varint(), reader.varint()) if reader.rest else (0, 0)
            head = {**head, "slack_us": slack[0], "slack_age_us": slack[1]}
            return {**head, "address": address}
        case "snapshot":
            part, parts = reader.number(2), reader.number(2)
            reader.need(part < parts)
            windows = [reader.window() for _ in range(reader.read_count(18))]
            sections = [reader.snapshot_section() for _ in range(reader.number(1))]
            return {"part": part, "parts": parts, "windows": windows, "sections": sections}
        case "payload":
            number, age_us = reader.varint(), reader.varint()
            entries = [reader.busy_entry() for _ in range(reader.read_count(11))]
            reader.need(number >= 1 and age_us <= 2**40)
            return {"number": number, "age_us": age_us, "entries": entries}
        case "swim":
            return {"bytes_hex": body.hex()}
    return {}
