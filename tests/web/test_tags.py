"""Clients that send any value as a tag, in real servers and frameworks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from servers import Server, gunicorn, uvicorn

VECTORS: dict[str, list[dict[str, str]]] = json.loads(
    (Path(__file__).parents[1] / "vectors/tags.json").read_text(encoding="utf-8")
)

SITES: dict[str, tuple[Any, str, list[str]]] = {
    "wsgi": (gunicorn, "wsgi_app:application", ["/value"]),
    "asgi": (uvicorn, "asgi_app:app", ["/value"]),
    "flask": (gunicorn, "flask_app:application", ["/value"]),
    "django": (gunicorn, "django_app:application", ["/value", "/value_later"]),
    "django async": (uvicorn, "django_app:app", ["/value", "/value_later"]),
    "fastapi": (uvicorn, "fastapi_app:app", ["/value"]),
}


def status_of(server: Server, path: str, value: str) -> int:
    """Send a value in JSON, and return the status of the answer."""
    kind = "application/json"
    return server.get(path, method="POST", body=value, Content_Type=kind, X_Value=value)[0]


@pytest.mark.parametrize("kind", SITES)
def test_client_is_limited_whatever_value_it_sends(folder: Path, kind: str) -> None:
    run, spec, paths = SITES[kind]
    with run(folder, app=spec) as server:
        for path in paths:
            for case in VECTORS["usable"]:
                assert [status_of(server, path, case["json"]) for _ in "12"] == [200, 429], case
            # All other values share the bucket of the address.
            statuses = [status_of(server, path, case["json"]) for case in VECTORS["unusable"]]
            assert statuses == [200] + [429] * (len(statuses) - 1)
