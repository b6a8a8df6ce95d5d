"""Datagrams for protocol.json, with their content. list_dropped.py has those that are dropped."""

from __future__ import annotations

from wire_bodies import Body, read, write
from wire_keys import KINDS, Envelope, Keys, seal, unseal

Entry = dict[str, object]

ALL_KEYS = [
    Keys("shared", "web", b"correct horse battery staple"),
    Keys("rotating", "web", b"correct horse battery staple", (b"key of May", b"key of April")),
    Keys("last month's", "web", b"correct horse battery staple", (b"key of April",)),
    Keys("other secret", "web", b"correct horse battery stapler"),
    Keys("binary", "Größe 日本", bytes(range(256))),
    Keys("open", "web"),
    Keys("unsealed", "web", sealed=False),
]
KEYS = {keys.name: keys for keys in ALL_KEYS}

NODE = {"node": 0x0102_0304_0506_0708, "incarnation": 0x0199_A2B3_C4D5_E6F7}
OTHER = {"node": 2**64 - 1, "incarnation": 1}
RULE = 0xA2A2_EC50_0D5E_9027
MOST = 2**64 - 1


def fingerprint(number: int) -> int:
    """Return a fingerprint. Its low byte is zero."""
    return number * 0x9E37_79B9_7F4A_7C15 % 2**64 & ~0xFF


def entries(count: int) -> list[list[object]]:
    return [[fingerprint(n), 1 + n % 63, n % 5 == 0] for n in range(count)]


def section(entries: list[list[object]], **other: int) -> Body:
    return {"rule": RULE, "quantum": 1, "age_us": 100_000, **other, "entries": entries}


def report(*sections: Body, first: int = 1, last: int = 1, **other: object) -> Body:
    head = {"origin": None, "first": first, "last": last, "padded": False}
    return {**head, **other, "sections": list(sections)}


def service(number: int, **other: int) -> Body:
    """Return the busy responses of a service, with all 64 bits of its fingerprint."""
    name = number * 0x9E37_79B9_7F4A_7C15 % 2**64
    return {"service": name, "answers": 1, "age_us": 5_000, "pause_us": 0, **other}


# Name, keys, kind, flags, body.
Case = tuple[str, str, str, int, Body]

REPORTS: list[Case] = [
    ("one hit", "shared", "report", 0, report(section([[fingerprint(1), 1, False]]))),
    ("no sections, so that no report number is missing", "shared", "report", 0, report(first=7, last=7)),
    ("numbers of hits of all encoded lengths", "shared", "report", 0, report(
        section([[fingerprint(n), hits, n % 2 == 0] for n, hits in enumerate(
            (1, 63, 64, 8191, 8192, 2**20 - 1, 2**20, 2**27, 2**32 - 1))]),
        first=300, last=300)),
    ("several rules and ages, one rule twice", "shared", "report", 0, report(
        section(entries(3)), section(entries(2), age_us=0), section(entries(1), rule=0),
        section(entries(3)), first=2**32, last=2**32)),
    ("coarse quanta and the greatest age", "shared", "report", 0, report(
        section(entries(2), quantum=1000), section(entries(2), quantum=2**40, age_us=2**40))),
    ("a repair that combines five reports", "shared", "report", 0, report(
        section(entries(4)), first=5, last=9)),
    ("the greatest numbers and the longest span", "shared", "report", 0, report(
        first=2**64 - 2**32, last=MOST)),
    ("relayed for another origin", "shared", "report", 1, report(
        section(entries(2)), origin=OTHER, first=3, last=4)),
    ("padded", "shared", "report", 0, report(section(entries(100)), padded=True)),
    ("as many entries as fit", "shared", "report", 0, report(section(entries(142)), padded=True)),
    ("as many entries as fit, relayed", "shared", "report", 1, report(
        section(entries(142)), padded=True, origin=OTHER)),
]  # fmt: skip

OTHERS: list[Case] = [
    ("gap in two origins", "shared", "gap", 0, {"origins": [
        {**NODE, "ranges": [[1, 1], [3, 300], [302, 302]]}, {**OTHER, "ranges": [[MOST, MOST]]}]}),
    ("no gaps", "shared", "gap", 0, {"origins": []}),
    ("reports that are gone", "shared", "gone", 0, {"origins": [{**OTHER, "ranges": [[1, 2**40]]}]}),
    ("digest", "shared", "digest", 0, {"origins": [
        {**NODE, "top": 0}, {**OTHER, "top": 300}, {"node": 5, "incarnation": 6, "top": MOST}]}),
    ("answer to a digest", "shared", "digest", 1, {"origins": [{**NODE, "top": 127}]}),
    ("longest digest", "shared", "digest", 0, {"origins": [
        {"node": n, "incarnation": 2**63 + n, "top": n} for n in range(69)]}),
    ("request for a snapshot", "shared", "snapshot_request", 0, {}),
    ("snapshot without windows and sections", "shared", "snapshot", 0, {
        "part": 0, "parts": 1, "windows": [], "sections": []}),
    ("middle part of a snapshot", "shared", "snapshot", 0, {
        "part": 1, "parts": 65535,
        "windows": [
            {**NODE, "top": 300, "missing": [[2, 3], [299, 300]]},
            {**OTHER, "top": 0, "missing": []},
            {"node": 0, "incarnation": 0, "top": MOST, "missing": [[1, MOST]]}],
        "sections": [
            {"rule": RULE, "entries": [[fingerprint(1), 0], [fingerprint(2), 127], [fingerprint(3), 128]]},
            {"rule": 1, "entries": [[fingerprint(4), 2**60]]},
            {"rule": RULE, "entries": [[fingerprint(5), 16 * 200]]}]}),
    ("membership message", "shared", "swim", 0, {"bytes_hex": "00ff10"}),
    ("hello with a challenge", "shared", "hello", 0, {
        "challenge": 2**63 + 5, "echo": 0, "top": 0, "rules": 2**64 - 2,
        "slack_us": 0, "slack_age_us": 0, "address": "192.0.2.7:7373"}),
    ("hello that answers a challenge", "shared", "hello", 0, {
        "challenge": 77, "echo": 2**63 + 5, "top": 300, "rules": 3,
        "slack_us": 80_000, "slack_age_us": 2**40, "address": "[2001:db8::7]:65535"}),
    ("leave", "shared", "leave", 0, {}),
    ("a busy response", "shared", "payload", 0, {"number": 1, "age_us": 0, "entries": [service(1)]}),
    ("busy responses with pauses and the greatest times", "shared", "payload", 0, {
        "number": MOST, "age_us": 2**40, "entries": [service(2, answers=255, age_us=0), service(3, pause_us=2_000_000),
        service(4, age_us=2**40, pause_us=2**40), {**service(0), "service": MOST}]}),
    ("no busy responses", "shared", "payload", 0, {"number": 300, "age_us": 50_000, "entries": []}),
    ("busy responses of 55 services, the most that are sent at once", "shared", "payload", 0, {
        "number": 7, "age_us": 0, "entries": [service(n, age_us=2**40, pause_us=2**40) for n in range(55)]}),
    ("sealed with the first of two packet keys", "rotating", "hello", 0, {
        "challenge": 1, "echo": 2, "top": 3, "rules": 4,
        "slack_us": 5, "slack_age_us": 6, "address": "192.0.2.7:7373"}),
    ("sealed with a name and a secret that are not ASCII", "binary", "leave", 0, {}),
    ("sealed without a secret", "open", "leave", 0, {}),
    ("not sealed", "unsealed", "report", 0, report(section(entries(2)))),
]  # fmt: skip

# Datagrams that nodes accept, but that this version does not send: name, keys, kind, flags, body,
# additional bytes, index of the packet key.
LATER: list[tuple[str, str, str, int, Body, bytes, int]] = [
    ("report with unknown flags and fields", "shared", "report", 0xFE, report(section(entries(2))), b"\xff" * 9, 0),
    ("section without entries", "shared", "report", 0, report(section([])), b"", 0),
    ("gap followed by unknown bytes", "shared", "gap", 0x80, {"origins": [{**NODE, "ranges": [[1, 2]]}]}, b"\x80", 0),
    ("gap without ranges", "shared", "gap", 0, {"origins": [{**NODE, "ranges": []}]}, b"", 0),
    ("digest followed by unknown bytes", "shared", "digest", 0xFF, {"origins": [{**NODE, "top": 9}]}, b"\x80", 0),
    ("request with a body", "shared", "snapshot_request", 1, {}, b"more", 0),
    ("snapshot followed by unknown bytes", "shared", "snapshot", 0, {
        "part": 0, "parts": 1, "windows": [], "sections": [{"rule": 1, "entries": []}]}, b"\xff", 0),
    ("hello followed by unknown bytes", "shared", "hello", 2, {
        "challenge": 1, "echo": 2, "top": 3, "rules": 4,
        "slack_us": 5, "slack_age_us": 6, "address": "192.0.2.7:7373"}, b"\x80\x80", 0),
    ("busy responses followed by unknown bytes", "shared", "payload", 0xFF, {
        "number": 2, "age_us": 1, "entries": [service(5)]}, b"\x80", 0),
    ("leave with a reason", "shared", "leave", 0, {}, b"bye", 0),
    ("sealed with the second of two packet keys", "rotating", "leave", 0, {}, b"", 1),
]  # fmt: skip


def keys() -> list[Entry]:
    return [
        {
            "name": keys.name,
            "sealed": keys.sealed,
            "cluster": keys.cluster,
            "secret_hex": keys.secret.hex(),
            "packet_keys_hex": [key.hex() for key in keys.packet_keys],
            "fingerprint_key_hex": keys.fingerprint_key().hex(),
            "cluster_id_hex": keys.cluster_id().hex(),
            "key_id": keys.key_id(),
        }
        for keys in ALL_KEYS
    ]


def datagram(case: Case, number: int, more: bytes = b"", which: int = 0) -> Entry:
    name, of, kind, flags, body = case
    envelope = Envelope(KINDS.index(kind) + 1, flags, NODE["node"], NODE["incarnation"], number)
    sealed = seal(KEYS[of], envelope, write(kind, body) + more, which)
    opened, bytes_ = unseal(KEYS[of], sealed)
    assert opened == envelope, name
    understood = read(kind, flags, bytes_)
    assert understood == body, f"{name}: {understood}"
    return {
        "name": name, "keys": of, "kind": kind, "flags": flags, **NODE, "packet": number,
        "body": body, "hex": sealed.hex(),
    }  # fmt: skip


def written() -> list[Entry]:
    """Return the datagrams that nodes read and write."""
    packets = [2**64 - 1, *range(1, 100)]
    return [datagram(case, packets[n]) for n, case in enumerate([*REPORTS, *OTHERS])]


def later() -> list[Entry]:
    """Return the datagrams that nodes only read."""
    return [datagram(case[:5], 1000 + n, *case[5:]) for n, case in enumerate(LATER)]
