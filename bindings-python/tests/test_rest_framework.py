"""Limits in Django REST framework, whose views authenticate after ``dispatch`` has begun."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import test_django  # configures Django
from django.test import RequestFactory
from django.utils.decorators import method_decorator
from rest_framework.authentication import BaseAuthentication
from rest_framework.decorators import api_view
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from dthrottle.django import counts, limit

fresh = test_django.fresh


class Tokens(BaseAuthentication):  # type: ignore[misc]
    """Takes the token for the name of the user. Reads the body, as some authenticators do."""

    bodies: ClassVar[list[Any]] = []

    def authenticate(self, request: Any) -> Any:
        token = request.META.get("HTTP_AUTHORIZATION")
        if token is None:
            return None
        if token == "wrong":
            raise AuthenticationFailed
        self.bodies.append(request.data)
        return SimpleNamespace(pk=token, is_authenticated=True), token


class Base(APIView):  # type: ignore[misc]
    authentication_classes = [Tokens]  # noqa: RUF012

    def post(self, request: Any) -> Response:
        return Response({"got": request.data, "user": request.user.pk})


def limited_dispatch() -> Any:
    return method_decorator(limit("2/hour", tag="user"), name="dispatch")(type("One", (Base,), {}))


def limited_class() -> Any:
    return limit("2/hour", tag="user")(type("Two", (Base,), {}))


def limited_method() -> Any:
    return type("Three", (Base,), {"post": limit("2/hour", tag="user")(Base.post)})


def post(view: Any, token: str | None) -> Any:
    headers = {} if token is None else {"HTTP_AUTHORIZATION": token}
    body = json.dumps({"a": 1})
    request = RequestFactory().post("/", body, content_type="application/json", **headers)
    return view(request)


@pytest.mark.parametrize("make", [limited_dispatch, limited_class, limited_method])
def test_users_with_tokens_have_a_bucket_each(make: Any) -> None:
    view = make().as_view()
    first = post(view, "alice")
    assert (first.status_code, first.data) == (200, {"got": {"a": 1}, "user": "alice"})
    assert [post(view, "alice").status_code for _ in range(2)] == [200, 429]
    assert [post(view, "bob").status_code for _ in range(3)] == [200, 200, 429]
    assert counts().failed == 0


def test_authentication_for_the_limit_does_not_read_the_body() -> None:
    Tokens.bodies.clear()
    post(limited_dispatch().as_view(), "alice")
    assert Tokens.bodies == [{}, {"a": 1}]


def test_wrong_tokens_count_under_the_address() -> None:
    view = limited_dispatch().as_view()
    assert [post(view, "wrong").status_code for _ in range(3)] == [403, 403, 429]
    assert post(view, "alice").status_code == 200
    assert counts().failed == 0


def test_limit_of_a_function_view_counts_users() -> None:
    @api_view(["POST"])  # type: ignore[untyped-decorator]
    @limit("1/hour", tag="user")
    def view(request: Any) -> Response:
        return Response({"left": request.dthrottle.remaining})

    view.cls.authentication_classes = [Tokens]
    assert [post(view, "alice").status_code for _ in range(2)] == [200, 429]
    assert post(view, "bob").status_code == 200


def test_limit_of_an_action_of_a_view_set_counts_that_action() -> None:
    class Items(ViewSet):  # type: ignore[misc]
        authentication_classes = [Tokens]  # noqa: RUF012

        @limit("1/hour", tag="user")
        def create(self, request: Any) -> Response:
            return Response({"user": request.user.pk})

        def update(self, _request: Any) -> Response:
            return Response({})

    create, update = Items.as_view({"post": "create"}), Items.as_view({"post": "update"})
    assert [post(create, "alice").status_code for _ in range(2)] == [200, 429]
    assert [post(create, "bob").status_code for _ in range(2)] == [200, 429]
    assert [post(update, "alice").status_code for _ in range(2)] == [200, 200]


def limit_inside(view: Any) -> Any:
    return api_view(["POST"])(limit("1/hour")(view))


def limit_outside(view: Any) -> Any:
    return limit("1/hour")(api_view(["POST"])(view))


@pytest.mark.parametrize("decorate", [limit_inside, limit_outside])
def test_each_function_view_has_its_own_bucket(decorate: Any) -> None:
    def one(_request: Any) -> Response:
        return Response({})

    def two(_request: Any) -> Response:
        return Response({})

    def status(view: Any) -> int:
        request = RequestFactory().post("/")
        request.resolver_match = SimpleNamespace(func=view)
        return view(request).status_code  # type: ignore[no-any-return]

    first, second = decorate(one), decorate(two)
    assert [status(view) for view in (first, second, first, second)] == [200, 200, 429, 429]
