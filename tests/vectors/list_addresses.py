"""Cases for addresses.json: the client of a request, by peer, X-Forwarded-For and trusted proxies.

The author states the expected client of each row, and the model must agree.
"""

from __future__ import annotations

from ipaddress import ip_address

from addresses import Trusted, client, tag

Entry = dict[str, object]

DOCUMENTATION = "2001:db8:1:2:3:4:5:6"
CUT = "2001:db8:1:2::"
LAN = ["10.0.0.0/8", "fd00::/8"]


def addresses() -> dict[str, list[Entry]]:
    return {"good": [*spelled(), *cut(), *counted(), *listed(), *unix()], "bad": bad()}


# Rows of a table.
# fmt: off


def row(why: str, peer: str | None, expect: str | None, *, forwarded: str | list[str] = "",
        trusted: Trusted = 0, prefix: int = 64) -> Entry:
    lines = forwarded if isinstance(forwarded, list) else [forwarded] if forwarded else []
    made = tag(client(peer, lines, trusted), prefix)
    wanted = None if expect is None else ip_address(expect).packed
    assert made == wanted, f"{why}: the model says {made!r}, the author {wanted!r}"
    return {"why": why, "peer": peer, "forwarded_for": lines, "trusted_proxies": trusted,
            "ipv6_prefix": prefix, "tag_hex": None if made is None else made.hex()}


def spelled() -> list[Entry]:
    same4 = ["203.0.113.7", " 203.0.113.7", "203.0.113.7\t", "203.0.113.7:0", "203.0.113.7:51234",
             "::ffff:203.0.113.7", "::FFFF:203.0.113.7", "::ffff:cb00:7107", "::ffff:CB00:7107",
             "0:0:0:0:0:ffff:203.0.113.7", "0000:0000:0000:0000:0000:ffff:cb00:7107",
             "[::ffff:203.0.113.7]", "[::ffff:203.0.113.7]:443", "::ffff:203.0.113.7%eth0",
             "64:ff9b::203.0.113.7", "64:ff9b::cb00:7107", "0064:ff9b:0:0:0:0:cb00:7107",
             "::203.0.113.7", "::cb00:7107", "[::cb00:7107]:1"]
    same6 = ["2001:db8:1:2:3:4:5:6", "2001:DB8:1:2:3:4:5:6", "2001:0db8:0001:0002:0003:0004:0005:0006",
             "[2001:db8:1:2:3:4:5:6]", "[2001:db8:1:2:3:4:5:6]:443", " [2001:db8:1:2:3:4:5:6]:443 ",
             "2001:db8:1:2:3:4:5:6%eth0", "[2001:db8:1:2:3:4:5:6%25eth0]:80", "2001:db8:1:2::",
             "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2:3:4:0.5.0.6", "2001:db8:1:2::%",
             "2001:db8:1:2:0:0:0::"]
    none = ["", " ", "unknown", "_hidden", "localhost", "example.com", "203.0.113", "203.0.113.7.1",
            "203.0.113.256", "203.0.113.07", "0x7f.0.0.1", "2130706433", "203.0.113.7:", "-",
            "203.0.113.7:port", "203.0.113.7:123456", "203.0.113.7/32", "203.0.113.7 80", "1.2.3.4\n",
            "::ffff:203.0.113.07", "2001:db8::1::2", "2001:db8:1:2:3:4:5", "2001:db8:1:2:3:4:5:6:7",
            "12345::", "[2001:db8::1", "2001:db8::1]", "[2001:db8::1]443", "[2001:db8::1]:", "[]",
            "[203.0.113.7]", "[203.0.113.7]:80", ":::", ":", "%eth0", "::g", "1:2:3:4::5:6:7:8",
            '"203.0.113.7"', "unix:", "/run/app.sock", "\u0661.1.1.1", "\u00a0203.0.113.7",
            "203.0.113.7\u0000", "::1\u0000", "2001:db8::\u0661", "203.0.113.7:\u0661", "\ud800"]
    return [
        *[row(f"IPv4 as {text!r}", text, "203.0.113.7") for text in same4],
        *[row(f"IPv6 as {text!r}", text, CUT) for text in same6],
        *[row(f"no address: {text!r}", text, None) for text in none],
        row("no peer at all", None, None),
        row("loopback is not an IPv4 address", "::1", "::1", prefix=128),
        row("the unspecified address is not an IPv4 address", "::", "::", prefix=128),
        row("the lowest IPv4 address", "0.0.0.0", "0.0.0.0"),
        row("the highest IPv4 address", "255.255.255.255", "255.255.255.255"),
        row("the lowest IPv4 address, mapped to IPv6", "::ffff:0:0", "0.0.0.0"),
        row("an address beside the IPv4-mapped range", "::fffe:cb00:7107", "::fffe:cb00:7107", prefix=128),
        row("an address beside the NAT64 range", "64:ff9b:1::cb00:7107", "64:ff9b:1::cb00:7107", prefix=128),
    ]


def cut() -> list[Entry]:
    cases = {128: DOCUMENTATION, 127: DOCUMENTATION, 112: "2001:db8:1:2:3:4:5:0",
             64: CUT, 63: CUT, 60: "2001:db8:1::", 56: "2001:db8:1::", 48: "2001:db8:1::",
             47: "2001:db8::", 32: "2001:db8::", 1: "::"}
    return [
        *[row(f"IPv6 is cut to /{prefix}", DOCUMENTATION, expect, prefix=prefix)
          for prefix, expect in cases.items()],
        *[row(f"IPv4 stays whole with /{prefix}", f"{before}198.51.100.9", "198.51.100.9",
              prefix=prefix)
          for prefix in (1, 32, 56, 128) for before in ("", "::ffff:", "64:ff9b::")],
        row("link-local addresses are also cut", "fe80::1%eth1", "fe80::"),
    ]


def counted() -> list[Entry]:
    return [
        row("without trusted proxies, the header is ignored", "198.51.100.1", "198.51.100.1",
            forwarded="203.0.113.7"),
        row("behind one proxy, the client is the last entry", "10.0.0.1", "203.0.113.7",
            forwarded="6.6.6.6, 203.0.113.7", trusted=1),
        row("behind two proxies, the client is the second entry from the right", "10.0.0.1", "203.0.113.7",
            forwarded="6.6.6.6, 203.0.113.7, 10.0.0.2", trusted=2),
        row("behind three proxies, the client is the third entry from the right", "10.0.0.1", "203.0.113.7",
            forwarded="203.0.113.7, 10.0.0.3, 10.0.0.2", trusted=3),
        row("several header lines form one list in their order", "10.0.0.1", "203.0.113.7",
            forwarded=["6.6.6.6", "203.0.113.7,10.0.0.2"], trusted=2),
        row("with fewer entries than proxies, the client is the leftmost entry", "10.0.0.1", "203.0.113.7",
            forwarded="203.0.113.7", trusted=3),
        row("without a header, the client is the peer", "198.51.100.1", "198.51.100.1", trusted=1),
        row("with an empty header, the client is the peer", "198.51.100.1", "198.51.100.1", forwarded=[""], trusted=1),
        row("empty entries are ignored", "10.0.0.1", "203.0.113.7",
            forwarded=",6.6.6.6,, 203.0.113.7 ,\t,10.0.0.2, ,", trusted=2),
        row("entries without blanks", "10.0.0.1", "203.0.113.7", forwarded="6.6.6.6,203.0.113.7", trusted=1),
        row("the entry has a port", "10.0.0.1", "203.0.113.7",
            forwarded="203.0.113.7:4711", trusted=1),
        row("the entry has brackets", "10.0.0.1", CUT,
            forwarded="6.6.6.6, [2001:db8:1:2::9]:4711", trusted=1),
        row("the entry is an IPv4-mapped address", "::ffff:10.0.0.1", "203.0.113.7",
            forwarded="::ffff:203.0.113.7", trusted=1),
        row("an entry that is not an address is ignored, so the client is the peer", "10.0.0.1", "10.0.0.1",
            forwarded="6.6.6.6, unknown", trusted=1),
        row("an entry of the second proxy that is not an address is ignored", "10.0.0.1", "10.0.0.2",
            forwarded="6.6.6.6, unknown, 10.0.0.2", trusted=2),
        row("an entry that is not an address counts as a proxy", "10.0.0.1", "203.0.113.7",
            forwarded="6.6.6.6, 203.0.113.7, unix:", trusted=2),
        row("a peer that is not an address counts as a proxy", "", "203.0.113.7",
            forwarded="6.6.6.6, 203.0.113.7", trusted=1),
        row("neither the peer nor an entry is an address", "", None, forwarded="unknown", trusted=1),
        row("entries that the client wrote are ignored", "10.0.0.1", "203.0.113.7",
            forwarded="' or 1=1 --, \u00e9\u0000, 203.0.113.7", trusted=1),
        row("a million proxies, but two entries", "10.0.0.1", "6.6.6.6",
            forwarded="6.6.6.6, 203.0.113.7", trusted=1_000_000),
    ]


def listed() -> list[Entry]:
    return [
        row("an empty list trusts no proxy", "10.0.0.1", "10.0.0.1",
            forwarded="203.0.113.7", trusted=[]),
        row("a peer that is not trusted is the client", "198.51.100.1", "198.51.100.1",
            forwarded="203.0.113.7, 10.0.0.2", trusted=LAN),
        row("behind a trusted peer, the client is the last entry", "10.0.0.1", "203.0.113.7",
            forwarded="6.6.6.6, 203.0.113.7", trusted=LAN),
        row("trusted proxies are skipped", "10.0.0.1", "203.0.113.7",
            forwarded="6.6.6.6, 203.0.113.7, 10.1.2.3, 10.255.255.255", trusted=LAN),
        row("entries beyond the client are ignored", "10.0.0.1", "203.0.113.7",
            forwarded="10.0.0.9, 203.0.113.7, 10.0.0.2", trusted=LAN),
        row("if all entries are trusted, the client is the leftmost", "10.0.0.1", "10.0.0.3",
            forwarded="10.0.0.3, 10.0.0.2", trusted=LAN),
        row("a trusted peer without a header", "10.0.0.1", "10.0.0.1", trusted=LAN),
        row("trusted proxies as IPv4-mapped addresses", "::ffff:10.0.0.1", "203.0.113.7",
            forwarded="203.0.113.7, [::ffff:10.0.0.2]:80", trusted=LAN),
        row("trusted proxies with IPv6 addresses", "fd12::1", CUT,
            forwarded="6.6.6.6, 2001:db8:1:2::7, FD00::9", trusted=LAN),
        row("trust compares the whole address", "2001:db8::2", "2001:db8::",
            forwarded="203.0.113.7", trusted=["2001:db8::1"]),
        row("a list of one address", "2001:db8::1", "203.0.113.7",
            forwarded="203.0.113.7", trusted=["2001:db8::1"]),
        row("a list of one IPv4 address", "192.0.2.1", "203.0.113.7",
            forwarded="203.0.113.7", trusted=["192.0.2.1"]),
        row("an address next to the trusted one is not trusted", "192.0.2.2", "192.0.2.2",
            forwarded="203.0.113.7", trusted=["192.0.2.1"]),
        row("the last address of a trusted network, and the address after it", "192.0.2.127", "192.0.2.128",
            forwarded="192.0.2.128", trusted=["192.0.2.0/25"]),
        row("an IPv4 network contains no IPv6 addresses", "a00::1", "a00::",
            forwarded="203.0.113.7", trusted=["10.0.0.0/8"]),
        row("an entry that is not an address ends the search", "10.0.0.1", "10.0.0.2",
            forwarded="203.0.113.7, unknown, 10.0.0.2", trusted=LAN),
        row("empty entries are ignored", "10.0.0.1", "203.0.113.7",
            forwarded=["6.6.6.6, 203.0.113.7,", ", ,10.0.0.2,"], trusted=LAN),
    ]


def unix() -> list[Entry]:
    return [
        row("a Unix socket without trusted proxies", "", None, forwarded="203.0.113.7"),
        row("a Unix socket that is not in the list", "", None,
            forwarded="203.0.113.7", trusted=LAN),
        row("a Unix socket in the list", "", "203.0.113.7",
            forwarded="6.6.6.6, 203.0.113.7, 10.0.0.2", trusted=["unix", *LAN]),
        row("a peer that is the path of a Unix socket", "/run/app.sock", "203.0.113.7",
            forwarded="203.0.113.7", trusted=["unix"]),
        row("no peer at all", None, "203.0.113.7", forwarded="203.0.113.7", trusted=["unix"]),
        row("unix trusts no addresses", "10.0.0.1", "10.0.0.1",
            forwarded="203.0.113.7", trusted=["unix"]),
        row("a Unix socket without a header", "", None, trusted=["unix"]),
        row("unix applies only to the peer", "10.0.0.1", "10.0.0.1",
            forwarded="203.0.113.7, unix:", trusted=["unix", *LAN]),
    ]


def bad() -> list[Entry]:
    def case(why: str, field: str, value: object, *says: str) -> Entry:
        return {"why": why, "field": field, "value": value, "says": [field, *says]}

    return [
        case("true is not a number", "trusted_proxies", True, "number"),
        case("false is not a number", "trusted_proxies", False, "number"),
        case("a negative number of proxies", "trusted_proxies", -1, "0 or more"),
        case("a fraction of a proxy", "trusted_proxies", 1.5, "list"),
        case("a network that is not in a list", "trusted_proxies", "10.0.0.0/8", "list"),
        case("null is not a list", "trusted_proxies", None, "list"),
        case("a host name is not an address", "trusted_proxies", ["proxy.internal"], "proxy.internal"),
        case("a number is not an address", "trusted_proxies", [10], "text"),
        case("bits after the network prefix", "trusted_proxies", ["10.1.2.3/8"], "10.0.0.0/8"),
        case("bits after the IPv6 network prefix", "trusted_proxies", ["2001:db8::1/32"], "2001:db8::/32"),
        case("a network prefix above 32 bits", "trusted_proxies", ["10.0.0.0/33"], "10.0.0.0/33"),
        case("a network of all IPv4 addresses", "trusted_proxies", ["0.0.0.0/0"], "all addresses"),
        case("a network of all IPv6 addresses", "trusted_proxies", ["::/0"], "all addresses"),
        *[case(f"a network of all IPv4 addresses as {text!r}", "trusted_proxies", ["10.0.0.0/8", text], "all addresses")
          for text in ("::ffff:0:0/96", "::ffff:0.0.0.0/96", "0:0:0:0:0:FFFF:0:0/96", "64:ff9b::/96",
                       "0064:ff9b:0:0:0:0:0.0.0.0/96")],
        case("an empty text", "trusted_proxies", [""], "10.0.0.0/8"),
        case("a prefix of 0 bits", "ipv6_prefix", 0, "1 to 128"),
        case("a prefix of 129 bits", "ipv6_prefix", 129, "1 to 128"),
        case("a prefix as text", "ipv6_prefix", "64", "1 to 128"),
        case("a prefix that is true", "ipv6_prefix", True, "1 to 128"),
        case("a prefix that is not whole", "ipv6_prefix", 56.5, "1 to 128"),
    ]
