"""Which values can be tags, and the tags of clients that have none: tests/vectors/tags.json."""

from __future__ import annotations

from typing import Final

__all__ = ["address_tag", "tag_bytes"]

# No text contains this byte in UTF-8, so no client can choose a tag that begins like this.
_BY_ADDRESS: Final = b"address\xff"


def tag_bytes(value: object) -> bytes | None:
    """Return a value as a tag; None if it cannot be one."""
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(int(value))
        if isinstance(value, str):
            value = value.encode()
    except Exception:  # a lone surrogate, an int of too many digits, or a method of a subclass
        return None
    return value if isinstance(value, bytes) and value else None


def address_tag(address: bytes | None) -> bytes:
    """Return the tag of a client that has no usable tag of its own; None: its address is unknown."""
    return _BY_ADDRESS + (address or b"")
