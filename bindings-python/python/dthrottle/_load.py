"""Loads the native module, also in a second interpreter of a process.

mod_wsgi and uWSGI run several applications of one process in an interpreter each. The native module
keeps its classes in static memory, so it serves only the interpreter that loads it first. Another
interpreter therefore loads a copy of the file, which has static memory of its own. Both find the
same named tables, as two processes would.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

_NAME = "dthrottle._dthrottle"


def load() -> None:
    """Import the native module."""
    try:
        importlib.import_module(_NAME)
    except ImportError as error:
        if "subinterpreters" not in str(error):
            raise
        _load_copy(error)


def _load_copy(error: ImportError) -> None:
    spec = importlib.util.find_spec(_NAME)
    if spec is None or spec.origin is None or not hasattr(os, "memfd_create"):
        raise error
    try:
        sys.modules[_NAME] = _copy_of(Path(spec.origin))
    except (ImportError, OSError) as cause:
        message = (
            f"dthrottle cannot be loaded in another interpreter: {cause}; an isolated subinterpreter, "
            "which has a lock of its own, is not supported; use threads or processes"
        )
        raise ImportError(message, name=_NAME) from cause


def _copy_of(origin: Path) -> ModuleType:
    file = os.memfd_create("dthrottle")
    try:
        with open(file, "wb", closefd=False) as copy:
            copy.write(origin.read_bytes())
        # Python and the dynamic linker identify loaded files by their paths. Daemons may close all
        # descriptors, so the number of this one may have been used before. Random redundant "/" and
        # "./" make each path unique.
        bits = f"{int.from_bytes(os.urandom(8), 'big'):064b}"
        path = f"/proc/self/fd/{bits.replace('0', '/').replace('1', './')}{file}"
        loader = ExtensionFileLoader(_NAME, path)
        spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except BaseException:
        os.close(file)
        raise
    return module
