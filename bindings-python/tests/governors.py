"""Governors around a small application, with files of EOM Governor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from web import Answer

from dthrottle import ManualClock
from dthrottle.governor import Governor, wrap

INI = """\
[DEFAULT]
verbose = 100%

[eom:governor]
rates_file = governor.json
project_rates_file = governor_project.json
throttle_milliseconds = 0

[eom:redis]
host = 192.168.3.11
port = 6379
"""


def rate(name: str = "all", limit: float = 2, velocity: float = 1, **more: Any) -> dict[str, Any]:
    """Return an entry of a rates file."""
    return {"name": name, "limit": limit, "drain_velocity": velocity, **more}


def write(folder: Path, rates: Any = (), project_rates: Any = (), ini: str = INI) -> Path:
    """Write the configuration files. Rates that are given as text are written unchanged."""
    for name, content in (("governor.json", rates), ("governor_project.json", project_rates)):
        text = content if isinstance(content, str) else json.dumps(list(content), indent=2)
        (folder / name).write_text(text, "utf-8")
    path = folder / "eom.conf"
    path.write_text(ini, "utf-8")
    return path


def hello(_environ: Any, start_response: Any) -> list[bytes]:
    """Answer one request."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-App", "1")])
    return [b"hello"]


class GovernorClient:
    """Sends requests to an application with a Governor around it."""

    def __init__(self, config: Any, clock: ManualClock | None = None, **options: Any) -> None:
        if clock is not None:
            options["clock"] = clock
        self.wrapped: Governor = wrap(hello, config, **options)

    def get(self, path: str = "/", project: str | None = "p", method: str = "GET") -> Answer:
        """Send a request of a project."""
        environ: dict[str, Any] = {"REQUEST_METHOD": method, "SCRIPT_NAME": ""}
        environ["PATH_INFO"] = path.encode().decode("latin-1")
        if project is not None:
            environ["HTTP_X_PROJECT_ID"] = project.encode().decode("latin-1")
        started: list[Any] = []
        start: Any = lambda *given: started.append(given)  # noqa: E731
        body = b"".join(self.wrapped(environ, start))
        ((status, pairs),) = started
        given = {name.lower(): value for name, value in pairs}
        assert len(given) == len(pairs)
        return Answer(int(status.split()[0]), given, body, environ)

    def statuses(self, count: int, *given: Any, **more: Any) -> list[int]:
        """Send a number of requests, and return their statuses."""
        return [self.get(*given, **more).status for _ in range(count)]
