"""Limits of routes in real servers with several workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import http_sf
import pytest
from load import ALLOWED, REFUSED, Load
from servers import gunicorn, tables, uvicorn

BURST = 100
REQUESTS = 3 * BURST

SITES: dict[str, tuple[Any, str, list[str]]] = {
    "flask": (gunicorn, "flask_app:application", ["/burst"]),
    "django": (gunicorn, "django_app:application", ["/burst", "/later"]),
    "django async": (uvicorn, "django_app:app", ["/burst", "/later"]),
    "fastapi": (uvicorn, "fastapi_app:app", ["/burst"]),
}


@pytest.mark.parametrize("kind", SITES)
def test_workers_share_the_limits_of_routes(folder: Path, kind: str) -> None:
    run, spec, paths = SITES[kind]
    with run(folder, app=spec) as server:
        for path in paths:
            results = Load(server, path, "a", REQUESTS).join()
            assert results.statuses == {ALLOWED: BURST, REFUSED: REQUESTS - BURST}
            assert len(results.processes) > 1, "only one worker answered"
            assert server.get(path, X_Client="b")[0] == ALLOWED
        # Two routes share the buckets of a shared limit.
        one = Load(server, "/one", "a", 70).join()
        two = Load(server, "/two", "a", 70).join()
        assert one.statuses[ALLOWED] + two.statuses[ALLOWED] == BURST
        assert two.statuses[REFUSED] == 40

        status, headers, _ = server.get("/one", X_Client="c")
        policies: Any = http_sf.parse(headers["ratelimit-policy"].encode(), tltype="list")
        name, parameters = policies[0]
        assert (status, name, parameters["q"]) == (ALLOWED, "1 per 100 years burst=100", BURST)
        status, headers, _ = server.get("/one", X_Client="a")
        assert (status, int(headers["retry-after"]) > 10**9) == (REFUSED, True)
        assert len(tables(folder)) == 1
    with run(folder, app=spec) as server:
        assert server.get(paths[0], X_Client="a")[0] == REFUSED, "the bucket survives a restart"
        assert len(tables(folder)) == 1


@pytest.mark.parametrize("kind", SITES)
def test_workers_with_private_tables_count_separately(folder: Path, kind: str) -> None:
    run, spec, paths = SITES[kind]
    with run(folder, app=spec, table=False) as server:
        results = Load(server, paths[0], "a", REQUESTS).join()
    assert BURST < results.statuses[ALLOWED] <= BURST * len(results.processes)
    assert tables(folder) == []
