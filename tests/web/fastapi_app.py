"""A FastAPI application with a limit for each route."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from fastapi import Depends, FastAPI, Request, Response

from dthrottle.fastapi import Limiter

OPTIONS: dict[str, Any] = json.loads(os.environ["OPTIONS"])

app = FastAPI()
limiter = Limiter(tag="header:X-Client", **OPTIONS)
costly = Depends(limiter.shared_limit("1 per 100 years", "costly", burst=100))


async def value(request: Request) -> Any:
    """Return the value that a client sent as JSON."""
    return await request.json()


@app.post("/value", dependencies=[Depends(limiter.limit("1 per 100 years", tag=value))])
@app.get("/")
@app.get("/burst", dependencies=[Depends(limiter.limit("1 per 100 years", burst=100))])
@app.get("/one", dependencies=[costly])
@app.get("/two", dependencies=[costly])
async def hello(response: Response) -> str:
    """Answer one request."""
    time.sleep(0.005)  # blocks the loop, so that the next request finds another worker
    response.headers["X-Process"] = str(os.getpid())
    return "hello"
