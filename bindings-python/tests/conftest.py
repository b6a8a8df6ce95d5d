"""What the tests share."""

from __future__ import annotations

import pytest

from dthrottle import ManualClock, Throttle


@pytest.fixture
def clock() -> ManualClock:
    """Give a clock at zero."""
    return ManualClock()


@pytest.fixture
def throttle(clock: ManualClock) -> Throttle:
    """Give a throttle of ten units a second, ten at once."""
    return Throttle("10/s", clock=clock)
