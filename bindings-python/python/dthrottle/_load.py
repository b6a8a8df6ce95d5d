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
    # The file stays open, because the dynamic linker identifies loaded files by their paths.
    file = os.memfd_create("dthrottle")
    with open(file, "wb", closefd=False) as copy:
        copy.write(Path(spec.origin).read_bytes())
    path = f"/proc/self/fd/{file}"
    loader = ExtensionFileLoader(_NAME, path)
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError:
        os.close(file)
        message = (
            "dthrottle cannot be loaded in an isolated subinterpreter, which has a lock of its own; "
            "use threads or processes"
        )
        raise ImportError(message, name=_NAME) from error
    sys.modules[_NAME] = module
