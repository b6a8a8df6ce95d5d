"""The service of a URL, equal to ``URL.host`` in JavaScript.

The rules are those of the URL standard (url.spec.whatwg.org); tests/vectors/calls.json has the cases.
Text that is not a URL has an empty name.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import unquote_to_bytes

__all__ = ["service_of"]

# The schemes whose hosts are parsed, with their default ports. Hosts of other schemes are opaque.
_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY: Final = re.compile(r"[/\\]*([^/\\?#]*)")
_OTHER_AUTHORITY: Final = re.compile(r"//([^/?#]*)")
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^\[:][^:]*)(?::([0-9]*))?")

_STRIPPED: Final = "".join(map(chr, range(0x21)))
_REMOVED: Final = {ord(blank): None for blank in "\t\n\r"}
_FORBIDDEN: Final = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PART: Final = re.compile(r"0x[0-9a-f]*|0[0-7]*|[1-9][0-9]*")
_ZEROS: Final = re.compile(r"\b0(?::0)+\b")

# Characters that are removed, and those that mean a dot.
_MAPPED: Final = {
    **dict.fromkeys([0xAD, 0x34F, 0x200B, 0x2060, 0x2064, 0xFEFF, *range(0x180B, 0x1810)]),
    **dict.fromkeys(range(0x1BCA0, 0x1BCA4)),
    **dict.fromkeys(range(0xFE00, 0xFE10)),
    **dict.fromkeys([0x3002, 0xFF0E, 0xFF61], "."),
}
# Letters that case folding would replace, and joiners. IDNA 2008 allows them.
_NOT_FOLDED: Final = frozenset("\u00df\u03c2\u200c\u200d")


def service_of(url: str) -> str:
    """Return the service of a URL: its host, and its port unless it is the default of the scheme.

    Equal to ``URL.host`` in JavaScript, so that both languages count together.
    """
    url = url.strip(_STRIPPED)
    if not url.isprintable():
        url = url.translate(_REMOVED)
    scheme = _SCHEME.match(url)
    if scheme is None:
        return ""
    name = scheme[1].lower()
    authority = (_AUTHORITY if name in _PORTS else _OTHER_AUTHORITY).match(url, scheme.end())
    match = _HOST.fullmatch(authority[1].rpartition("@")[2]) if authority else None
    if match is None:
        return ""
    # Converting very many digits would be slow.
    digits = (match[2] or "").lstrip("0")
    port = int(digits[:6] or "0") if match[2] else _PORTS.get(name)
    if port is not None and port > 65_535:
        return ""
    host = _host(match[1], name in _PORTS)
    return host if not host or port == _PORTS.get(name) else f"{host}:{port}"


def _host(text: str, is_parsed: bool) -> str:
    """Return a host in its canonical spelling; empty if it is invalid."""
    try:
        if text.startswith("["):
            return f"[{_ipv6(text[1:-1])}]"
        if not is_parsed:
            return "" if _FORBIDDEN.search(text.replace("%", "")) else text
        if "%" in text:
            text = unquote_to_bytes(text).decode()
        host = text.lower() if text.isascii() else _to_ascii(text)
        return "" if _FORBIDDEN.search(host) else _ipv4(host)
    except ValueError:
        return ""


def _to_ascii(text: str) -> str:
    """Encode a name with non-ASCII letters for DNS.

    The codec "idna" implements IDNA 2003, and URLs use newer rules.
    """
    text = unicodedata.normalize("NFKC", text.translate(_MAPPED))
    text = "".join(each if each in _NOT_FOLDED else each.casefold() for each in text)
    labels = unicodedata.normalize("NFKC", text).split(".")
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in labels
    )


def _ipv4(host: str) -> str:
    """Return an IPv4 address as four numbers. A host that does not end in a number is unchanged."""
    texts = host.removesuffix(".").split(".")
    if not _NUMBER.fullmatch(texts[-1]):
        return host
    *firsts, last = map(_number, texts)
    if len(firsts) > 3 or max(firsts, default=0) > 255 or last >= 256 ** (4 - len(firsts)):
        return ""
    address = last + sum(first << (24 - 8 * place) for place, first in enumerate(firsts))
    return ".".join(str(byte) for byte in address.to_bytes(4, "big"))


def _number(text: str) -> int:
    """Parse a part of an address like C: 127, 0177 and 0x7f are equal."""
    if not _PART.fullmatch(text):
        raise ValueError(text)
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def _ipv6(text: str) -> str:
    """Return the shortest spelling of an IPv6 address, without an IPv4 address at its end."""
    # JavaScript accepts no zone in a URL, because a zone has a meaning on one host only.
    text, *zone = text.partition("%")
    groups = ":".join(f"{group:x}" for group in struct.unpack(">8H", IPv6Address(text).packed))
    longest = max(_ZEROS.finditer(groups), key=lambda zeros: len(zeros[0]), default=None)
    if longest is not None:
        groups = f"{groups[: longest.start()].rstrip(':')}::{groups[longest.end() :].lstrip(':')}"
    return groups + "".join(zone)
