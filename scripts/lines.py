#!/usr/bin/env python3
"""Count the lines of shipped code in each part: no comments, no blank lines, no tests.

lines.py [COMMIT] counts a commit, or the working tree. It does not count doc comments, docstrings of
Python, items of Rust under `#[cfg(test)]`, files and folders of tests, and generated files.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

PARTS = ("core/src/", "bindings-", "daemon/src/", "cli/src/", "modules/")
SKIPPED = re.compile(r"(^|/)(tests?|examples|pkg)/|/tests\.rs$|/build\.rs$")
# Strings are matched first, because they may contain the start of a comment.
STRING = r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\])*\""
COMMENT = r"//[^\n]*|/\*.*?\*/"
REGEX = r"(?<=[=(,:;!&|?\[{}\n] )/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/|"
REGEX += r"(?<=[(\[!])/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/"
SYNTAX = {
    "rs": rf"(r(#*)\"[\s\S]*?\"\2|'(?:\\[^\n]{{1,9}}?|[^\\'\n])'|\"(?:\\.|[^\"\\])*\")|{COMMENT}",
    "js": rf"({STRING}|`(?:\\.|[^`\\])*`|{REGEX})()|{COMMENT}",
    "c": rf"({STRING})()|{COMMENT}",
    "html": r"(?!)()()|<!--.*?-->",
}
KINDS = {"mjs": "js", "mts": "js", "ts": "js", "h": "c", "pyi": "py"}


def without_comments(text: str, kind: str, *, keep_strings: bool) -> str:
    """Return the text with comments replaced by blanks, and strings too unless they are kept."""

    def blank(found: re.Match[str]) -> str:
        if keep_strings and found[1] is not None:
            return found[0]
        return re.sub(r"[^\n]", " ", found[0])

    return re.sub(SYNTAX[kind], blank, text, flags=re.DOTALL)


def without_tests(text: str, bare: str) -> str:
    """Return Rust without items under `#[cfg(test)]`; `bare` is the same text without strings."""
    kept, start = [], 0
    for found in re.finditer(r"#\[cfg\((?:all\()?test\b[^\]]*\]", bare):
        if found.start() < start:
            continue
        end, depth = found.end(), 0
        while end < len(bare):
            letter = bare[end]
            end += 1
            depth += (letter in "{([") - (letter in "})]")
            if depth == 0 and letter in ";},":
                break
        kept.append(text[start : found.start()])
        start = end
    return "".join([*kept, text[start:]])


def python_lines(text: str) -> int:
    """Return the number of lines with Python code, without docstrings."""
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    ignored |= {tokenize.ENCODING, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in ignored:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                lines.difference_update(range(first, last + 1))
    return len(lines)


def count(path: str, text: str) -> int:
    """Return the lines of code in a file, or 0 if it is not source code."""
    suffix = path.rpartition(".")[2]
    kind = KINDS.get(suffix, suffix)
    if kind == "py":
        return python_lines(text)
    if kind not in SYNTAX:
        return 0
    code = without_comments(text, kind, keep_strings=True)
    if kind == "rs":
        code = without_tests(code, without_comments(text, kind, keep_strings=False))
    return sum(1 for line in code.splitlines() if line.strip())


def part(path: str) -> str:
    """Return the row of the table that a file belongs to."""
    folders = path.split("/")
    if path.startswith("core/src/"):
        return "core/" + (folders[2] if len(folders) > 3 else "")
    return "/".join(folders[:2]) if folders[0] == "modules" else folders[0]


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(("git", *arguments), check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Print the table."""
    commit = sys.argv[1] if len(sys.argv) > 1 else ""
    listed = (
        ("ls-tree", "-r", "--name-only", commit)
        if commit
        else ("ls-files", "-co", "--exclude-standard")
    )
    sums: Counter[str] = Counter()
    for path in git(*listed).splitlines():
        if path.startswith(PARTS) and not SKIPPED.search(path) and (commit or Path(path).exists()):
            kind = path.rpartition(".")[2]
            if KINDS.get(kind, kind) in (*SYNTAX, "py"):
                text = git("show", f"{commit}:{path}") if commit else Path(path).read_text("utf-8")
                sums[part(path)] += count(path, text)
    for name, lines in sorted(sums.items()):
        print(f"{name:<18}{lines:>7}")
    core = sum(lines for name, lines in sums.items() if name.startswith("core/"))
    print(f"{'core, total':<18}{core:>7}\n{'total':<18}{sum(sums.values()):>7}")


if __name__ == "__main__":
    main()
