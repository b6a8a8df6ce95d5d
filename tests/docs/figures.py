"""Keeps measured figures in docs/figures/, and the text of the documents that shows them.

    figures.py keep NAME COMMAND FILE...   keep reports as docs/figures/NAME.json, with the command
                                           and the commit; then write the documents
    figures.py write                       write documents and pictures anew from docs/figures/
    figures.py check                       fail if a document differs from its figures

A document holds a template in a comment. The text between that comment and the next is written by
this program:

    <!-- figures: simulation.json
    | scenario | nodes |
    |---|---|
    | {row[scenario]} | {row[nodes]:,} |
    -->
    | scenario | nodes |
    ...
    <!-- end of figures -->

The fields are those of `str.format`, filled from the file. A line that uses `row` is repeated for
each of its `rows`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pictures import PICTURES

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"(?P<head><!-- figures: (?P<file>\S+)\n(?P<template>.*?)\n-->\n)(?P<text>.*?)"
    r"(?P<end><!-- end of figures -->)",
    re.DOTALL,
)
COMMIT = re.compile(r"[0-9a-f]{40}")


def fill(template: str, figures: dict[str, Any]) -> str:
    """Give the text of a template."""
    lines = []
    for line in template.split("\n"):
        rows = figures["rows"] if "{row[" in line else [None]
        lines += [line.format(row=row, **figures) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def written(text: str, folder: Path) -> str:
    """Give a document with the figures of the files in a folder."""

    def block(found: re.Match[str]) -> str:
        figures = json.loads((folder / found["file"]).read_text())
        return found["head"] + fill(found["template"], figures) + found["end"]

    return BLOCK.sub(block, text)


def faults(docs: Path) -> list[str]:
    """Say what is wrong with the figures and documents of a folder."""
    said = []
    for path in sorted((docs / "figures").glob("*.json")):
        figures = json.loads(path.read_text())
        if not figures.get("command") or not COMMIT.fullmatch(figures.get("commit", "")):
            said.append(f"{path.name} must have the command and the commit that it was made with")
    for path in pages(docs):
        text = path.read_text()
        if text.count("<!-- figures:") != len(BLOCK.findall(text)):
            said.append(f"{path.name}: a figures comment has no template or no end")
        elif text != written(text, docs / "figures"):
            said.append(f"{path.name} differs from its figures; run {sys.argv[0]} write")
    for path, picture in pictures(docs):
        if not path.exists() or path.read_text() != picture:
            said.append(f"{path.name} differs from its figures; run {sys.argv[0]} write")
    return said


def pages(docs: Path) -> list[Path]:
    """Give the documents that may show figures."""
    return sorted([*docs.glob("*.md"), *docs.parent.glob("README.md")])


def pictures(docs: Path) -> Iterator[tuple[Path, str]]:
    """Give each picture whose figures are all there, and where it belongs."""
    for name, (needed, draw) in PICTURES.items():
        files = [docs / "figures" / f"{each}.json" for each in needed]
        if all(file.exists() for file in files):
            figures = (json.loads(file.read_text()) for file in files)
            yield docs / "plots" / f"{name}.svg", draw(dict(zip(needed, figures, strict=True)))


def keep(name: str, command: str, reports: list[Path]) -> None:
    """Write docs/figures/NAME.json. A list becomes its `rows`, one item a line."""
    figures: dict[str, Any] = {"command": command, "commit": commit()}
    for report in reports:
        found = json.loads(report.read_text())
        figures.update({"rows": found} if isinstance(found, list) else found)
    path = ROOT / "docs" / "figures" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(dump(figures))
    print(f"wrote {path.relative_to(ROOT)}")


def dump(figures: dict[str, Any]) -> str:
    """Give JSON whose lines are short enough for a diff."""
    fields = []
    for key, value in figures.items():
        items = value.values() if isinstance(value, dict) else value
        if isinstance(value, str | int | float) or not any(
            isinstance(item, dict | list) for item in items
        ):
            text = json.dumps(value)
        elif isinstance(value, list):
            text = "[\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n ]"
        else:
            pairs = (f"  {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items())
            text = "{\n" + ",\n".join(pairs) + "\n }"
        fields.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def commit() -> str:
    """Give the commit of the checkout. The documents may have changed since, but no code."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    now, before = git("rev-parse", "HEAD"), os.environ.get("FIGURES_COMMIT")
    if before and now != before:
        raise SystemExit(f"the commit changed during the run, from {before} to {now}; run it again")
    return now + ("-dirty" if changed else "")


def write() -> None:
    """Write all documents anew."""
    for path in pages(ROOT / "docs"):
        path.write_text(written(path.read_text(), ROOT / "docs" / "figures"))
    for path, picture in pictures(ROOT / "docs"):
        path.write_text(picture)


def main(words: list[str]) -> None:
    """Do what the command line says."""
    match words:
        case ["keep", name, command, *reports] if reports:
            keep(name, command, [Path(report) for report in reports])
            write()
        case ["write"]:
            write()
        case ["check"]:
            if said := faults(ROOT / "docs"):
                raise SystemExit("\n".join(said))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
