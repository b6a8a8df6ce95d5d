"""The name of the running application, which its table gets.

All workers of an application must compute the same name, however their server starts them, also
after a restart. Another application, or the same one in another folder, must get another name. So
the name is made of what the workers of one server have in common:

- the folder that they run in;
- the application as the command line names it, ``shop.wsgi:app``, or else the whole command line;
  under uWSGI, which hides its command line, the option that names the application;
- the Python environment (``sys.prefix``);
- the file of the application that makes the middleware, if it is on the stack.

The user is not part of the name, because users have separate tables anyway.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from dthrottle._dthrottle import application_table_name

__all__ = ["application_name"]

# The syntax of gunicorn, uvicorn, hypercorn, granian and waitress; not unix:/run/a.sock.
_SPEC = re.compile(r"(?!(?:unix|fd|tcp):)[A-Za-z_][\w.]*:[A-Za-z_][\w.]*(?:\(.*\))?")
_UWSGI_OPTIONS = ("module", "wsgi", "wsgi-file", "file", "mount", "paste", "ini")


def application_name(made_in: str | None = None) -> str | None:
    """Return a name for a table; None in an interactive Python.

    ``made_in`` names the application, for adapters whose middleware may be made in several files.
    """
    command = sys.argv[0] if sys.argv else ""
    if command in ("", "-", "-c"):
        return None
    folder = _folder()
    spec = made_in or _uwsgi() or _spec(sys.argv[1:], folder)
    # Processes that multiprocessing spawns get the absolute path of the command.
    line = "\0".join([str(Path(folder, command)), *sys.argv[1:]])
    identity = [folder, spec or line, sys.prefix, made_in or _file_on_the_stack(folder, command)]
    shown = [Path(folder).name, spec or Path(command).name]
    return application_table_name([*map(_text, shown)], [*map(_text, identity)])


def _folder() -> str:
    """Return the folder by the path in PWD, which may contain a link that changes with a release."""
    try:
        folder = Path.cwd()
    except OSError:  # the folder was removed
        return ""
    entered = Path(os.environ.get("PWD", ""))
    try:
        return str(entered if entered.is_absolute() and entered.samefile(folder) else folder)
    except OSError:
        return str(folder)


def _spec(arguments: list[str], folder: str) -> str:
    specs = [text for text in arguments if _SPEC.fullmatch(text)]
    # In gunicorn, shop.wsgi means shop.wsgi:application.
    modules = [text for text in arguments if _is_module(text, folder)]
    return next(iter(specs or modules), "")


def _is_module(text: str, folder: str) -> bool:
    """Return whether this is a module in the folder that is loaded or being loaded."""
    file = getattr(sys.modules.get(text), "__file__", None)
    return file is not None and Path(folder, file).is_relative_to(folder)


def _uwsgi() -> str:
    module: Any = sys.modules.get("uwsgi")
    options: dict[Any, Any] = getattr(module, "opt", {})
    for name in _UWSGI_OPTIONS:
        value = options.get(name, options.get(name.encode()))
        if value:
            values = value if isinstance(value, list) else [value]
            return " ".join(
                v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values
            )
    return ""


def _file_on_the_stack(folder: str, command: str) -> str:
    """Return the innermost file that is not of Python, a package, or the command itself."""
    others = (str(Path(__file__).parent), str(Path(os.__file__).parent))
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        inside = file.startswith("<") or file.startswith(others)
        packaged = "site-packages" in file or "dist-packages" in file
        path = Path(folder, file)
        if not inside and not packaged and path != Path(folder, command):
            return str(path)
        frame = frame.f_back
    return ""


def _text(text: str) -> str:
    """Return text without lone surrogates, which stand for bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
