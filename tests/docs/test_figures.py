"""The figures of documents: a wrong one is noticed, and so are figures that nobody can make again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from figures import dump, faults, pictures, written

FIGURES = {"command": "make it", "commit": "0" * 40, "rows": [{"n": 2, "x": 0.5}, {"n": 1000}]}
TEMPLATE = """# A page

<!-- figures: a.json
Made by `{command}`.

| n |
|---|
| {row[n]:,} |
-->
<!-- end of figures -->

More text.
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.json").write_text(dump(FIGURES))
    (tmp_path / "a.md").write_text(written(TEMPLATE, tmp_path / "figures"))
    return tmp_path


def test_a_template_is_filled_with_the_figures(docs: Path) -> None:
    assert json.loads(dump(FIGURES)) == FIGURES
    text = (docs / "a.md").read_text()
    assert "-->\nMade by `make it`.\n\n| n |\n|---|\n| 2 |\n| 1,000 |\n<!-- end of figures" in text
    assert faults(docs) == []
    assert written(text, docs / "figures") == text


def test_a_document_that_differs_from_its_figures_fails(docs: Path) -> None:
    page = docs / "a.md"
    page.write_text(page.read_text().replace("| 2 |", "| 3 |"))
    assert [fault.split(";")[0] for fault in faults(docs)] == ["a.md differs from its figures"]


def test_a_comment_without_an_end_fails(docs: Path) -> None:
    page = docs / "a.md"
    page.write_text(page.read_text().replace("<!-- end of figures -->", ""))
    assert faults(docs) == ["a.md: a figures comment has no template or no end"]


@pytest.mark.parametrize("change", [{"commit": "0" * 40 + "-dirty"}, {"command": ""}])
def test_figures_without_a_clean_commit_and_command_fail(
    docs: Path, change: dict[str, str]
) -> None:
    (docs / "figures" / "a.json").write_text(dump({**FIGURES, **change}))
    assert "a.json must have the command and the commit that it was made with" in faults(docs)


def test_a_picture_that_differs_from_its_figures_fails(docs: Path) -> None:
    row = {"seconds": 1.0, "limit": 200, "shared": 203, "alone": 600}
    figures = {"command": "make demo", "commit": "0" * 40, "rows": [row]}
    (docs / "figures" / "demo.json").write_text(dump(figures))
    (docs / "plots").mkdir()
    assert [fault.split(";")[0] for fault in faults(docs)] == ["demo.svg differs from its figures"]
    [(path, picture)] = pictures(docs)
    path.write_text(picture)
    assert "203 with dthrottle" in picture
    assert faults(docs) == []
