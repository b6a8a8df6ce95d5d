"""A Django site in one file, for WSGI and ASGI, with limits for sync and async views."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["dthrottle.django.ThrottleMiddleware"],
    SECRET_KEY="only here",
    DTHROTTLE={
        "application_limits": {"rate": "1 per 100 years", "burst": 1000},
        "tag": "header:X-Client",
        **json.loads(os.environ["OPTIONS"]),
    },
)
django.setup()

from dthrottle.django import limit, shared_limit  # noqa: E402  (needs the settings)

costly = shared_limit("1 per 100 years", "costly", burst=100)


def hello(_request: Any) -> HttpResponse:
    """Answer one request."""
    time.sleep(0.005)  # long enough that the next request finds another worker
    return HttpResponse("hello", headers={"X-Process": str(os.getpid())})


async def hello_async(request: Any) -> HttpResponse:
    """Answer one request, blocking the loop."""
    return hello(request)


@limit("1 per 100 years", burst=100)
def burst(request: Any) -> HttpResponse:
    """Answer one request; 100 pass."""
    return hello(request)


@limit("1 per 100 years", burst=100)
async def burst_async(request: Any) -> HttpResponse:
    """Answer one request; 100 pass, counted separately from the other view."""
    return hello(request)


def value(request: Any) -> Any:
    """Return the value that a client sent as JSON."""
    return json.loads(request.body)


by_value = limit("1 per 100 years", tag=value)
delayed = limit("1 per 10 minutes", max_delay=3600)

urlpatterns = [
    path("value", by_value(hello)),
    path("value_later", by_value(hello_async)),
    path("delayed", delayed(hello)),
    path("delayed_later", delayed(hello_async)),
    path("", hello),
    path("burst", burst),
    path("later", burst_async),
    path("one", costly(hello)),
    path("two", costly(hello_async)),
]

application = get_wsgi_application()
app = get_asgi_application()
