"""The model of client addresses, based on the module ipaddress of the standard library.

It finds the client of a request behind trusted proxies, and returns the bytes of its tag: 4 for
IPv4, or 16 for IPv6, where all bits after the prefix are zero.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address
Trusted = int | Sequence[str]

# IPv6 ranges whose last 32 bits are an IPv4 address. Compatible addresses (RFC 4291) whose IPv4
# address begins with 0 are excluded, because they include :: and ::1.
CONTAINS_IPV4 = [ip_network("::ffff:0:0/96"), ip_network("64:ff9b::/96"), ip_network("::/96")]

WRITTEN = re.compile(
    r"""[ \t]*(?:
    (?P<v4>[0-9.]+)(?::[0-9]{1,5})?
    | \[(?P<bracketed>[0-9a-fA-F:.]+)(?:%[^\]]*)?\](?::[0-9]{1,5})?
    | (?P<v6>[0-9a-fA-F.]*:[0-9a-fA-F.]*:[0-9a-fA-F:.]*)(?:%.*)?
    )[ \t]*""",
    re.VERBOSE | re.DOTALL,
)


def read(text: str | None) -> Address | None:
    """Return the address in an entry, or None if it has none."""
    match = WRITTEN.fullmatch(text or "")
    if not match:
        return None
    try:
        if match["v4"]:
            return IPv4Address(match["v4"])
        address = IPv6Address(match["bracketed"] or match["v6"])
    except ValueError:
        return None
    last = int(address) % 2**32
    if any(address in network for network in CONTAINS_IPV4) and (
        address not in CONTAINS_IPV4[2] or last >= 2**24
    ):
        return IPv4Address(last)
    return address


def client(peer: str | None, forwarded_for: Sequence[str], trusted: Trusted) -> Address | None:
    """Return the address of the client, or None if it is unknown."""
    entries = [e for e in ",".join(forwarded_for).split(",") if e.strip(" \t")]
    # The peer comes first, and the leftmost entry last.
    chain = [read(peer), *[read(entry) for entry in reversed(entries)]]
    if isinstance(trusted, int):
        trusted_part = chain[: trusted + 1]
    else:
        trusted_part = []
        for number, address in enumerate(chain):
            trusted_part.append(address)
            if address is None and number > 0:
                break
            if not is_trusted(address, trusted):
                break
    known = [address for address in trusted_part if address is not None]
    return known[-1] if known else None


def is_trusted(address: Address | None, trusted: Sequence[str]) -> bool:
    if address is None:
        return "unix" in trusted
    networks = [ip_network(network) for network in trusted if network != "unix"]
    return any(address.version == n.version and address in n for n in networks)


def tag(address: Address | None, prefix: int) -> bytes | None:
    if isinstance(address, IPv6Address):
        network = ip_network((int(address), prefix), strict=False)
        return network.network_address.packed
    return None if address is None else ip_address(int(address)).packed
