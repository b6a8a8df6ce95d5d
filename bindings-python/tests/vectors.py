"""Reads the vectors that all languages share; `tests/vectors/README.md` explains them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dthrottle import UNLIMITED, Decision, DthrottleError
from dthrottle.errors import BY_KIND

REPOSITORY = Path(__file__).parents[2]

NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
TIMES = ("delay", "retry_after", "reset_after")


def read(name: str) -> Any:
    """Read a file of vectors."""
    return json.loads((REPOSITORY / "tests" / "vectors" / f"{name}.json").read_text("utf-8"))


def number(value: Any) -> Any:
    """Return a number of the vectors, in which strings stand for NaN and the infinities."""
    return NUMBERS.get(value, value) if isinstance(value, str) else value


def raises(kind: str) -> pytest.RaisesExc[DthrottleError]:
    """Expect an error of this kind."""
    return pytest.raises(BY_KIND[kind], check=lambda error: error.kind == kind)


def agrees(answer: Decision | bool | None, expect: Any) -> None:
    """Compare an answer with the expected fields; other fields may have any value."""
    if not isinstance(expect, dict):
        assert answer is expect
        return
    assert isinstance(answer, Decision)
    for name, value in expect.items():
        if name.removesuffix("_ns") in TIMES:
            ns = getattr(answer, name.removesuffix("_ns")) * 1e9
            assert abs(ns - value) <= 2 + 1e-12 * value, name
        elif value == "unlimited" and name != "rule":
            assert getattr(answer, name) == (2**63 - 1 if name == "balance" else UNLIMITED), name
        else:
            assert getattr(answer, name) == value, name
