"""Stores measured figures in docs/figures/, and fills them into the documents.

    figures.py keep NAME COMMAND FILE...   store reports as docs/figures/NAME.json, with the command
                                           and the commit, then update the documents
    figures.py write                       update documents and pictures from docs/figures/
    figures.py check                       fail if a document differs from its figures

A document has a template in a comment. This program writes the text between that comment and the
end comment:

    <!-- figures: simulation.json
    | scenario | nodes |
    |---|---|
    | {row[scenario]} | {row[nodes]:,} |
    -->
    | scenario | nodes |
    ...
    <!-- end of figures -->

The fields are those of `str.format`, taken from the file. A line that uses `row` is repeated for
each item of `rows`. The conversion `!t` formats nanoseconds with a unit: `{figures[hot_ns]!t}`. A
comment may name several files; then each field begins with the name of its file:
`{simulation[command]}`.
"""

from __future__ import annotations

import json
import os
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pictures import PICTURES, duration

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"(?P<head><!-- figures: (?P<files>[^\n]+)\n(?P<template>.*?)\n-->\n)(?P<text>.*?)"
    r"(?P<end><!-- end of figures -->)",
    re.DOTALL,
)
COMMIT = re.compile(r"[0-9a-f]{40}")


class Formatter(string.Formatter):
    """Formats like `str.format`, and durations by the conversion `t`."""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        """Apply the conversion of a field."""
        if conversion == "t":
            return duration(value)
        return super().convert_field(value, conversion)


def fill_template(template: str, figures: dict[str, Any]) -> str:
    """Return the text of a template."""
    lines = []
    for line in template.split("\n"):
        rows = figures["rows"] if "{row[" in line else [None]
        lines += [Formatter().format(line, row=row, **figures) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def fill_document(text: str, folder: Path) -> str:
    """Return a document with the figures of the files in `folder`."""

    def block(found: re.Match[str]) -> str:
        files = [folder / name for name in found["files"].split()]
        contents = {file.stem: json.loads(file.read_text()) for file in files}
        figures = contents if len(files) > 1 else contents[files[0].stem]
        return found["head"] + fill_template(found["template"], figures) + found["end"]

    return BLOCK.sub(block, text)


def find_problems(docs: Path) -> list[str]:
    """List what is wrong with the figures and documents of a folder."""
    problems = []
    for path in sorted((docs / "figures").glob("*.json")):
        figures = json.loads(path.read_text())
        if not figures.get("command") or not COMMIT.fullmatch(figures.get("commit", "")):
            problems.append(f"{path.name} must have `command` and the full, clean `commit`")
    for path in pages(docs):
        text = path.read_text()
        if text.count("<!-- figures:") != len(BLOCK.findall(text)):
            problems.append(f"{path.name}: a figures comment has no template or no end comment")
        elif text != fill_document(text, docs / "figures"):
            problems.append(f"{path.name} differs from its figures; run `make figures`")
    for path, picture in pictures(docs):
        if not path.exists() or path.read_text() != picture:
            problems.append(f"{path.name} differs from its figures; run `make figures`")
    return problems


def pages(docs: Path) -> list[Path]:
    """Return the documents that may show figures."""
    return sorted([*docs.glob("*.md"), *docs.parent.glob("README.md")])


def pictures(docs: Path) -> Iterator[tuple[Path, str]]:
    """Yield the path and the SVG of each picture whose figures exist."""
    for name, (needed, draw) in PICTURES.items():
        files = [docs / "figures" / f"{each}.json" for each in needed]
        if all(file.exists() for file in files):
            figures = (json.loads(file.read_text()) for file in files)
            yield docs / "plots" / f"{name}.svg", draw(dict(zip(needed, figures, strict=True)))


def keep(name: str, command: str, reports: list[Path]) -> None:
    """Write docs/figures/NAME.json. A report that is a list is stored as `rows`."""
    figures: dict[str, Any] = {"command": command, "commit": commit()}
    for report in reports:
        found = json.loads(report.read_text())
        figures.update({"rows": found} if isinstance(found, list) else found)
    path = ROOT / "docs" / "figures" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(dump(figures))
    print(f"wrote {path.relative_to(ROOT)}")


def dump(figures: dict[str, Any]) -> str:
    """Return JSON with one item per line, so that diffs are readable."""
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
    """Return the commit, with "-dirty" appended if files outside docs/ have changed."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    changed = git(
        "status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!README.md"
    )
    now, before = git("rev-parse", "HEAD"), os.environ.get("FIGURES_COMMIT")
    if before and now != before:
        raise SystemExit(f"HEAD moved from {before} to {now} during the run; measure again")
    return now + ("-dirty" if changed else "")


def write() -> None:
    """Update all documents and pictures."""
    for path in pages(ROOT / "docs"):
        path.write_text(fill_document(path.read_text(), ROOT / "docs" / "figures"))
    for path, picture in pictures(ROOT / "docs"):
        path.write_text(picture)


def main(arguments: list[str]) -> None:
    """Run the subcommand."""
    match arguments:
        case ["keep", name, command, *reports] if reports:
            keep(name, command, [Path(report) for report in reports])
            write()
        case ["write"]:
            write()
        case ["check"]:
            if problems := find_problems(ROOT / "docs"):
                raise SystemExit("\n".join(problems))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
