"""Client addresses: the shared vectors, and random text."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

import pytest
import vectors

from dthrottle import ConfigError
from dthrottle.address import ClientAddress, client_address, parse_address

VECTORS = vectors.read("addresses")
PIECES = [
    *"0123456789abcdefF.:[]% ,\t",
    "::",
    "ffff",
    "255",
    "%eth0",
    ":80",
    "unix",
    "\0",
    "\ud800",
]


@pytest.mark.parametrize("case", VECTORS["good"], ids=lambda case: str(case["why"]))
def test_client_address_agrees_with_the_vectors(case: dict[str, Any]) -> None:
    options = {"trusted_proxies": case["trusted_proxies"], "ipv6_prefix": case["ipv6_prefix"]}
    found = client_address(case["peer"], case["forwarded_for"], **options)
    assert (None if found is None else found.hex()) == case["tag_hex"]
    joined = client_address(case["peer"], ", ".join(case["forwarded_for"]), **options)
    assert joined == found


@pytest.mark.parametrize("case", VECTORS["bad"], ids=lambda case: str(case["why"]))
def test_wrong_option_is_an_error(case: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        ClientAddress(**{case["field"]: case["value"]})
    assert caught.value.field == case["field"]
    for message in case["says"]:
        assert message in str(caught.value)


def test_tag_contains_the_bytes_of_the_address() -> None:
    for text, cut in [("203.0.113.7", "203.0.113.7"), ("2001:db8::1:2:3:4", "2001:db8::")]:
        tag = client_address(text)
        assert tag is not None
        assert str(ipaddress.ip_address(tag)) == cut


def test_all_spellings_of_an_address_have_one_tag() -> None:
    dice = random.Random(1)
    for _ in range(2000):
        number = dice.getrandbits(128) & dice.choice([-1, 2**64 - 1, 2**48 - 1, ~(2**64 - 1)])
        address = ipaddress.IPv6Address(number)
        spelled = [str(address), address.exploded, address.exploded.upper(), f"[{address}]:8080"]
        spelled.append(f" {address}%eth0")
        assert len({client_address(text) for text in spelled}) == 1


def test_random_text_never_raises() -> None:
    dice = random.Random(2)
    trusted: list[Any] = [0, 1, 3, ["unix", "0.0.0.0/1", "::/1"]]
    finders = [ClientAddress(trusted_proxies=value) for value in trusted]
    seen = set()
    for _ in range(20_000):
        peer, forwarded = (
            "".join(dice.choice(PIECES) for _ in range(dice.randint(0, 12))) for _ in range(2)
        )
        for find in finders:
            found = find(peer, forwarded)
            seen.add(None if found is None else len(found))
    assert seen == {None, 4, 16}


@pytest.mark.parametrize("peer", [None, b"10.0.0.1", 7, ("10.0.0.1", 80), object()])
def test_value_of_another_type_is_an_unknown_address(peer: Any) -> None:
    assert client_address(peer) is None
    assert client_address(peer, None, trusted_proxies=1) is None
    assert client_address(peer, [peer, "203.0.113.7"], trusted_proxies=1) == parse_address(
        "203.0.113.7"
    )


def test_parser_agrees_with_the_standard_library() -> None:
    """A client whose address only the standard library can parse would not be limited."""
    dice = random.Random(3)
    hits = 0
    for _ in range(20_000):
        digits = "0123456789abcdef"
        groups = ["".join(dice.choices(digits, k=dice.randint(0, 5))) for _ in range(8)]
        text = ":".join(groups[: dice.randint(3, 8)])
        try:
            expect = ipaddress.IPv6Address(text).packed
        except ValueError:
            assert parse_address(text) is None, text
        else:
            hits += 1
            assert parse_address(text) in (expect, expect[12:]), text
    assert hits > 100


def test_very_long_header_is_read() -> None:
    find = ClientAddress(trusted_proxies=["10.0.0.0/8"])
    assert find("10.0.0.1", "10.0.0.9," * 50_000) == parse_address("10.0.0.9")
    assert find("10.0.0.1", "6.6.6.6," * 50_000 + "203.0.113.7") == parse_address("203.0.113.7")
