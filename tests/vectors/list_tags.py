"""Cases for tags.json: which JSON values can be tags."""

from __future__ import annotations

# The JSON text of a value, and its tag.
USABLE = {
    '"x"': "x",
    '"a@example.com"': "a@example.com",
    '" "': " ",
    '"\\u0000"': "\0",
    '"\\u00e9"': "\u00e9",
    '"\\ud83d\\ude00"': "\U0001f600",
    '"null"': "null",
    '"1.5"': "1.5",
    "42": "42",
    "0": "0",
    "-7": "-7",
    "9007199254740991": "9007199254740991",
}

# The JSON text of a value that is not a tag, and the reason.
UNUSABLE = {
    "null": "no value",
    "true": "a boolean",
    "false": "a boolean",
    '""': "empty text",
    '"x\\ud800"': "a single high surrogate, which has no UTF-8 encoding",
    '"\\udc00x"': "a single low surrogate, which has no UTF-8 encoding",
    "1.5": "not a whole number",
    "-0.5": "not a whole number",
    "1e400": "a number that is infinite as a float",
    "[]": "a list",
    '["x"]': "a list, as parsers make of a repeated parameter",
    '["x", "x"]': "a list, as parsers make of a repeated parameter",
    "[[42]]": "a list",
    "{}": "an object",
    '{"x": "x"}': "an object",
    '{"length": 1, "0": 120}': "an object that looks like a list",
    '{"type": "Buffer", "data": [120]}': "an object that looks like bytes",
    '{"then": "x", "toString": "x"}': "an object that looks like a promise",
}


def tags() -> dict[str, list[dict[str, object]]]:
    """Return the values that can be tags, and the values that cannot."""
    return {
        "usable": [{"json": value, "tag": tag} for value, tag in USABLE.items()],
        "unusable": [{"json": value, "why": why} for value, why in UNUSABLE.items()],
    }
