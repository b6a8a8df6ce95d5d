"""Checks the key `cluster` of a configuration. A BadConfig names the wrong field."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from fractions import Fraction

from rates import DURATION, MS, UNITS, S, number
from shapes import BYTES, BadConfig, Config, check_keys, flag, proper_name

KEYS = (
    "name", "secret", "packet_keys", "without_secret", "listen", "advertise", "peers", "multicast",
    "interface", "multicast_ttl", "period", "reports", "tolerance", "pacing", "busy", "retention", "retention_bytes",
)  # fmt: skip
PORT = 7373
TIMES = {"period": (5 * MS, 10 * S), "tolerance": (0, 60 * S), "retention": (S, 600 * S)}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_cluster(cluster: object) -> None:
    if not isinstance(cluster, Mapping):
        raise BadConfig("cluster")
    check_keys(cluster, KEYS, "cluster.")
    if not proper_name(cluster.get("name")):
        raise BadConfig("cluster.name")
    loopback_only = check_secrets(cluster)
    listen = check_addresses(cluster, loopback_only)
    check_multicast(cluster, loopback_only, listen)
    check_timing(cluster)


def check_secrets(cluster: Config) -> bool:
    """Return whether only loopback addresses are allowed."""
    without = flag(cluster, "without_secret", "cluster.", default=False)
    secret = cluster.get("secret")
    if isinstance(secret, Mapping):
        check_keys(secret, ("file",), "cluster.secret.")
        if "file" in secret and not isinstance(secret["file"], str):
            raise BadConfig("cluster.secret.file")
        if not secret.get("file"):
            raise BadConfig("cluster.secret")
    elif "secret" in cluster and not proper_secret(secret):
        raise BadConfig("cluster.secret")
    if without and "secret" in cluster:
        raise BadConfig("cluster.without_secret")
    if "packet_keys" in cluster:
        keys = cluster["packet_keys"]
        if not isinstance(keys, list) or "secret" not in cluster or not 1 <= len(keys) <= 4:
            raise BadConfig("cluster.packet_keys")
        for index, key in enumerate(keys):
            if not proper_secret(key) or key in keys[:index]:
                raise BadConfig(f"cluster.packet_keys[{index}]")
    return "secret" not in cluster and not without


def proper_secret(secret: object) -> bool:
    return isinstance(secret, str) and 16 <= len(secret.encode()) <= 4096


def check_addresses(cluster: Config, loopback_only: bool) -> Address:
    """Return the address that the node listens on."""
    default = "0.0.0.0:0" if "secret" in cluster else "127.0.0.1:0"
    listen, _ = address(cluster.get("listen", default), "cluster.listen")
    unusable = listen.is_multicast or str(listen) == "255.255.255.255"
    if unusable or (loopback_only and not listen.is_loopback):
        raise BadConfig("cluster.listen")
    if "advertise" in cluster:
        own, _ = address(cluster["advertise"], "cluster.advertise")
        if is_unassignable(own) or (loopback_only and not own.is_loopback):
            raise BadConfig("cluster.advertise")
    peers = cluster.get("peers", [])
    if not isinstance(peers, list) or len(peers) > 1000:
        raise BadConfig("cluster.peers")
    for index, peer in enumerate(peers):
        if not proper_peer(peer, loopback_only, listen):
            raise BadConfig(f"cluster.peers[{index}]")
    return listen


def address(text: object, field: str) -> tuple[Address, int]:
    """Parse an address with a port."""
    found = re.fullmatch(r"(?:\[(.*:.*)\]|([0-9.]+)):([0-9]{1,5})", str(text))
    try:
        assert found and isinstance(text, str) and int(found[3]) < 2**16
        return unmapped(ipaddress.ip_address(found[1] or found[2])), int(found[3])
    except (AssertionError, ValueError) as error:
        raise BadConfig(field) from error


def unmapped(ip: Address) -> Address:
    return getattr(ip, "ipv4_mapped", None) or ip


def is_unassignable(ip: Address) -> bool:
    return ip.is_multicast or ip.is_unspecified or str(ip) == "255.255.255.255"


def reaches(listen: Address, ip: Address) -> bool:
    return listen.version == ip.version or str(listen) == "::"


def proper_peer(peer: object, loopback_only: bool, listen: Address) -> bool:
    if not isinstance(peer, str):
        return False
    found = re.fullmatch(r"(\[.*\]|[^:\[\]]+)(?::([0-9]{1,5}))?", peer)
    if not found or not 0 < int(found[2] or PORT) < 2**16:
        return False
    host = found[1]
    if re.fullmatch(r"\[.*\]|.*\.?[0-9]+", host):
        try:
            ip, _ = address(f"{host}:1", "")
        except BadConfig:
            return False
        beyond = not ip.is_loopback and (loopback_only or listen.is_loopback)
        return not is_unassignable(ip) and reaches(listen, ip) and not beyond
    labels = host.removesuffix(".").split(".")
    letters = r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)"
    proper = len(host) <= 253 and all(re.fullmatch(letters, label) for label in labels)
    number = re.fullmatch("0[xX][0-9a-fA-F]*", labels[-1])
    return proper and not number and (not loopback_only or host.lower() == "localhost")


def check_multicast(cluster: Config, loopback_only: bool, listen: Address) -> None:
    interface, ttl = cluster.get("interface", ""), cluster.get("multicast_ttl", 1)
    if not isinstance(interface, str):
        raise BadConfig("cluster.interface")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl not in range(256):
        raise BadConfig("cluster.multicast_ttl")
    if "multicast" not in cluster:
        for key in ("interface", "multicast_ttl"):
            if key in cluster:
                raise BadConfig("cluster." + key)
        return
    group, port = address(cluster["multicast"], "cluster.multicast")
    if not group.is_multicast or port == 0 or loopback_only or not reaches(listen, group):
        raise BadConfig("cluster.multicast")
    if "interface" in cluster and not proper_interface(interface, group):
        raise BadConfig("cluster.interface")
    if cluster.get("peers"):
        raise BadConfig("cluster.peers")


def proper_interface(interface: str, group: Address) -> bool:
    try:
        ip = ipaddress.ip_address(interface)
    except ValueError:
        return bool(re.fullmatch(r"[^\s/\x00-\x1f\x7f]{1,15}", interface))
    return ip.version == group.version and not is_unassignable(ip)


def check_timing(cluster: Config) -> None:
    for key, (least, most) in TIMES.items():
        if key == "tolerance" and cluster.get(key) == "auto":
            continue
        if key == "period" and cluster.get("reports") == "periodic":
            least = 10 * MS
        if key in cluster and not least <= duration(cluster[key], "cluster." + key) <= most:
            raise BadConfig("cluster." + key)
    if cluster.get("reports", "eager") not in ("eager", "periodic"):
        raise BadConfig("cluster.reports")
    flag(cluster, "pacing", "cluster.", default=False)
    flag(cluster, "busy", "cluster.", default=False)
    size = cluster.get("retention_bytes", "16 MB")
    if isinstance(size, str):
        found = re.fullmatch(r"\s*([0-9]+)\s*([A-Za-z]*)\s*", size)
        unit = found[2].lower() if found else "?"
        size = int(found[1]) * BYTES.get(unit, 0) if found else None
    if isinstance(size, bool) or not isinstance(size, int | float):
        raise BadConfig("cluster.retention_bytes")
    if size != int(size) or not 64_000 <= size <= 10**9:
        raise BadConfig("cluster.retention_bytes")


def duration(text: object, field: str) -> Fraction:
    found = DURATION.fullmatch(text) if isinstance(text, str) else None
    if not found or found[2].lower() not in UNITS:
        raise BadConfig(field)
    return number(found[1]) * UNITS[found[2].lower()]
