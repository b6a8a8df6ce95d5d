"""Fixtures of the tests with real servers."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import tables


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder for an application, and remove its tables afterwards."""
    made = tmp_path / f"web{os.getpid()}-{random.getrandbits(32):08x}"
    yield made
    for table in tables(made):
        table.unlink()
