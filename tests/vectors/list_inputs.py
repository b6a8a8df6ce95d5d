"""Cases for inputs.json (wrong and unusual arguments), and the error kinds for errors.json."""

from __future__ import annotations

from model import Failed, Throttle
from shapes import Config

Entry = dict[str, object]

CONFIG: Config = {"rate": "10/s", "burst": 10}
ALL = ["python", "node", "wasm", "c", "rust"]
DYNAMIC = ["python", "node", "wasm"]  # in these, an argument may be negative, NaN, or of any type
POINTERS = ["python", "node", "wasm", "c"]  # in these, a tag may be null
BYTES = ALL  # in these, a tag may be bytes that are not UTF-8

NOT_COSTS: list[object] = [
    -1, 1.5, 0.5, -0.5, "NaN", "Infinity", "-Infinity", 1e300, -1e300, {"text": "3"}, {"text": ""}
]  # fmt: skip
NOT_TIMES: list[object] = ["NaN", "Infinity", "-Infinity", -1, -0.001, -1e300, {"text": "3"}]


def errors() -> list[Entry]:
    kinds = {
        "config": "ValueError",
        "cost": "ValueError",
        "domain": "LookupError",
        "closed": "RuntimeError",
        "argument": "TypeError",
        "file": "OSError",
        "internal": "RuntimeError",
    }
    return [
        {
            "kind": kind,
            "c_name": f"DTHROTTLE_ERR_{kind.upper()}",
            "c": -number,
            "python": f"{kind.capitalize()}Error",
            "python_base": base,
            "js": f"DTHROTTLE_{kind.upper()}",
        }
        for number, (kind, base) in enumerate(kinds.items(), 1)
    ]


def inputs() -> list[Entry]:
    return [*costs(), *times(), *tags(), *domains(), *closed(), *clock()]


def case(
    name: str, call: str, args: Entry, error: str | None, languages: list[str], **rest: object
) -> Entry:
    made: Entry = {"name": name, "call": call, "args": args, "error": error}
    return {**made, **rest, "languages": languages}


def good(name: str, call: str, args: Entry, languages: list[str] = ALL) -> Entry:
    """Return a valid call, and the answer of the model for a new throttle."""
    throttle = Throttle(CONFIG)
    answer = throttle.check(
        0,
        str(args.get("domain", "default")),
        "any",
        cost=int(str(args.get("cost", 1))),
        partial=bool(args.get("partial", False)),
        allow_debt=bool(args.get("allow_debt", False)),
        take=call != "peek",
    )
    expect: object = answer.allowed
    if call != "allow":
        expect = {"allowed": answer.allowed, "granted": answer.granted, "balance": answer.balance}
    return case(name, call, args, None, languages, expect=expect)


def shown(value: object) -> str:
    return f"text {value['text']!r}" if isinstance(value, dict) else str(value)


def costs() -> list[Entry]:
    made = []
    for value in NOT_COSTS:
        for call in ("check", "allow", "peek", "refund"):
            name = f"{call} with cost {shown(value)}"
            made.append(case(name, call, {"tag": "t", "cost": value}, "cost", DYNAMIC))
        args: Entry = {"tag": "t", "cost": value, "age_ms": 0}
        name = f"charge_local with cost {shown(value)}"
        made.append(case(name, "charge_local", args, "cost", DYNAMIC))
        args = {"tag": "t", "cost": value, "partial": True}
        made.append(case(f"partial cost {shown(value)}", "check", args, "cost", DYNAMIC))
        args = {"tag": "t", "cost": value, "allow_debt": True}
        made.append(case(f"allow_debt cost {shown(value)}", "check", args, "cost", DYNAMIC))
    for call in ("check", "allow", "peek"):
        for cost in (11, 2**32 + 1, 2**40 + 1, 2**53, 2**63, 2**64 - 1):
            args = {"tag": "t", "cost": cost}
            try:
                Throttle(CONFIG).check(0, "default", "t", cost=cost)
            except Failed as failed:
                name = f"{call} with cost {cost}, above the burst"
                made.append(case(name, call, args, str(failed), ALL))
        args = {"tag": "t", "cost": 2**64}
        made.append(case(f"{call} with a cost of 2^64", call, args, "cost", ["python"]))
        made.append(good(f"{call} with a cost of the burst", call, {"tag": "t", "cost": 10}))
        made.append(good(f"{call} with a cost of 0", call, {"tag": "t", "cost": 0}))
        made.append(good(f"{call} without a cost", call, {"tag": "t"}))
    made.append(good("partial above the burst", "check", {"tag": "t", "cost": 11, "partial": True}))
    args = {"tag": "t", "cost": 11, "allow_debt": True}
    made.append(good("allow_debt cost above the burst", "check", args))
    made.append(case("refund above the burst", "refund", {"tag": "t", "cost": 11}, None, ALL))
    args = {"tag": "t", "cost": 11, "age_ms": 0}
    made.append(case("charge_local with a cost above the burst", "charge_local", args, None, ALL))
    return made


def times() -> list[Entry]:
    made = []
    for value in NOT_TIMES:
        for call in ("check", "peek"):
            name = f"{call} with max_delay {shown(value)}"
            made.append(case(name, call, {"tag": "t", "max_delay_ms": value}, "argument", DYNAMIC))
        args: Entry = {"tag": "t", "cost": 1, "age_ms": value}
        name = f"charge_local with age {shown(value)}"
        made.append(case(name, "charge_local", args, "argument", DYNAMIC))
    made.append(good("check with max_delay 0", "check", {"tag": "t", "max_delay_ms": 0}))
    made.append(good("check with max_delay 0.5 ms", "check", {"tag": "t", "max_delay_ms": 0.5}))
    args = {"tag": "t", "cost": 1, "age_ms": 0}
    made.append(case("charge_local with age 0", "charge_local", args, None, ALL))
    return made


def tags() -> list[Entry]:
    made = []
    for call in ("check", "allow", "peek", "refund", "reset", "charge_local"):
        more: Entry = {"cost": 1, "age_ms": 0} if call == "charge_local" else {}
        args: Entry = {"tag": None, **more}
        made.append(case(f"{call} with null as tag", call, args, "argument", POINTERS))
        args = {"tag": 5, **more}
        made.append(case(f"{call} with a number as tag", call, args, "argument", DYNAMIC))
    for name, tag in (("a list", ["t"]), ("a bool", True), ("an empty list", [])):
        made.append(case(f"check with {name} as tag", "check", {"tag": tag}, "argument", DYNAMIC))
    made.append(good("check with an empty tag", "check", {"tag": ""}))
    made.append(good("check with a NUL as tag", "check", {"tag": "\0"}))
    megabyte = {"repeat": "x", "times": 1_048_576}
    made.append(good("check with a tag of a megabyte", "check", {"tag": megabyte}))
    made.append(good("allow with a tag of a megabyte", "allow", {"tag": megabyte}))
    for hexes in ("ff00fe", "", "c328", "eda080"):
        name = f"check with the bytes {hexes or '(none)'} as tag"
        made.append(good(name, "check", {"tag": {"bytes_hex": hexes}}, BYTES))
    return made


def domains() -> list[Entry]:
    made = []
    for name in ("nope", "", "Default", "default ", "default\0"):
        where = [*DYNAMIC, "rust"] if "\0" in name else ALL  # a C string ends at the NUL
        args: Entry = {"tag": "t", "domain": name}
        made.append(case(f"check in domain {name!r}", "check", args, "domain", where))
    for call in ("allow", "peek", "refund", "reset", "charge_local"):
        more: Entry = {"cost": 1, "age_ms": 0} if call == "charge_local" else {}
        args = {"tag": "t", "domain": "nope", **more}
        made.append(case(f"{call} in domain 'nope'", call, args, "domain", ALL))
    args = {"tag": "t", "domain": 5}
    made.append(case("check in domain 5", "check", args, "argument", DYNAMIC))
    made.append(good("check in domain 'default'", "check", {"tag": "t", "domain": "default"}))
    return made


def closed() -> list[Entry]:
    made = []
    for call in ("check", "allow", "peek", "refund", "reset", "charge_local"):
        args: Entry = {"tag": "t"}
        if call == "charge_local":
            args |= {"cost": 1, "age_ms": 0}
        made.append(case(f"{call} after close", call, args, "closed", ALL, closed=True))
    return made


def clock() -> list[Entry]:
    made = [
        case(f"clock advanced by {shown(value)}", "advance", {"ms": value}, "argument", DYNAMIC)
        for value in NOT_TIMES
    ]
    made.append(case("clock advanced by 0", "advance", {"ms": 0}, None, ALL))
    return made
