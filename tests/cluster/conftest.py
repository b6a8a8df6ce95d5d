"""Checks the requirements of the tests."""

from __future__ import annotations

import os

import pytest


def pytest_sessionstart() -> None:
    if os.geteuid() != 0:
        pytest.exit("these tests create network namespaces; run them as root", returncode=1)
