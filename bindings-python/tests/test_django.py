"""Limits in Django: the whole site, sync and async views, users, settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any

import django
import pytest
from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory, override_settings
from django.utils.decorators import method_decorator
from django.views import View

import dthrottle.django
from dthrottle import ConfigError
from dthrottle.django import ThrottleMiddleware, counts, limit, shared_limit

settings.configure(
    ALLOWED_HOSTS=["*"],
    DTHROTTLE={"table": False},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    SECRET_KEY="x",
)
django.setup()

GET = RequestFactory()
AGET = AsyncRequestFactory()


def site(**setting: Any) -> Any:
    """Set the settings of the site."""
    return override_settings(DTHROTTLE={"table": False, **setting})


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Discard the limits of the previous test."""
    dthrottle.django._limits.cache_clear()
    yield
    dthrottle.django._limits.cache_clear()


def hello(request: Any) -> HttpResponse:  # noqa: ARG001
    return HttpResponse("hello")


async def hello_later(request: Any) -> HttpResponse:  # noqa: ARG001
    return HttpResponse("hello")


class Sync:
    """Calls sync views."""

    view = staticmethod(hello)

    def get(self, view: Any, path: str = "/", **more: Any) -> Any:
        return view(self.request(path, **more))

    def request(self, path: str, user: Any = None, **more: Any) -> Any:
        request = GET.get(path, **more)
        if user is not None:
            request.user = user
        return request


class Async(Sync):
    """Calls async views."""

    view = staticmethod(hello_later)

    def get(self, view: Any, path: str = "/", **more: Any) -> Any:
        return asyncio.run(view(self.request(path, **more)))

    def request(self, path: str, user: Any = None, **more: Any) -> Any:
        headers = {"X-Forwarded-For": more.pop("HTTP_X_FORWARDED_FOR", "")}
        request = AGET.get(path, headers=headers, **more)
        if user is not None:

            async def auser() -> Any:
                return user

            request.auser = auser
        return request


kinds = pytest.mark.parametrize("kind", [Sync(), Async()], ids=["sync", "async"])


def statuses(kind: Any, view: Any, count: int, **more: Any) -> list[int]:
    return [kind.get(view, **more).status_code for _ in range(count)]


def named(kind: Any, name: str) -> Any:
    """Return a view with this name."""
    copy = FunctionType(kind.view.__code__, globals(), name)
    copy.__qualname__ = name
    return copy


@kinds
def test_each_view_has_its_own_bucket(kind: Any) -> None:
    decorate = limit("2/hour")
    one, two = decorate(named(kind, "one")), decorate(named(kind, "two"))
    assert statuses(kind, one, 3) == [200, 200, 429]
    assert statuses(kind, two, 3) == [200, 200, 429]
    assert (counts().passed, counts().refused) == (4, 2)


@kinds
def test_views_of_a_shared_limit_share_a_bucket(kind: Any) -> None:
    decorate = shared_limit("3/hour", scope="costly")
    one, two = decorate(named(kind, "one")), decorate(named(kind, "two"))
    assert statuses(kind, one, 2) + statuses(kind, two, 2) == [200, 200, 200, 429]


@kinds
def test_view_gets_the_decision_and_responses_the_header_fields(kind: Any) -> None:
    seen: list[Any] = []
    view = limit("1/hour", on_refused=lambda request, _: seen.append(request.path))(kind.view)
    request = kind.request("/")
    first = view(request)
    first = asyncio.run(first) if isinstance(kind, Async) else first
    assert request.dthrottle.remaining == 0
    assert first.headers["RateLimit"] == '"1/hour";r=0;t=3600'
    second = kind.get(view)
    assert (second.status_code, second.content) == (429, b"Too Many Requests\n")
    assert second.headers["Retry-After"] == "3600"
    assert second.headers["RateLimit-Policy"] == '"1/hour";q=1;w=3600'
    assert seen == ["/"]


@kinds
def test_responses_have_the_header_fields_of_two_limits(kind: Any) -> None:
    view = limit("5/hour")(limit("9/day")(kind.view))
    response = kind.get(view)
    policies = response.headers["RateLimit-Policy"].split(", ")
    assert policies == ['"9/day";q=9;w=86400', '"5/hour";q=5;w=3600']


@kinds
def test_view_may_get_the_request_as_a_keyword(kind: Any) -> None:
    view = limit("1/hour")(kind.view)
    assert statuses(kind, lambda request: view(request=request), 2) == [200, 429]


def test_method_may_get_the_request_as_a_keyword() -> None:
    class Page:
        @limit("1/hour")
        def get(self, request: Any) -> HttpResponse:
            return hello(request)

    page = Page()
    assert [page.get(request=GET.get("/")).status_code for _ in range(2)] == [200, 429]


@kinds
def test_middleware_limits_the_whole_site(kind: Any) -> None:
    with site(application_limits="2/hour"):
        middleware = ThrottleMiddleware(kind.view)
        assert statuses(kind, middleware, 3) == [200, 200, 429]


@kinds
def test_settings_apply_to_all_limits(kind: Any) -> None:
    with site(trusted_proxies=1, status=420):
        view = limit("1/hour")(kind.view)
        for host in ("203.0.113.1", "203.0.113.2"):
            assert statuses(kind, view, 2, HTTP_X_FORWARDED_FOR=host) == [200, 420]


@kinds
def test_tag_user_counts_users_and_addresses(kind: Any) -> None:
    alice = SimpleNamespace(is_authenticated=True, pk=1)
    bob = SimpleNamespace(is_authenticated=True, pk=2)
    nobody = SimpleNamespace(is_authenticated=False, pk=None)
    view = limit("1/hour", tag="user")(kind.view)
    for user in (alice, bob, nobody):
        assert statuses(kind, view, 2, user=user) == [200, 429]


@kinds
def test_enabled_false_turns_limits_off(kind: Any) -> None:
    view = limit("1/hour")(kind.view)
    with site(enabled=False, application_limits="1/hour"):
        assert statuses(kind, view, 2) == [200, 200]
        with pytest.raises(MiddlewareNotUsed):
            ThrottleMiddleware(kind.view)
    assert statuses(kind, view, 2) == [200, 429]


def test_disabled_middleware_needs_no_limits() -> None:
    with site(enabled=False), pytest.raises(MiddlewareNotUsed):
        ThrottleMiddleware(hello)


def test_each_class_has_its_own_bucket() -> None:
    class Base(View):  # type: ignore[misc]
        def get(self, _request: Any) -> HttpResponse:
            return HttpResponse("hello")

    decorate = method_decorator(limit("1/hour"), name="dispatch")
    one, two = (decorate(type(name, (Base,), {})).as_view() for name in ("One", "Two"))

    def get(view: Any) -> int:
        request = GET.get("/")
        request.resolver_match = SimpleNamespace(func=view)
        return view(request).status_code  # type: ignore[no-any-return]

    assert [get(one), get(two), get(one), get(two)] == [200, 200, 429, 429]


def resolved(view: Any, method: str = "get", path: str = "/", **more: Any) -> Any:
    """Call a view as Django does after it has resolved the path."""
    request = getattr(GET, method)(path, **more)
    request.resolver_match = SimpleNamespace(func=view)
    return view(request)


def test_limit_of_a_method_counts_no_other_method_or_class() -> None:
    class Base(View):  # type: ignore[misc]
        @limit("1/hour")
        def get(self, request: Any, word: str = "hello") -> HttpResponse:
            return HttpResponse(f"{word} {request.dthrottle.remaining}")

        @limit("1/hour")
        def post(self, _request: Any) -> HttpResponse:
            return HttpResponse("posted")

    class Other(Base):
        pass

    for view in (Base.as_view(), Other.as_view()):
        first, second = resolved(view), resolved(view)
        assert (first.status_code, first.content) == (200, b"hello 0")
        assert second.status_code == 429
        assert [resolved(view, "post").status_code for _ in range(2)] == [200, 429]


def test_limit_of_an_async_method_counts_it() -> None:
    class Hello(View):  # type: ignore[misc]
        @limit("1/hour")
        async def get(self, _request: Any) -> HttpResponse:
            return HttpResponse("hello")

    view = Hello.as_view()
    assert [asyncio.run(view(AGET.get("/"))).status_code for _ in range(2)] == [200, 429]


def test_limit_of_a_class_counts_all_its_methods_together() -> None:
    @limit("2/hour")
    class Hello(View):  # type: ignore[misc]
        def get(self, _request: Any) -> HttpResponse:
            return HttpResponse("hello")

        def post(self, _request: Any) -> HttpResponse:
            return HttpResponse("posted")

    assert isinstance(Hello, type)
    view = Hello.as_view()
    statuses = [resolved(view, method).status_code for method in ("get", "post", "get")]
    assert statuses == [200, 200, 429]


def test_limit_of_a_class_that_is_not_a_view_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"a method `dispatch`.*, got <class 'int'>$"):
        limit("1/hour")(int)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: limit("5/fortnight"), "fortnight"),
        (lambda: shared_limit("5/fortnight", scope="a"), "fortnight"),
        (lambda: limit("5/minute", cost=6), "at most 5"),
        (lambda: limit("5/minute", key_func=len), "did you mean `tag`"),  # type: ignore[call-arg]
    ],
)
def test_mistakes_in_a_limit_are_found_before_it_decorates_a_view(wrong: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        wrong()


def test_tag_user_without_a_user_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    dthrottle.django._warn_of_no_user.cache_clear()
    view = limit("1/hour", tag="user")(hello)
    assert statuses(Sync(), view, 3) == [200, 429, 429]
    (warning,) = caplog.messages
    assert "after AuthenticationMiddleware" in warning


def test_coroutine_as_tag_of_a_sync_view_is_an_error() -> None:
    async def tag(_request: Any) -> str:
        return "a"

    with pytest.raises(ConfigError, match="plain function"):
        limit("1/hour", tag=tag)(hello)
    view = limit("1/hour", tag=tag)(hello_later)
    assert statuses(Async(), view, 2) == [200, 429]


@pytest.mark.parametrize(
    ("setting", "field", "says"),
    [
        ({"application_limit": "1/s"}, "application_limit", "application_limits"),
        ({"key_func": len}, "key_func", "tag"),
        ({"application_limits": "1/fortnight"}, "rate", "fortnight"),
        ({}, "application_limits", "is missing"),
        ({"application_limits": "1/s", "tag": "usr"}, "tag", "address"),
        ({"application_limits": "1/s", "cluster": {}}, "cluster.name", "name"),
    ],
)
def test_wrong_setting_is_an_error(setting: dict[str, Any], field: str, says: str) -> None:
    with site(**setting), pytest.raises(ConfigError, match=says) as info:
        ThrottleMiddleware(hello)
    assert info.value.field == field


def test_allow_accepts_names_only_if_tags_are_names() -> None:
    alice, bob = (SimpleNamespace(pk=pk, is_authenticated=True) for pk in ("alice", "bob"))
    for web in (Sync(), Async()):
        dthrottle.django._limits.cache_clear()
        with site(tag="user", allow=["user:alice"]):
            view = limit("1/hour")(web.view)
            assert statuses(web, view, 3, user=alice) == [200] * 3
            assert statuses(web, view, 2, user=bob) == [200, 429]
            with pytest.raises(ConfigError, match=r'^`allow` must .* got "user:alice"$'):
                limit("1/hour", tag="address")(web.view)
    dthrottle.django._limits.cache_clear()
    with site(allow=["user:alice"], application_limits="1/hour"):
        limit("1/hour", tag="user")(hello)
        with pytest.raises(ConfigError, match=r'^`allow` must .* got "user:alice"$'):
            ThrottleMiddleware(hello)


def test_setting_that_is_not_a_dict_is_an_error() -> None:
    with override_settings(DTHROTTLE="1/s"), pytest.raises(ConfigError, match="a dict"):
        ThrottleMiddleware(hello)


def test_class_with_async_methods_is_limited() -> None:
    @method_decorator(limit("2/hour"), name="dispatch")
    class Hello(View):  # type: ignore[misc]
        async def get(self, _request: Any) -> HttpResponse:
            return HttpResponse("hello")

    view = Hello.as_view()
    answers = [asyncio.run(view(AGET.get("/"))) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "RateLimit" in answers[0]


def test_limit_of_a_class_is_made_once() -> None:
    @method_decorator(limit("2/hour"), name="dispatch")
    class Hello(View):  # type: ignore[misc]
        def get(self, _request: Any) -> HttpResponse:
            return HttpResponse("hello")

    view = Hello.as_view()
    for _ in range(10):
        view(GET.get("/"))
    assert len(dthrottle.django._limits()._limits) == 1
    assert counts().refused == 8


class Called:
    """A view that is an object."""

    def __call__(self, _request: Any) -> HttpResponse:
        return HttpResponse("hello")


class AlsoCalled(Called):
    """A view of another class."""


def test_callable_objects_and_partials_can_be_limited() -> None:
    def resolved(view: Any) -> Any:
        request = GET.get("/")
        request.resolver_match = SimpleNamespace(func=view)
        return view(request).status_code

    decorated = limit("1/hour")
    views = [decorated(Called()), decorated(AlsoCalled()), partial(decorated(hello))]
    assert [[resolved(view) for _ in range(2)] for view in views] == [[200, 429]] * 3


def test_view_that_returns_none_returns_none() -> None:
    assert limit("1/hour")(lambda _request: None)(GET.get("/")) is None


@kinds
def test_status_of_the_response_decides_about_a_refund(kind: Any) -> None:
    def bad(_request: Any) -> HttpResponse:
        raise RuntimeError

    async def bad_later(_request: Any) -> HttpResponse:
        raise RuntimeError

    decorate = limit("1/hour", skip_failed_requests=True)
    assert statuses(kind, decorate(kind.view), 2) == [200, 429]
    view = decorate(bad if type(kind) is Sync else bad_later)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            kind.get(view)
