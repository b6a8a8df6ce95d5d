"""Resets the state of objects in forked children.

Only the thread that forks exists in the child. Locks that other threads held would stay locked, and
their requests would stay in queues.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["in_child"]

_T = TypeVar("_T")

_all: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def in_child(owner: _T, reset: Callable[[_T], None]) -> None:
    """Call ``reset(owner)`` in every child that is forked while the owner exists."""
    _all[owner] = reset


def _after_fork() -> None:
    for owner, reset in list(_all.items()):
        reset(owner)


# Platforms without it have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
