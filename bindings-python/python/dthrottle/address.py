"""Who is the client? Its address, as a tag that it cannot choose for itself.

>>> from dthrottle.address import client_address
>>> client_address("203.0.113.7").hex()
'cb007107'
>>> client_address("10.0.0.1", "6.6.6.6, 203.0.113.7", trusted_proxies=["10.0.0.0/8"]).hex()
'cb007107'

The rules are in docs/python.md, and in numbers in tests/vectors/addresses.json. Mistakes in what an
application says are errors at once; what a request says never is.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from dthrottle._dthrottle import parse_address
from dthrottle.errors import ConfigError

__all__ = ["ClientAddress", "Networks", "Trusted", "client_address", "parse_address"]

Trusted = int | Iterable[str]
"""How many proxies stand before the application, or which networks they are in."""

Forwarded = str | Iterable[str] | None
"""The header X-Forwarded-For: its text, or the text of every line in their order."""

UNIX: Final = "unix"
"""In a list of trusted proxies: whoever connects to a Unix socket."""


def client_address(
    peer: str | None,
    forwarded_for: Forwarded = None,
    *,
    trusted_proxies: Trusted = 0,
    ipv6_prefix: int = 64,
) -> bytes | None:
    """Give the client's address as a tag, or None if nothing of it is known.

    The peer is who opened the connection. The header X-Forwarded-For, in one text or several, is
    only read when proxies are trusted. To ask often, make a ClientAddress once.
    """
    return ClientAddress(trusted_proxies=trusted_proxies, ipv6_prefix=ipv6_prefix)(
        peer, forwarded_for
    )


class ClientAddress:
    """Finds the client behind trusted proxies: 4 bytes for IPv4, 16 for IPv6.

    Of an IPv6 address the first ``ipv6_prefix`` bits are kept, because one client commonly has all
    addresses behind them. ``ipaddress.ip_address(tag)`` makes a tag readable.
    """

    __slots__ = ("_count", "_mask", "_networks", "ipv6_prefix", "is_peer")

    def __init__(self, *, trusted_proxies: Trusted = 0, ipv6_prefix: int = 64) -> None:
        self._mask = _mask(ipv6_prefix)
        self._count = 0
        self._networks: Networks | None = None
        if isinstance(trusted_proxies, bool):
            raise _error(
                "trusted_proxies",
                trusted_proxies,
                "a number of proxies, or a list of their networks",
            )
        if isinstance(trusted_proxies, int):
            if trusted_proxies < 0:
                raise _error("trusted_proxies", trusted_proxies, "0 or more proxies")
            self._count = trusted_proxies
        else:
            self._networks = Networks(trusted_proxies, "trusted_proxies") or None
        self.ipv6_prefix = ipv6_prefix
        # Without proxies the client is who opened the connection.
        self.is_peer = not self._count and self._networks is None

    def __call__(self, peer: str | None, forwarded_for: Forwarded = None) -> bytes | None:
        """Give the tag of whoever sent this request."""
        found = parse_address(peer) if self.is_peer else self.find(peer, forwarded_for)
        if found is None or len(found) == 4 or self._mask is None:
            return found
        return (int.from_bytes(found, "big") & self._mask).to_bytes(16, "big")

    def find(self, peer: str | None, forwarded_for: Forwarded = None) -> bytes | None:
        """Give the whole address, not cut to its prefix."""
        address = parse_address(peer)
        if self._count:
            return self._by_count(address, forwarded_for)
        if self._networks is None:
            return address
        return self._by_networks(self._networks, address, forwarded_for)

    def _by_count(self, address: bytes | None, forwarded_for: Forwarded) -> bytes | None:
        # Every trusted proxy added one entry: so many are to be believed, and what is left of them
        # is the client's own invention. One that is no address leaves us with the last that is.
        for entry in _entries(forwarded_for)[: -self._count - 1 : -1]:
            address = parse_address(entry) or address
        return address

    def _by_networks(
        self, networks: Networks, address: bytes | None, forwarded_for: Forwarded
    ) -> bytes | None:
        if not (networks.unix if address is None else address in networks):
            return address
        for entry in reversed(_entries(forwarded_for)):
            parsed = parse_address(entry)
            if parsed is None:
                break  # nobody knows who that is: the last known one answers for it
            address = parsed
            if address not in networks:
                break
        return address


class Networks:
    """A list of networks, to look addresses up in."""

    __slots__ = ("_nets", "unix")

    def __init__(self, networks: Iterable[str], option: str) -> None:
        self.unix = False
        # For the length of an address in bytes: (shift, number) of the network's bits.
        self._nets: dict[int, set[tuple[int, int]]] = {4: set(), 16: set()}
        if isinstance(networks, (str, bytes)) or not isinstance(networks, Iterable):
            raise _error(option, networks, 'a list such as ["10.0.0.0/8"]')
        for network in networks:
            if isinstance(network, str) and network.rstrip(":") == UNIX:
                self.unix = True
            else:
                size, shift, number = _network(network, option)
                self._nets[size].add((shift, number))

    def __bool__(self) -> bool:
        return self.unix or any(self._nets.values())

    def __contains__(self, address: bytes) -> bool:
        number = int.from_bytes(address, "big")
        return any(number >> shift == bits for shift, bits in self._nets[len(address)])


def _entries(forwarded_for: Forwarded) -> list[str]:
    """Give all entries from left to right; empty ones are none."""
    if not forwarded_for:
        return []
    if not isinstance(forwarded_for, str):
        forwarded_for = ",".join(line for line in forwarded_for if isinstance(line, str))
    stripped = [entry.strip(" \t") for entry in forwarded_for.split(",")]
    return [entry for entry in stripped if entry]


# What an application may say.


def _mask(prefix: int) -> int | None:
    if isinstance(prefix, bool) or not isinstance(prefix, int) or not 1 <= prefix <= 128:
        raise _error("ipv6_prefix", prefix, "a number of bits from 1 to 128")
    return None if prefix == 128 else (2**prefix - 1) << (128 - prefix)


def _network(network: object, option: str) -> tuple[int, int, int]:
    try:
        if not isinstance(network, str):
            raise TypeError
        net = ipaddress.ip_network(network)
    except ValueError as error:
        meant = _without_host_bits(network)
        right = f'"{meant}"' if meant else 'an address or a network such as "10.0.0.0/8"'
        raise _error(option, network, right) from error
    except TypeError as error:
        raise _error(option, network, 'text such as "10.0.0.0/8"') from error
    address, bits = net.network_address.packed, net.prefixlen
    if len(address) == 16 and bits >= 96:
        unmapped = parse_address(str(net.network_address)) or address
        address, bits = unmapped, bits - 8 * (16 - len(unmapped))
    if bits == 0:  # now: all of IPv4 may be written as a part of IPv6
        raise _error(option, network, "smaller; with everyone trusted a client can be anyone")
    shift = 8 * len(address) - bits
    return len(address), shift, int.from_bytes(address, "big") >> shift


def _without_host_bits(network: object) -> str | None:
    try:
        return str(ipaddress.ip_network(network, strict=False)) if network else None  # type: ignore[arg-type]
    except ValueError:
        return None


def _error(option: str, value: object, right: str) -> ConfigError:
    return ConfigError(f"{option}: {value!r} cannot be; must be {right}", field=option)
