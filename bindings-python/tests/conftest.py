"""Fixtures of all tests."""

from __future__ import annotations

import pytest

from dthrottle import ManualClock, Throttle


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock at zero."""
    return ManualClock()


@pytest.fixture
def throttle(clock: ManualClock) -> Throttle:
    """Return a throttle with ten units per second and a burst of ten."""
    return Throttle("10/s", clock=clock)
