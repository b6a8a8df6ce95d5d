"""Tests the model, and writes the vectors into this directory. With --check, writes no file.

python3 tests/vectors/make.py           write
python3 tests/vectors/make.py --check   exit 1 if a file would change
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import cases_bucket
import cases_change
import cases_clock
import cases_domains
import cases_options
import cases_rates
import cases_rules
import list_clusters
import list_tables
import selftest
import selftest_wire
from list_addresses import addresses
from list_bad_configs import bad
from list_calls import calls
from list_configs import good
from list_dropped import dropped
from list_inputs import errors, inputs
from list_protocol import keys, later, written
from list_rates import rates
from list_tags import tags
from list_web import web
from sequence import Sequence

HERE = Path(__file__).parent
CASES = (
    cases_bucket,
    cases_change,
    cases_options,
    cases_domains,
    cases_rules,
    cases_rates,
    cases_clock,
)


def files() -> dict[str, str]:
    sequences = [sequence for module in CASES for sequence in module.cases()]
    names = [sequence.name for sequence in sequences]
    assert len(set(names)) == len(names), "the names of sequences must be unique"
    return {
        "sequences.json": listed([in_lines(sequence) for sequence in sequences]),
        "rates.json": grouped(rates()),
        "configs.json": grouped(
            {
                "good": [*good(), *list_tables.good(), *list_clusters.good()],
                "bad": [*bad(), *list_tables.bad(), *list_clusters.bad()],
            }
        ),
        "addresses.json": grouped(addresses()),
        "calls.json": grouped(calls()),
        "tags.json": grouped(tags()),
        "web.json": grouped(web()),
        "errors.json": listed([line(entry) for entry in errors()]),
        "inputs.json": listed([line(entry) for entry in inputs()]),
        "protocol.json": grouped(
            {"keys": keys(), "written": written(), "later": later(), "dropped": dropped()}
        ),
    }


# The files are JSON with one step or one case per line.


def line(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def listed(items: list[str]) -> str:
    return "[\n" + ",\n".join(items) + "\n]\n"


def grouped(groups: Mapping[str, list[dict[str, object]]]) -> str:
    parts = [f"{line(name)}: {listed([line(e) for e in group])}" for name, group in groups.items()]
    return "{\n" + ",\n".join(part.rstrip() for part in parts) + "\n}\n"


def in_lines(sequence: Sequence) -> str:
    steps = ",\n".join("  " + line(step) for step in sequence.steps)
    return (
        f'{{"name": {line(sequence.name)},\n "why": {line(sequence.why)},\n'
        f' "config": {line(toml(sequence.config))},\n'
        f' "throttles": {line(list(sequence.throttles))},\n "steps": [\n{steps}\n ]}}'
    )


def toml(config: Mapping[str, object]) -> str:
    """Return a configuration as TOML. Domains become tables, and rules inline tables."""
    top = {key: value for key, value in config.items() if key != "domains"}
    text = "".join(f"{key} = {toml_value(value)}\n" for key, value in top.items())
    domains = config.get("domains", {})
    assert isinstance(domains, Mapping)
    for name, table in domains.items():
        text += f"\n[domains.{line(name)}]\n{toml(table)}"
    return text


def toml_value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + "".join(f"\n  {toml_value(item)}," for item in value) + "\n]"
    return line(value)  # texts, numbers and bools are written as in JSON


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    selftest.run()
    selftest_wire.run()
    stale = []
    for name, text in files().items():
        path = HERE / name
        if not arguments:
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_bytes() != text.encode():
            stale.append(name)
    if stale:
        print(f"tests/vectors: {', '.join(stale)} differ from what make.py writes.")
        print("Run python3 tests/vectors/make.py and look at the difference before committing it.")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
