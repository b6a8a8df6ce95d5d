"""Compares the model of the protocol with published test vectors."""

from __future__ import annotations

import xchacha
from wire_bodies import Reader, varint
from wire_keys import expand, extract


def run() -> None:
    hkdf()
    sealing()
    leb128()


def hkdf() -> None:
    """Check RFC 5869, test cases 1 and 3."""
    secret, hex_ = b"\x0b" * 22, bytes.fromhex
    prk = extract(hex_("000102030405060708090a0b0c"), secret)
    assert prk.hex() == "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"
    assert expand(prk, hex_("f0f1f2f3f4f5f6f7f8f9"), 42).hex() == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )
    assert expand(extract(b"", secret), b"", 42).hex() == (
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    )


def sealing() -> None:
    """Check draft-irtf-cfrg-xchacha-03, 2.2.1 and A.3.1; RFC 8439, 2.5.2."""
    derived = xchacha.hchacha(bytes(range(32)), bytes.fromhex("000000090000004a0000000031415927"))
    assert derived.hex() == "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc"
    key = "85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"
    tag = xchacha.poly1305(bytes.fromhex(key), b"Cryptographic Forum Research Group")
    assert tag.hex() == "a8061dc1305136c6c22b8baf0c0127a9"

    key_, nonce = bytes(range(0x80, 0xA0)), bytes(range(0x40, 0x58))
    additional = bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    text = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
        b"future, sunscreen would be it."
    )
    sealed = xchacha.seal(key_, nonce, additional, text)
    assert sealed.hex() == (
        "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f"
        "4eda7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f"
        "76b2383565d3fff921f9664c97637da9768812f615c68b13b52e"
        "c0875924c1c7987947deafd8780acf49"
    )
    assert xchacha.unseal(key_, nonce, additional, sealed) == text
    assert xchacha.unseal(key_, nonce, additional + b"!", sealed) is None


def leb128() -> None:
    """Check the example of DWARF 5, appendix C, and the greatest value."""
    assert varint(624485).hex() == "e58e26"
    assert varint(2**64 - 1).hex() == "ff" * 9 + "01"
    assert Reader(bytes.fromhex("e58e26")).varint() == 624485
