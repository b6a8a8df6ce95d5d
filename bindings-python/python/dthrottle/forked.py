"""What a forked child begins anew.

Only the thread that forks goes on in the child: locks that others held would stay taken, and their
requests would keep their places.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["in_child"]

_T = TypeVar("_T")

_all: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def in_child(owner: _T, begin: Callable[[_T], None]) -> None:
    """Call ``begin(owner)`` in every child that is forked while the owner lives."""
    _all[owner] = begin


def _after_fork() -> None:
    for owner, begin in list(_all.items()):
        begin(owner)


# Nobody forks where this is missing.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
