"""Cases for rates.json: valid rates and bursts with their values, and invalid ones."""

from __future__ import annotations

from model import Throttle
from rates import MAX_BURST, UNITS, Bad, parse_burst, parse_rate
from shapes import Config

Entry = dict[str, object]

TEXTS = [
    "100/s", "100 / s", "100/ s", "100 /s", "100   per   s", "  100/s  ", "100 per s",
    "5 per 2 minutes", "5per2minutes", "5 / 2 minutes", "5/2minutes", "1000/hour",
    "60/M", "60 PER Minute", "1/Month", "3 Per 4 WEEKS", "7/HR", "1/S",
    "0.5/s", "2.5/s", "1.5 per 0.5 s", "1/0.25s", "0.000000001/s", "999999999.999999999/s",
    "0.333333333/hour", "1.234567/day", "1.123456789/day", "12.3456789 per week",
    "0.100/s", "1/1.000000001s", "10/0.001 ms", "3/7 days",
    "100", "0.5", " 2 ", "1000000000", "0.000000001",
    "1000000000/s", "1000000/ms", "1/0.000001ms", "0.5/0.0000005ms", "60000000000/minute",
    "1/100 years", "1/36500 days", "1/876000h", "3/100 years", "1/3153600000 s",
    "3/s", "7/hour", "9999991/s", "10000000/s", "800000000/s", "333333333/s", "1/year", "1/day",
]  # fmt: skip

NUMBERS: list[int | float] = [100, 100.0, 0.5, 0.1, 2.5, 1, 1_000_000_000, 0.001, 1e-9, 0.3, 7]

WITH_BURST: list[tuple[str | int | float, str | int | float]] = [
    ("1/s", 1), ("100/s", 200), ("100/s", 1), ("1/day", 1_000_000), ("1/s", MAX_BURST),
    ("1000000000/s", MAX_BURST), ("1/100 years", MAX_BURST), ("1000000000000000/year", 10),
    ("100/s", 50.0), (10, 20), (0.5, 10), (0.1, "1 minute"),
    ("100/s", "10s"), ("100/s", "2 minutes"), ("100/s", "10ms"), ("100/s", "19.999999999ms"),
    ("100/s", " 250  MSEC "), ("1/s", "1.5s"), ("1/s", "1000ms"), ("1/s", "1.999999999s"),
    ("3/s", "1s"), ("3/s", "333.333333334ms"), ("3/s", "666.666666666 ms"), ("7/hour", "1h"),
    ("7/hour", "1 day"), ("9999991/s", "1s"), ("1.5/s", "1s"), ("1/year", "3 years"),
    ("5 per 2 minutes", "1 minute"), ("1/week", "1 month"), ("1000000000/s", "1ms"),
]  # fmt: skip

BAD_TEXTS = {
    "": "empty",
    " ": "blank",
    "abc": "not a rate",
    "s": "no count",
    "/": "only a slash",
    "/s": "no count",
    "per s": "no count",
    "100/": "no unit",
    "100 per": "no unit",
    "100/2": "a period without a unit",
    "100/2.5": "a period without a unit",
    "10/fortnight": "no such unit",
    "10/mo": "no such unit, as it could be minute or month",
    "10/us": "no such unit",
    "10/ns": "no such unit",
    "10/sx": "no such unit",
    "10/s2": "text after the unit",
    "10/2s3": "text after the unit",
    "10/s s": "two units",
    "100/s/s": "two periods",
    "100 s": "neither / nor per",
    "100s": "neither / nor per",
    "100//s": "two slashes",
    "100/per s": "both / and per",
    "100 per per s": "per twice",
    "1 0/s": "a blank inside a number",
    "1/1 0s": "a blank inside a number",
    "-1/s": "negative",
    "+1/s": "a sign",
    "-1": "negative",
    "0/s": "zero",
    "0": "zero",
    "0.0/s": "zero",
    "1/0s": "a period of zero",
    "1/0.000s": "a period of zero",
    "1/-2s": "a negative period",
    "1.2.3/s": "two points",
    "1,000/s": "a comma",
    "1_000/s": "an underscore",
    "1e9/s": "an exponent",
    "1E3": "an exponent",
    "0x10/s": "not decimal",
    "NaN": "not a number",
    "inf": "infinite",
    "Infinity/s": "infinite",
    "1/inf s": "infinite",
    "\uff11/s": "digits that are not ASCII",
    "\u0661\u0660/s": "digits that are not ASCII",
    "10/\u017f": "a letter that is an s only after case folding",
    "10/wee\u212a": "a letter that is a k only in lower case",
    "10\u2215s": "a slash that is not ASCII",
    "10/s\0": "a NUL",
    "10/s;": "text after the unit",
    "1000000001/s": "too fast",
    "1000000000.000000001/s": "too fast",
    "1000001/ms": "too fast",
    "2/0.000001ms": "too fast",
    "1/0.000000001ms": "too fast",
    "1000000001": "too fast",
    "1/101 years": "too long",
    "1/36501 days": "too long",
    "1/3153600001 s": "too long",
    "1/100.000000001 years": "too long",
    "0.5/100 years": "a unit of 200 years",
    "1000/200 years": "a period of 200 years",
    "1000000000000000/year": "a default burst above 2^40",
    "0.1234567891/s": "ten digits after the point",
    "1.0000000000/s": "ten digits after the point",
    "1/0.1234567891 minutes": "ten digits after the point",
    "9" * 100 + "/s": "too fast, a hundred digits",
    "9" * 100: "too fast, a hundred digits",
    "1/" + "9" * 100 + "s": "too long, a hundred digits",
    "1/" + "9" * 40 + "ms": "too long, beyond 128 bits",
    "0." + "0" * 99 + "1/s": "a hundred digits after the point",
    "18446744073709551617/s": "too fast, but would be 1/s if it wrapped at 64 bits",
    "340282366920938463463374607431768211457/s": "too fast, but would be 1/s if it wrapped at 128 bits",
    "1/18446744073709551617 s": "too long, but would be 1 s if it wrapped at 64 bits",
}

BAD_NUMBERS: list[tuple[int | float | str, str]] = [
    (0, "zero"), (0.0, "zero"), (-1, "negative"), (-0.5, "negative"),
    (1_000_000_001, "too fast"), (1_000_000_000.5, "too fast"), (1e300, "too fast"),
    (-1e300, "negative"), (1e-10, "too long, and too many digits"), (1e-300, "too long"),
    ("NaN", "not a number"), ("Infinity", "infinite"), ("-Infinity", "infinite"),
]  # fmt: skip

BAD_BURSTS: list[tuple[str, object, str]] = [
    ("1/s", 0, "zero"), ("1/s", -1, "negative"), ("1/s", 1.5, "not whole"),
    ("1/s", -0.5, "negative and not whole"), ("1/s", MAX_BURST + 1, "above 2^40"),
    ("1/s", 1e300, "above 2^40"), ("1/s", "", "empty"), ("1/s", " ", "blank"),
    ("1/s", "10", "a number as text"), ("1/s", " 10 ", "a number as text"),
    ("1/s", "abc", "not a duration"), ("1/s", "0.1ms", "less than one unit"),
    ("1/s", "999.999999999ms", "less than one unit"), ("3/s", "333.333333333ms", "less than one"),
    ("1/s", "0s", "zero"), ("1/s", "-1s", "negative"), ("1/s", "1e3s", "an exponent"),
    ("1/s", "10/s", "a rate"), ("1/s", "10 fortnights", "no such unit"),
    ("1/s", "1.2.3s", "two points"), ("1/s", "10s s", "two units"),
    ("1/s", "0.1234567891s", "ten digits after the point"), ("1/s", "\uff11s", "not ASCII"),
    ("1000000000/s", "1 hour", "above 2^40"), ("1/s", "9" * 100 + "s", "a hundred digits"),
    ("1/s", True, "not a number"),
]  # fmt: skip


def rates() -> dict[str, list[Entry]]:
    units = [f"7/{word}" for word in UNITS] + [f"3 per 2 {word}" for word in UNITS]
    good = [meaning({"text": text}) for text in TEXTS + units]
    good += [meaning({"number": value}) for value in NUMBERS]
    for rate, burst in WITH_BURST:
        key = "text" if isinstance(rate, str) else "number"
        good.append(meaning({key: rate, "burst": burst}))
    bad = [refused({"text": text}, why) for text, why in BAD_TEXTS.items()]
    bad += [refused({"number": value}, why) for value, why in BAD_NUMBERS]
    bad += [refused({"text": rate, "burst": burst}, why) for rate, burst, why in BAD_BURSTS]
    return {"good": good, "bad": bad}


def rate_of(entry: Entry) -> object:
    if "text" in entry:
        return entry["text"]
    value = entry["number"]
    return float(value) if isinstance(value, str) else value


def meaning(entry: Entry) -> Entry:
    config: Config = {"rate": rate_of(entry)}
    if "burst" in entry:
        config = {**config, "burst": entry["burst"]}
    throttle = Throttle(config)
    rule = throttle.domains["default"].rules[0]
    throttle.check(0, "default", "t", cost=rule.burst)
    refusal = throttle.check(0, "default", "t")
    assert not refusal.allowed
    return {
        **entry,
        "limit": rule.burst,
        "interval_ns_num": rule.interval.numerator,
        "interval_ns_den": rule.interval.denominator,
        "retry_after_ns": refusal.retry_after_ns,
    }


def refused(entry: Entry, why: str) -> Entry:
    try:
        rate = parse_rate(rate_of(entry))
        parse_burst(entry.get("burst"), rate)
    except Bad:
        return {**entry, "why": why}
    raise AssertionError(f"{entry} is good")
