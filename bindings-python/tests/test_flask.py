"""Limits in Flask: per route, shared, exemptions, responses and error handlers."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask import Blueprint, Flask, Response, request
from flask.views import MethodView

from dthrottle import ConfigError, ManualClock, Throttle
from dthrottle.flask import Limiter, Refused


def hello() -> str:
    return "hello"


def application(limiter: Any, name: str = "shop", /, **views: Callable[..., Any]) -> Flask:
    """Make an application with these views."""
    app = Flask(name)
    app.testing = True
    limiter.init_app(app)
    for name, view in views.items():
        app.add_url_rule(f"/{name}", name, view, methods=["GET", "POST"])
    return app


def statuses(app: Flask, path: str, count: int, **more: Any) -> list[int]:
    return [app.test_client().get(path, **more).status_code for _ in range(count)]


def make(**options: Any) -> Any:
    return Limiter(table=False, **options)


def test_each_endpoint_has_its_own_bucket() -> None:
    limiter = make()
    limit = limiter.limit("2/hour")
    app = application(limiter, one=limit(hello), two=limit(hello), free=hello)
    assert statuses(app, "/one", 3) == [200, 200, 429]
    assert statuses(app, "/two", 3) == [200, 200, 429]
    assert statuses(app, "/free", 5) == [200] * 5
    assert (limiter.counts.passed, limiter.counts.refused) == (4, 2)


def test_each_client_has_its_own_bucket() -> None:
    limiter = make()
    app = application(limiter, one=limiter.limit("1/hour")(hello))
    for host in ("203.0.113.1", "203.0.113.2"):
        assert statuses(app, "/one", 2, environ_base={"REMOTE_ADDR": host}) == [200, 429]


def test_routes_of_a_shared_limit_share_a_bucket() -> None:
    limiter = make()
    shared = limiter.shared_limit("3/hour", scope="costly")
    app = application(limiter, one=shared(hello), two=shared(hello))
    assert statuses(app, "/one", 2) + statuses(app, "/two", 2) == [200, 200, 200, 429]
    again = limiter.shared_limit("3/hour", scope="costly")
    other = limiter.shared_limit("3/hour", scope="else")
    app = application(limiter, three=again(hello), four=other(hello))
    assert statuses(app, "/three", 1) + statuses(app, "/four", 1) == [429, 200]


def test_limit_with_several_rates_applies_all_of_them() -> None:
    limiter = make()
    for rate in ("2/hour; 3/day", ["2/hour", "3/day"], "2 per hour, 3 per day", "2/hour|3/day"):
        app = application(limiter, one=limiter.shared_limit(rate, str(rate))(hello))
        assert statuses(app, "/one", 3) == [200, 200, 429]
    policy = app.test_client().get("/one").headers["RateLimit-Policy"]
    assert policy == '"2/hour";q=2;w=3600, "3/day";q=3;w=86400'


def test_default_limits_count_per_route_and_application_limits_together() -> None:
    limiter = make(default_limits="2/hour", application_limits="6/hour")
    app = application(
        limiter,
        one=hello,
        two=hello,
        own=limiter.limit("100/hour")(hello),
        free=limiter.exempt(hello_again()),
    )
    assert statuses(app, "/one", 3) == [200, 200, 429]
    assert statuses(app, "/two", 1) == [200]
    assert statuses(app, "/own", 3) == [200, 200, 429], (
        "the limit of the whole application is used up"
    )
    assert statuses(app, "/nowhere", 1) == [429], (
        "requests without a route count for the application"
    )
    assert statuses(app, "/free", 9) == [200] * 9
    assert statuses(app, "/static/a.css", 1) == [404]


def hello_again() -> Callable[[], str]:
    def again() -> str:
        return "again"

    return again


def test_blueprint_can_be_limited_and_exempt() -> None:
    limiter = make(default_limits="1/hour")
    limited, free = Blueprint("limited", "shop"), Blueprint("free", "shop")
    for blueprint in (limited, free):
        for name in ("one", "two"):
            blueprint.add_url_rule(f"/{blueprint.name}/{name}", name, hello)
    limiter.limit("2/hour")(limited)
    limiter.exempt(free)
    app = application(limiter)
    app.register_blueprint(limited)
    app.register_blueprint(free)
    assert statuses(app, "/limited/one", 3) == [200, 200, 429]
    assert statuses(app, "/limited/two", 3) == [200, 200, 429]
    assert statuses(app, "/free/one", 3) == [200] * 3


def test_equal_limits_of_blueprint_and_view_are_checked_once() -> None:
    limiter = make()
    blueprint = Blueprint("twice", "shop")
    blueprint.add_url_rule("/twice", "one", limiter.limit("4/hour")(hello))
    limiter.limit("4/hour")(blueprint)
    app = application(limiter)
    app.register_blueprint(blueprint)
    assert statuses(app, "/twice", 5) == [200] * 4 + [429]


def test_limits_of_different_methods_have_separate_buckets() -> None:
    limiter = make()
    get = limiter.limit("2/hour", methods=["GET"])
    post = limiter.limit("2/hour", methods=["POST"])
    client = application(limiter, one=get(post(hello))).test_client()
    assert [client.get("/one").status_code for _ in range(3)] == [200, 200, 429]
    assert [client.post("/one").status_code for _ in range(3)] == [200, 200, 429]
    assert client.head("/one").status_code == 429, "the view for GET answers HEAD"


def test_limiter_is_disabled_for_one_of_two_applications() -> None:
    limiter = make(default_limits="1/hour")
    on, off = Flask("on"), Flask("off")
    off.config["DTHROTTLE_ENABLED"] = False
    for app in (on, off, on):  # the second call for an application has no effect
        limiter.init_app(app)
    for app in (on, off):
        app.add_url_rule("/one", "one", hello)
    assert statuses(on, "/one", 2) == [200, 429]
    assert statuses(off, "/one", 2) == [200, 200]


def make_shop(limiter: Any, **config: Any) -> Flask:
    """Make an application as a factory does: with a limiter that other applications have too."""
    app = Flask("shop")
    app.testing = True
    app.config.from_mapping({f"DTHROTTLE_{name.upper()}": value for name, value in config.items()})
    limiter.init_app(app)
    for name in ("one", "two"):
        app.add_url_rule(f"/{name}", name, hello)
    return app


def test_factory_makes_a_second_application_after_a_request(tmp_path: Path) -> None:
    limiter = Limiter(default_limits="3/hour")
    table = {"name": "shop", "dir": str(tmp_path), "size": 1000}
    assert statuses(make_shop(limiter, table=table), "/one", 2) == [200, 200]
    assert statuses(make_shop(limiter, table=table), "/one", 2) == [200, 429], "one table"
    other = {**table, "name": "other"}
    assert statuses(make_shop(limiter, table=other), "/one", 4) == [200, 200, 200, 429]


def test_factory_gives_each_application_a_private_table() -> None:
    limiter = Limiter(default_limits="1/hour")
    for _ in range(2):
        app = make_shop(limiter, table=False)
        assert statuses(app, "/one", 2) == [200, 429]


def test_configuration_of_one_application_does_not_apply_to_others() -> None:
    limiter = Limiter(table=False)
    shared = limiter.shared_limit("2/hour", scope="both")
    first = make_shop(limiter, default_limits="1/hour", application_limits="3/hour", status=420)
    second = make_shop(limiter)
    for app in (first, second):
        app.add_url_rule("/shared", "shared", shared(lambda: "hello"))
    assert statuses(first, "/one", 2) + statuses(first, "/two", 2) == [200, 420, 200, 420]
    assert statuses(second, "/one", 5) == [200] * 5
    assert statuses(second, "/shared", 3) == [200, 200, 429]
    assert statuses(first, "/shared", 1) == [420], "the shared limit is that of the limiter"


def test_limit_written_after_init_app_works_in_a_configured_application() -> None:
    limiter = Limiter(table=False)
    app = make_shop(limiter, status=420)
    app.add_url_rule("/late", "late", limiter.limit("1/hour")(lambda: "hello"))
    assert statuses(app, "/late", 2) == [200, 420]


def test_argument_order_of_flask_limiter_is_explained() -> None:
    def get_remote_address() -> str:
        return "127.0.0.1"

    app = Flask("shop")
    with pytest.raises(ConfigError, match=r"counted by address .* tag=lambda request") as raised:
        Limiter(get_remote_address, app=app)  # type: ignore[arg-type]
    assert raised.value.field == "app"
    with pytest.raises(ConfigError, match=r"^`app` must be a Flask application, got 'shop'$"):
        Limiter("shop")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="got it twice"):
        Limiter(app, app=app)
    assert Limiter(app=app, table=False).counts.passed == 0


def test_endpoints_of_two_applications_have_separate_buckets() -> None:
    limiter = make(default_limits="1/hour", application_limits="9/hour")
    both = limiter.shared_limit("3/hour", scope="both")
    apps = [application(limiter, name, one=hello, two=both(hello)) for name in ("a", "b")]
    assert [statuses(app, "/one", 2) for app in apps] == [[200, 429]] * 2
    assert [statuses(app, "/two", 2) for app in apps] == [[200, 200], [200, 429]]
    assert [statuses(app, "/two", 9)[-1] for app in apps] == [429] * 2


def test_class_view_can_be_limited_by_method() -> None:
    limiter = make()

    class Item(MethodView):
        decorators = [limiter.limit("1/hour", methods=["POST"])]  # noqa: RUF012

        def get(self) -> str:
            return "get"

        def post(self) -> str:
            return "post"

    app = application(limiter, item=Item.as_view("item"))
    client = app.test_client()
    assert [client.post("/item").status_code for _ in range(2)] == [200, 429]
    assert [client.get("/item").data for _ in range(2)] == [b"get"] * 2


def test_responses_have_header_fields_and_refusals_a_body() -> None:
    limiter = make(default_limits="1/hour", body={"error": "slow down"})
    client = application(limiter, one=hello).test_client()
    first, second = client.get("/one"), client.get("/one")
    assert first.headers["RateLimit"] == '"1/hour";r=0;t=3600'
    assert second.json == {"error": "slow down"}
    assert second.headers.getlist("RateLimit") == ['"1/hour";r=0;t=3600']
    assert second.headers["Retry-After"] == "3600"


def test_error_handler_can_write_the_refusal() -> None:
    limiter = make(default_limits="1/hour", application_limits="100/hour")
    app = application(limiter, one=hello)

    @app.errorhandler(429)
    def handler(refused: Refused) -> tuple[str, int]:
        assert refused.decision.rule == "rule1"
        return "no", 420

    client = app.test_client()
    client.get("/one")
    response = client.get("/one")
    assert (response.status_code, response.data) == (420, b"no")
    assert response.headers["Retry-After"] == "3600"
    fields = response.headers.getlist("RateLimit")
    assert [field.split(";")[0] for field in fields] == ['"100/hour"', '"1/hour"']


def test_functions_of_the_application_receive_the_request() -> None:
    limiter = make(
        tag=lambda request: request.args["user"],
        cost=lambda request: int(request.args.get("n", 1)),
        on_refused=lambda request, decision: seen.append((request.path, decision.limit)),
    )
    seen: list[Any] = []
    app = application(limiter, one=limiter.limit("3/hour")(hello))
    assert statuses(app, "/one?user=a&n=3", 1) + statuses(app, "/one?user=a", 1) == [200, 429]
    assert statuses(app, "/one?user=b", 1) == [200]
    assert seen == [("/one", 3)]


def test_view_finds_the_decision_in_the_environ() -> None:
    limiter = Limiter(table=False)

    @limiter.limit("5/hour")
    def view() -> str:
        return str(request.environ["dthrottle.decision"].remaining)

    assert application(limiter, one=view).test_client().get("/one").data == b"4"


def test_limit_may_be_a_domain_of_the_application(clock: ManualClock) -> None:
    throttle = Throttle(domains={"login": {"rate": "1/s", "burst": 2}}, clock=clock)
    limiter = make()
    app = application(limiter, one=limiter.shared_limit(throttle.domain("login"), "a")(hello))
    assert statuses(app, "/one", 3) == [200, 200, 429]
    clock.advance(1)
    assert statuses(app, "/one", 2) == [200, 429]


def test_options_may_be_in_the_configuration_of_the_application() -> None:
    limiter = make(status=420)
    app = Flask("shop")
    app.config.from_mapping(
        DTHROTTLE_DEFAULT_LIMITS="1/hour", DTHROTTLE_STATUS=430, DTHROTTLE_HEADERS="draft-6"
    )
    limiter.init_app(app)
    app.add_url_rule("/one", "one", hello)
    assert statuses(app, "/one", 2) == [200, 420]
    assert app.test_client().get("/one").headers["RateLimit-Limit"] == "1"
    app = Flask("shop")
    app.config["DTHROTTLE_ENABLED"] = False
    limiter = make(default_limits="1/hour")
    limiter.init_app(app)
    app.add_url_rule("/one", "one", hello)
    assert statuses(app, "/one", 2) == [200, 200]


def test_many_limits_share_one_throttle(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dthrottle")
    limiter = make()
    views = {f"v{n}": limiter.limit(f"{n + 1}/hour")(hello) for n in range(20)}
    app = application(limiter, **views)
    assert caplog.records == [], "no table is opened before the first request"
    for n in range(20):
        assert statuses(app, f"/v{n}", n + 2) == [200] * (n + 1) + [429]
    assert len(caplog.records) == 1
    late = application(limiter, late=limiter.limit("1/day")(hello))
    assert statuses(late, "/late", 2) == [200, 429]
    assert statuses(app, "/v3", 1) == [429], "the later limit has not changed the others"


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        (lambda: make(default_limits="5/fortnight"), "rate", "fortnight"),
        (lambda: make(default_limits=[]), "limit", "5/minute"),
        (lambda: make(key_func=len), "key_func", "tag"),
        (lambda: make(tag=5), "tag", "address"),
        (lambda: make().limit("5/minute", cost=6), "cost", "at most 5"),
        (lambda: make().limit("5/minute; 1/s", burst=6), "burst", "one rate"),
        (lambda: make().limit("5/minute", domain="a"), "domain", "shared_limit"),
        (lambda: make().limit("5/minute", scope="a"), "scope", "shared_limit"),
        (lambda: make().limit({"rat": 5}), "rat", "rate"),
        (lambda: make().limit(None), "limit", "5/minute"),
        (lambda: make().limit([5]), "limit", "5/minute"),
        (lambda: make().shared_limit("5/minute", scope=""), "scope", "text"),
        (lambda: make(cluster={"nam": "a"}), "cluster.nam", "name"),
    ],
)
def test_wrong_limit_is_an_error_when_it_is_made(wrong: Any, field: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as info:
        wrong()
    assert info.value.field == field


def by_query(request: Any) -> str:
    return str(request.args["user"])


def test_allow_accepts_names_only_if_tags_are_names() -> None:
    limiter = make(allow=["alice"])
    app = application(limiter, one=limiter.limit("1/hour", tag=by_query)(hello))
    assert statuses(app, "/one?user=alice", 3) == [200] * 3
    assert statuses(app, "/one?user=bob", 2) == [200, 429]
    with pytest.raises(ConfigError, match=r'^`allow` must .* got "alice"$'):
        limiter.limit("1/hour")
    limiter.limit("1/hour", allow=["127.0.0.1", b"alice"])


def test_names_in_allow_are_checked_with_the_configuration_of_the_application() -> None:
    limiter = make(allow=["alice"], default_limits="1/hour")
    app = Flask("shop")
    with pytest.raises(ConfigError, match=r'^`allow` must .* got "alice"$'):
        limiter.init_app(app)
    app.config["DTHROTTLE_TAG"] = by_query
    limiter.init_app(app)
    app.add_url_rule("/one", "one", hello)
    assert statuses(app, "/one?user=alice", 3) == [200] * 3
    assert statuses(app, "/one?user=bob", 2) == [200, 429]


def test_wrong_configuration_of_one_application_does_not_affect_another() -> None:
    limiter = make()
    view = limiter.limit("1/hour")(hello)
    app = Flask("shop")
    app.config["DTHROTTLE_ALLOW"] = ["alice"]
    with pytest.raises(ConfigError, match=r'^`allow` must .* got "alice"$'):
        limiter.init_app(app)
    # The wrong configuration has no effect on another application.
    assert statuses(application(limiter, one=view), "/one", 2) == [200, 429]


def test_wrong_limit_is_not_checked_again_by_init_app() -> None:
    limiter = make()
    with pytest.raises(ConfigError):
        limiter.limit("nonsense")
    app = Flask("shop")
    app.config["DTHROTTLE_ALLOW"] = ["alice"]
    limiter.init_app(app)


def test_limiter_without_init_app_still_limits() -> None:
    limiter = make(allow=["alice"])
    app = Flask("shop")
    app.testing = True
    app.add_url_rule("/one", "one", limiter.limit("1/hour")(hello))
    assert statuses(app, "/one", 2) == [200, 429]


def test_unknown_configuration_key_is_an_error() -> None:
    app = Flask("shop")
    app.config["DTHROTTLE_DEFAULT_LIMIT"] = "5/minute"
    with pytest.raises(ConfigError, match="did you mean `default_limits`"):
        make().init_app(app)


def test_failing_tag_function_counts_the_address() -> None:
    limiter = make(default_limits="1/hour", tag=lambda request: request.args["user"])
    app = application(limiter, one=lambda: Response("hello"))
    assert statuses(app, "/one", 3) == [200, 429, 429]
    assert (limiter.counts.failed, limiter.counts.untagged) == (3, 3)


def test_nested_and_renamed_blueprints_keep_their_limits() -> None:
    limiter = make(default_limits="3/hour")
    app = application(limiter)
    limited, free = (Blueprint(name, name, url_prefix=f"/{name}") for name in ("limited", "free"))
    for blueprint in (limited, free):
        blueprint.add_url_rule("/", "index", hello)
    limiter.limit("1/hour")(limited)
    limiter.exempt(free)
    outer = Blueprint("outer", "outer", url_prefix="/outer")
    outer.register_blueprint(limited)
    outer.register_blueprint(free)
    app.register_blueprint(outer)
    app.register_blueprint(limited, name="renamed")
    assert statuses(app, "/outer/limited/", 2) == [200, 429]
    assert statuses(app, "/limited/", 2) == [200, 429]
    assert statuses(app, "/outer/free/", 5) == [200] * 5


def test_requests_in_one_application_context_are_separate() -> None:
    limiter = make()
    app = application(limiter, one=limiter.limit("1/hour")(hello), free=hello)
    with app.app_context():
        assert statuses(app, "/one", 2) == [200, 429]
        headers = app.test_client().get("/free").headers
    assert "RateLimit" not in headers
    assert "Retry-After" not in headers


def test_wrong_table_is_an_error_when_the_limiter_is_made() -> None:
    for table, field in (("a/b", "table.name"), ({"nmae": "a"}, "table.nmae")):
        with pytest.raises(ConfigError) as raised:
            Limiter(table=table)  # type: ignore[arg-type]
        assert raised.value.field == field


def test_unusable_table_is_replaced_by_a_private_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Throttle("1/s", table={"name": "broken", "dir": str(tmp_path)})
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"no table")
    limiter = Limiter(table={"name": "broken", "dir": str(tmp_path)})
    app = application(limiter, one=limiter.limit("1/hour")(hello))
    assert statuses(app, "/one", 3) == [200, 429, 429]
    assert limiter.counts.failed == 1
    assert len([record for record in caplog.records if "cannot open" in record.message]) == 1


def test_concurrent_first_requests_share_one_bucket() -> None:
    limiter = make()
    limits = [limiter.limit("5/hour")(hello) for _ in range(20)]
    app = application(limiter, **{f"view{n}": view for n, view in enumerate(limits)})
    for n in range(len(limits)):
        together = threading.Barrier(8)

        def ask(path: str = f"/view{n}", together: Any = together) -> int:
            together.wait()
            return statuses(app, path, 1)[0]

        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(ask) for _ in range(8)]
        assert [answer.result() for answer in answers].count(200) == 5


def test_child_forked_while_a_limit_opens_still_works() -> None:
    for _ in range(20):
        limiter = make()
        app = application(limiter, one=limiter.limit("5/hour")(hello))
        thread = threading.Thread(target=statuses, args=(app, "/one", 1))
        thread.start()
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            os._exit(0 if statuses(app, "/one", 6)[-1] == 429 else 1)
        thread.join(60)
        assert os.waitpid(child, 0)[1] == 0


def test_status_of_the_response_decides_about_a_refund() -> None:
    limiter = make()
    limit = limiter.limit("1/hour", skip_failed_requests=True)
    app = application(limiter, good=limit(hello), bad=limit(lambda: Response("no", 500)))
    assert statuses(app, "/good", 2) == [200, 429]
    assert statuses(app, "/bad", 2) == [500, 500]


def test_counts_are_kept_when_another_application_is_made() -> None:
    limiter = make()
    app = application(limiter, one=limiter.limit("1/hour")(hello))
    assert statuses(app, "/one", 2) == [200, 429]
    application(limiter, "other")
    assert (limiter.counts.passed, limiter.counts.refused) == (1, 1)


def test_request_interrupted_while_delayed_is_refunded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(_seconds: float) -> None:
        raise TimeoutError

    throttle = Throttle("1/hour", burst=2, clock=ManualClock())
    limiter = make(max_delay=3600, cost=2, skip_failed_requests=True)
    app = application(limiter, one=limiter.limit(throttle)(hello))
    app.testing = False
    tag = b"shop endpoint:one\0" + bytes([127, 0, 0, 1])
    monkeypatch.setattr(time, "sleep", interrupted)
    throttle.charge(tag, 1)
    assert statuses(app, "/one", 1, multithread=True) == [500]
    assert limiter.counts.gave_up == 1
    assert throttle.peek(tag).balance == 1


@pytest.mark.parametrize("rules", [5, None, "1/s", {"a": 1}])
def test_limit_with_rules_that_are_no_list_is_an_error(rules: Any) -> None:
    with pytest.raises(ConfigError):
        make().limit({"rules": rules})
