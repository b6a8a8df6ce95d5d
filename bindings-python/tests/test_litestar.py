"""The middleware in Litestar, which gives the application by keyword."""

from __future__ import annotations

from typing import Any

import pytest
from litestar import Litestar, get
from litestar.middleware.base import DefineMiddleware
from litestar.testing import TestClient

from dthrottle import asgi, wsgi


@get("/")
async def hello() -> str:
    return "hello"


MIDDLEWARE: Any = asgi.ThrottleMiddleware


@pytest.mark.parametrize(
    "middleware",
    [
        DefineMiddleware(MIDDLEWARE, "2/hour", table=False),
        DefineMiddleware(MIDDLEWARE, throttle="2/hour", table=False),
    ],
)
def test_middleware_throttles_an_application_and_its_test_client(middleware: Any) -> None:
    with TestClient(Litestar([hello], middleware=[middleware], logging_config=None)) as client:
        answers = [client.get("/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[0].headers["ratelimit"] == '"default";r=1;t=1800'


@pytest.mark.parametrize("made", [asgi.ThrottleMiddleware, wsgi.ThrottleMiddleware])
def test_missing_and_superfluous_arguments_are_type_errors(made: Any) -> None:
    app: Any = object()
    positional: Any
    named: Any
    for positional, named in [((), {}), ((app,), {}), ((app, "1/s", 5), {}), ((), {"app": app})]:
        with pytest.raises(TypeError, match="takes an application and a throttle"):
            made(*positional, **named)
    for positional, named in [
        ((app, "1/s"), {}),
        (("1/s",), {"app": app}),
        ((app,), {"throttle": "1/s"}),
    ]:
        assert made(*positional, **named, table=False).app is app
