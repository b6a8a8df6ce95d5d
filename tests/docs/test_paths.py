"""The paths in ARCHITECTURE.md and the links in all documents exist."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
EXTENSIONS = ("c", "h", "html", "js", "json", "md", "mk", "mjs", "py", "pyi", "rs", "toml", "ts")


def tracked() -> list[str]:
    """Return the files of the checkout and their folders, which end with a slash."""
    command = ["git", "-C", str(ROOT), "ls-files"]
    files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    folders = {f"{parent}/" for file in files for parent in Path(file).parents}
    return [*files, *folders]


FILES = tracked()


def exists(path: str) -> bool:
    """Return whether a path exists. It may be relative to any folder, and contain wildcards."""
    return any(fnmatchcase(f"/{file}", f"*/{path}") for file in FILES)


def is_file(text: str) -> bool:
    """Return whether text is the path of a file."""
    return text.rpartition(".")[2] in EXTENSIONS and bool(PATH.fullmatch(text))


def is_path(text: str) -> bool:
    """Return whether text is a path. `NAME` in capital letters stands for any name."""
    is_folder = "/" in text and bool(PATH.fullmatch(text))
    return (is_file(text) or is_folder) and "NAME" not in text


def tree_paths(tree: str) -> Iterator[str]:
    """Yield the paths of a tree. An indented line belongs to the folder above it.

    A line begins with names that are separated by commas. Those after the first are in the same
    folder as the first, or have a folder of their own. Other files on the line may be anywhere.
    """
    folders: dict[int, str] = {}
    for line in tree.splitlines():
        indent = len(line) - len(line.lstrip())
        names, *description = re.split(r" {2,}", line.strip(), maxsplit=1)
        yield from filter(is_file, re.split(r"[\s,;:()]+", " ".join(description)))
        first, *others = names.split(", ")
        if not is_path(first):
            continue
        above = folders.get(indent - 2, "")
        folders[indent] = above + first
        beside = re.sub(r"[^/]*/?$", "", first)
        yield above + first
        for name in others:
            yield above + (name if "/" in name.rstrip("/") else beside + name)


def missing_paths(text: str) -> list[str]:
    """Return the paths of a document that do not exist."""
    paths = [path for tree in TREE.findall(text) for path in tree_paths(tree)]
    paths += [word for span in CODE.findall(FENCE.sub("", text)) for word in span.split()]
    return [path for path in paths if is_path(path) and not exists(path)]


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a document, as GitHub makes them."""
    headings = (heading.lower() for heading in HEADING.findall(FENCE.sub("", text)))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Return the links of a page to files and headings that do not exist."""
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if ":" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            broken.append(link)
    return broken


def test_every_path_in_architecture_md_exists() -> None:
    assert missing_paths((ROOT / "ARCHITECTURE.md").read_text()) == []


def test_a_missing_path_is_noticed() -> None:
    tree = "```\ncore/    the core\n  src/domain.rs, gone.rs   calls; lost.rs\n```\n"
    assert missing_paths(tree) == ["lost.rs", "core/src/gone.rs"]
    text = "`core/src/domain.rs` `gone.rs` `core/src/gone/` `stats().evicted` `list_*.py` `x_*.py`"
    assert missing_paths(text) == ["gone.rs", "core/src/gone/", "x_*.py"]


@pytest.mark.parametrize("page", [file for file in FILES if file.endswith(".md")])
def test_every_link_of_a_document_leads_to_a_file_and_heading(page: str) -> None:
    assert broken_links(ROOT / page) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# A `b`, c\n[x](#a-b-c) [x](a.md#gone) [x](b.md) [x](https://example.org)\n")
    assert broken_links(page) == ["a.md#gone", "b.md"]
