"""mypy checks an application that uses the middleware."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

GOOD = """
from collections.abc import Iterable
from typing import Annotated, Any
from wsgiref.types import StartResponse, WSGIEnvironment

import fastapi
import flask

from dthrottle import Decision, Throttle
from dthrottle.address import client_address
from dthrottle.asgi import ThrottleMiddleware as Asgi
from dthrottle.django import limit
from dthrottle.fastapi import Limiter as FastLimiter
from dthrottle.flask import Limiter
from dthrottle.governor import wrap
from dthrottle.wsgi import ThrottleMiddleware


def hello(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [])
    return [b"hello"]


def tag(environ: WSGIEnvironment) -> str | bytes | None:
    return client_address(environ.get("REMOTE_ADDR"), trusted_proxies=1)


def refused(environ: WSGIEnvironment, decision: Decision) -> None:
    print(environ["PATH_INFO"], decision.retry_after)


async def later(scope: Any, receive: Any, send: Any) -> None: ...


app = ThrottleMiddleware(hello, "100/s", burst=200, tag=tag, on_refused=refused)
app = ThrottleMiddleware(app, Throttle("1/s"), headers="draft-7", methods=["POST"], allow=["::1"])
app = ThrottleMiddleware(app, {"rate": "1/s"}, table=False, body={"error": "slow down"})
count: int = app.counts.refused
asgi = Asgi(Asgi(later, "1/s"), 5, max_delay=0.5, trusted_proxies=["10.0.0.0/8"])

shop = flask.Flask("shop")
limiter = Limiter(shop, default_limits=["100/minute", "1000/day"], tag="header:X-Api-Key")


@shop.post("/login")
@limiter.limit("5/minute", burst=10, on_refused=lambda request, decision: None)
def login() -> str:
    return "hello"


word: str = login()
api = fastapi.FastAPI()
fast = FastLimiter(cluster={"name": "web", "secret": "s" * 32})


@api.get("/item", dependencies=[fastapi.Depends(fast.shared_limit("5/minute", "items"))])
async def item(decision: Annotated[Decision, fastapi.Depends(fast.limit("9/s"))]) -> int:
    return decision.remaining


@limit("5/minute; 100/day", methods=["POST"])
def view(request: object) -> int:
    return 5


number: int = view(None)
eom = wrap(app, "eom.conf", headers="none")
"""

BAD = [
    ('ThrottleMiddleware(hello, "1/s", tags=tag)', "tags"),
    ('ThrottleMiddleware(hello, "1/s", status="429")', "status"),
    ('ThrottleMiddleware(hello, "1/s", headers="draft-5")', "headers"),
    ("ThrottleMiddleware(hello, None)", "Argument 2"),
    ('ThrottleMiddleware("hello", "1/s")', "Argument 1"),
    ('Asgi(later, "1/s", max_delayed="5")', "max_delayed"),
    ('limiter.limit("5/minute", domain="a")', "domain"),
    ("limiter.limit(None)", "Argument 1"),
    ('fast.shared_limit("5/minute")', "scope"),
    ('limit("5/minute", methods="POST", cost="1")', "cost"),
]


def test_mypy_accepts_right_calls_and_reports_each_wrong_one(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(GOOD + "\n".join(code for code, _ in BAD) + "\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += ["--cache-dir", str(tmp_path / "cache"), "--python-version", "3.11", "app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    first = GOOD.count("\n") + 1
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [int(line.split(":")[1]) for line in errors] == list(range(first, first + len(BAD)))
    for line, (_, says) in zip(errors, BAD, strict=True):
        assert says in line
