"""Tests of figures.py: it notices wrong figures, and figures without a command or a commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from figures import dump, fill_document, find_problems, pictures

FIGURES = {"command": "make it", "commit": "0" * 40, "rows": [{"n": 2, "ns": 90964.8}, {"n": 1000}]}
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
TWO_FILES = """<!-- figures: a.json b.json
{a[command]}, {b[command]}
-->
<!-- end of figures -->
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "a.json").write_text(dump(FIGURES))
    (tmp_path / "a.md").write_text(fill_document(TEMPLATE, tmp_path / "figures"))
    return tmp_path


def test_a_template_is_filled_with_the_figures_of_its_file(docs: Path) -> None:
    assert json.loads(dump(FIGURES)) == FIGURES
    text = (docs / "a.md").read_text()
    assert "-->\nMade by `make it`.\n\n| n |\n|---|\n| 2 |\n| 1,000 |\n<!-- end of figures" in text
    assert find_problems(docs) == []
    assert fill_document(text, docs / "figures") == text


def test_a_template_of_two_files_names_the_file_of_each_field(docs: Path) -> None:
    (docs / "figures" / "b.json").write_text(dump({**FIGURES, "command": "make b"}))
    text = fill_document(TWO_FILES, docs / "figures")
    assert "-->\nmake it, make b\n<!-- end of figures" in text


def test_the_conversion_t_formats_nanoseconds_with_a_unit(docs: Path) -> None:
    template = "<!-- figures: a.json\n{rows[0][ns]!t}\n-->\n<!-- end of figures -->"
    assert "-->\n91 µs\n<!-- end" in fill_document(template, docs / "figures")


def test_a_document_that_differs_from_its_figures_is_reported(docs: Path) -> None:
    page = docs / "a.md"
    page.write_text(page.read_text().replace("| 2 |", "| 3 |"))
    assert [problem.split(";")[0] for problem in find_problems(docs)] == [
        "a.md differs from its figures"
    ]


def test_a_figures_comment_without_an_end_comment_is_reported(docs: Path) -> None:
    page = docs / "a.md"
    page.write_text(page.read_text().replace("<!-- end of figures -->", ""))
    assert find_problems(docs) == ["a.md: a figures comment has no template or no end comment"]


@pytest.mark.parametrize("change", [{"commit": "0" * 40 + "-dirty"}, {"command": ""}])
def test_figures_without_a_command_or_a_clean_commit_are_reported(
    docs: Path, change: dict[str, str]
) -> None:
    (docs / "figures" / "a.json").write_text(dump({**FIGURES, **change}))
    problem = "a.json must have `command` and the full, clean `commit`"
    assert problem in find_problems(docs)


def test_a_picture_that_differs_from_its_figures_is_reported(docs: Path) -> None:
    row = {"seconds": 1.0, "limit": 200, "shared": 203, "alone": 600}
    figures = {"command": "make demo", "commit": "0" * 40, "rows": [row]}
    (docs / "figures" / "demo.json").write_text(dump(figures))
    (docs / "plots").mkdir()
    assert [problem.split(";")[0] for problem in find_problems(docs)] == [
        "demo.svg differs from its figures"
    ]
    [(path, picture)] = pictures(docs)
    path.write_text(picture)
    assert "203 with dthrottle" in picture
    assert find_problems(docs) == []
