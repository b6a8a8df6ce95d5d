"""Requests through Governor: its counts, the choice of a rate, its responses and log lines."""

from __future__ import annotations

import logging
import random
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from governors import INI, GovernorClient, hello, rate, write

from dthrottle import ConfigError, Decision, ManualClock
from dthrottle.governor import Options, wrap


class Specification:
    """The formula of the specification, in exact numbers."""

    def __init__(self, limit: float, velocity: float, *, charge_refused: bool = True) -> None:
        self.limit, self.velocity = Fraction(str(limit)), Fraction(str(velocity))
        self.count, self.last_time = Fraction(0), Fraction(0)
        self.charge_refused = charge_refused

    def passes(self, now: Fraction) -> bool:
        """Count a request, and return whether it passes."""
        drain = (now - self.last_time) * self.velocity
        new_count = max(Fraction(0), self.count - drain) + 1
        passes = new_count <= self.limit
        if passes or self.charge_refused:
            self.count, self.last_time = new_count, now
        return passes


@pytest.mark.parametrize("velocity", [0.1, 0.5, 1.25, 3, 300, 1000])
@pytest.mark.parametrize("limit", [1, 2, 20])
def test_counts_follow_the_formula_of_the_specification(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, limit: int, velocity: float
) -> None:
    caplog.set_level(logging.ERROR, "dthrottle.governor")
    path = write(tmp_path, [rate(limit=limit, velocity=velocity)])
    differs = 0
    for seed in range(3):
        dice, clock, now = random.Random(seed), ManualClock(), Fraction(0)
        web = GovernorClient(path, clock)
        model = Specification(limit, velocity)
        lenient = Specification(limit, velocity, charge_refused=False)
        for step in range(500):
            # Whole milliseconds: often none, mostly near the velocity, and sometimes so long that the
            # count may fall to zero.
            pause = dice.choice([0, dice.random(), 2 * dice.random()])
            if step % (4 * limit) == 0:
                pause = 1.5 * dice.random() * float(model.count)
            now += Fraction(round(1000 * pause / velocity), 1000)
            clock.set(float(now))
            passes = web.get().status == 200
            assert passes == model.passes(now), f"seed {seed}, step {step}"
            differs += passes != lenient.passes(now)
        assert web.wrapped.counts.passed > 30
        assert web.wrapped.counts.refused > 30
    # Negative control: without charging refused requests the answers differ.
    assert differs > 50


@pytest.mark.parametrize("velocity", [0, 0.001, 0.1, 0.7, 3, 300])
@pytest.mark.parametrize("limit", [0, 0.5, 0.999999, 1.25, 2.5, 3.3333333333333335, 7.5])
def test_fractional_limits_and_velocity_0_are_exact(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, limit: float, velocity: float
) -> None:
    caplog.set_level(logging.ERROR, "dthrottle.governor")
    path = write(tmp_path, [rate(limit=limit, velocity=velocity)])
    cut = 0
    for seed in range(3):
        dice, clock, now = random.Random(seed), ManualClock(), Fraction(0)
        web = GovernorClient(path, clock)
        model, whole = Specification(limit, velocity), Specification(int(limit), velocity)
        for step in range(300):
            # With pauses of whole, half and third requests, many counts are exactly at the limit.
            parts = dice.choice([0, 1, 2, 3, 3, 4, 6, 6, 9, 12])
            if step % 40 == 0:
                parts = 6 * round(float(model.count))
            pause = Fraction(parts, 6) / Fraction(str(velocity)) if velocity else Fraction(parts)
            now += Fraction(round(1000 * pause), 1000)
            clock.set(float(now))
            passes = web.get().status == 200
            assert passes == model.passes(now), f"seed {seed}, step {step}"
            cut += passes != whole.passes(now)
    # Negative control: without the fraction of the limit the answers differ.
    assert (cut > 0) is (velocity > 0 and limit > 1)


def test_limit_below_1_refuses_every_request(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    rates = [rate("none", 0, route="/0"), rate("half", 0.5, route="/half")]
    web = GovernorClient(write(tmp_path, rates, [rate("own", 0, project="closed")]), clock)
    caplog.clear()
    for path in ("/0", "/half"):
        answer = web.get(path)
        assert (answer.status, answer.headers) == (429, {"content-length": "0"})
        clock.advance(1000)
        assert web.get(path).status == 429
    assert web.get("/else").status == 200
    assert web.get("/else", "closed").status == 429
    assert (web.wrapped.counts.refused, web.wrapped.counts.failed) == (5, 0)
    assert caplog.messages[0] == (
        'Hit limit of 0 per sec. for project p according to rate rule "none"'
    )
    assert "Hit limit of 0.5 per sec." in caplog.messages[2]


def test_velocity_0_never_drains_a_count(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=2.9, velocity=0)]), clock)
    assert web.statuses(2) == [200, 200]
    clock.advance(10 * 365 * 86_400)
    answer = web.get()
    assert answer.status == 429
    assert "retry-after" not in answer.headers, "there is no such time"


def test_retry_after_is_exact_for_fractional_limits(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=1.75, velocity=0.1)]), clock)
    assert web.statuses(1) == [200]
    # The count is 2 now, and may be 0.75: that takes 12.5 s.
    assert web.get().headers["retry-after"] == "13"
    clock.advance(12.5)
    assert web.statuses(2) == [200, 429]


def test_the_first_count_is_1(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=3)]), clock)
    assert web.statuses(5) == [200, 200, 200, 429, 429]
    clock.advance(2)  # the count is 5 - 2 + 1
    assert web.statuses(1) == [429]
    clock.advance(1.9)
    assert web.statuses(1) == [429]
    clock.advance(2.2)
    assert web.statuses(3) == [200, 200, 429]


def test_client_that_keeps_sending_stays_refused(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=2)]), clock)
    statuses = []
    for _ in range(50):
        statuses += web.statuses(1)
        clock.advance(0.75)
    assert statuses[:5] == [200] * 5
    assert set(statuses[5:]) == {429}


def test_rates_of_a_project_precede_general_rates(tmp_path: Path, clock: ManualClock) -> None:
    general = [rate("writes", 1, route="/v1/.*", methods=["PUT", "post"]), rate("all", 3)]
    of_project = [
        rate("big writes", 2, project="big", methods=["PUT"]),
        rate("big", 4, project="big", route="/v1/queues"),
        rate("other", 1, project="other"),
    ]
    web = GovernorClient(write(tmp_path, general, of_project), clock)

    def passed(project: str, path: str, method: str = "GET") -> int:
        return web.statuses(6, path, project, method).count(200)

    assert passed("big", "/v1/a", "PUT") == 2
    assert passed("big", "/v1/queues") == 4
    assert passed("big", "/v1/a", "POST") == 1, (
        "without a matching rate of its own, the first general rate counts"
    )
    assert passed("big", "/v1/a") == 3, "the second general rate counts"
    assert passed("other", "/v1/a", "PUT") == 1
    assert passed("other", "/v2") == 0
    assert passed("small", "/v1/queues", "PUT") == 1
    assert passed("small", "/v1/queues") == 3
    assert passed("tiny", "/v1/queues", "PUT") == 1, "each project has its own count"


@pytest.mark.parametrize(
    ("route", "path", "matches"),
    [
        ("/v1", "/v1", True),
        ("/v1", "/v1/", False),
        ("/v1", "/v1\n", False),
        ("/v1/.*", "/v1/a\n", True),
        ("/v1", "/a/v1", False),
        ("/v1|/v2", "/v1/queues", False),
        ("/v1|/v2/queues", "/v2/queues", True),
        (r"/v\d+/queues/[^/]+", "/v1/queues/a", True),
        (r"/v\d+/queues/[^/]+", "/v1/queues/a/b", False),
        ("(?i)/QUEUES", "/queues", True),
        ("", "/", False),
        ("", "", True),
        (r"/\w+", "/größe", True),
        (r"(?P<a>/x)(?P=a)", "/x/x", True),
        (r"/(?!private).*", "/private", False),
    ],
)
def test_route_must_match_the_whole_path(
    tmp_path: Path, clock: ManualClock, route: str, path: str, matches: bool
) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=1, route=route)]), clock)
    assert web.statuses(2, path) == [200, 429 if matches else 200]


def test_rate_applies_only_to_its_methods(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=1, methods=["GET", "delete"])]), clock)
    assert web.statuses(3, method="PUT") == [200] * 3
    assert web.wrapped.counts.unmatched == 3
    assert web.statuses(1, method="GET") == [200]
    assert web.statuses(1, method="DELETE") == [429], "methods of one rate share a bucket"
    assert web.statuses(1, method="get") == [429], "applications treat it as GET"
    assert "ratelimit" not in web.get(method="PUT").headers


@pytest.mark.parametrize("methods", [[], "GET", ""])
def test_empty_or_text_methods_match_no_request(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture, methods: Any
) -> None:
    """EOM Governor makes a set of them, which is empty or contains single letters."""
    web = GovernorClient(write(tmp_path, [rate(limit=0, methods=methods)]), clock)
    assert web.statuses(2, method="GET") == [200, 200]
    assert web.wrapped.counts.unmatched == 2
    is_warned = "is text, so the rate matches no request; write ['GET']" in caplog.text
    assert is_warned is (methods == "GET")


def test_rates_with_equal_names_count_separately(tmp_path: Path, clock: ManualClock) -> None:
    general = [rate("a", 1, route="/1"), rate("a", 1, route="/2"), rate("a (2)", 1, route="/3")]
    of_project = [rate("a", 1, project="p", route=f"/{number}") for number in (4, 5)]
    of_project += [rate("a", 1, project="q"), rate("a", 2, project="p", route="/6")]
    web = GovernorClient(write(tmp_path, general, of_project), clock)
    for number in range(1, 6):
        assert web.statuses(2, f"/{number}") == [200, 429]
    assert web.statuses(3, "/6") == [200, 200, 429]
    assert web.statuses(2, project="q") == [200, 429]


def test_thousands_of_projects_can_have_rates(tmp_path: Path, clock: ManualClock) -> None:
    of_project = [rate(f"of {n}", 1 + n % 3, n % 7 + 1, project=str(n)) for n in range(5000)]
    web = GovernorClient(write(tmp_path, [rate("all", 9)], of_project), clock)
    for number in (0, 1, 2, 4999):
        allowed = 1 + number % 3
        assert web.statuses(5, project=str(number)).count(200) == allowed
    different = [rate(limit=n + 1, project=str(n)) for n in range(1001)]
    with pytest.raises(ConfigError, match="at most 1000 different rates, got 1001"):
        GovernorClient(write(tmp_path, (), different), clock)


def test_request_without_a_project_id_gets_400(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate(route="/v1")]), clock)
    for path in ("/v1", "/no/rate"):
        answer = web.get(path, None)
        assert (answer.status, answer.headers, answer.body) == (400, {"content-length": "0"}, b"")
    assert web.wrapped.counts.without_project == 2


def test_empty_project_id_is_counted_as_a_project(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=2)]), clock)
    assert [web.get(project=project).status for project in ("", "  ", "")] == [200, 200, 429]
    assert web.statuses(1, project="p") == [200]
    assert web.wrapped.counts.without_project == 0
    own = GovernorClient(write(tmp_path, [rate(limit=2)], [rate(limit=1, project="")]), clock)
    assert own.statuses(2, project="") == [200, 429]
    assert own.statuses(2, project="p") == [200, 200]


def test_project_id_may_have_any_letters(tmp_path: Path, clock: ManualClock) -> None:
    # The last byte of à and Å is a blank in latin-1.
    of_project = [rate("own", 2, project=project) for project in ("größe", "voilà", "Å")]
    path = write(tmp_path, [rate(limit=1)], of_project)
    web = GovernorClient(path, clock)
    assert web.statuses(3, project="größe") == [200, 200, 429]
    assert web.statuses(1, project=" größe ") == [429]
    assert web.statuses(3, project="voilà") == web.statuses(3, project="Å") == [200, 200, 429]
    assert web.statuses(2, project="grösse") == [200, 429]
    assert web.statuses(2, project="x" * 100_000) == [200, 429]


def test_refusal_has_an_empty_body_and_header_fields(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path, [rate('al"l', 2, 0.5)]), clock)
    first, _, last = [web.get() for _ in range(3)]
    assert (first.status, first.body, first.headers["x-app"]) == (200, b"hello", "1")
    assert first.headers["ratelimit-policy"] == '"al\\"l";q=2;w=4'
    assert first.headers["ratelimit"] == '"al\\"l";r=1;t=2'
    assert "retry-after" not in first.headers
    assert isinstance(first.request["dthrottle.decision"], Decision)
    assert (last.status, last.body) == (429, b"")
    assert last.headers == {
        "content-length": "0",
        "retry-after": "4",  # refused requests count: the count is 3, and must fall to 1
        "ratelimit-policy": '"al\\"l";q=2;w=4',
        "ratelimit": '"al\\"l";r=0;t=4',
    }
    clock.advance(4)
    assert web.statuses(2) == [200, 429]
    counts = web.wrapped.counts
    assert (counts.passed, counts.refused, counts.unmatched, counts.failed) == (3, 2, 0, 0)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("none", set()),
        (False, set()),
        ("x-ratelimit", {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}),
        ("draft-7", {"ratelimit", "ratelimit-policy"}),
    ],
)
def test_headers_option_selects_the_header_fields(
    tmp_path: Path, clock: ManualClock, kind: Any, names: set[str]
) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=1)]), clock, headers=kind)
    assert set(web.get().headers) == {"content-type", "x-app"} | names
    more = names | {"retry-after"} if names else set()
    assert set(web.get().headers) == {"content-length"} | more


@pytest.mark.parametrize(("kind", "count"), [("standard", 2), ("draft-6", 1)])
def test_header_fields_of_two_governors_are_merged(tmp_path: Path, kind: Any, count: int) -> None:
    path = write(tmp_path, [rate(limit=9)])
    inner = wrap(hello, path, headers=kind, clock=ManualClock())
    outer = wrap(inner, path, headers=kind, clock=ManualClock())
    pairs: list[Any] = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_X_PROJECT_ID": "p"}
    outer(environ, lambda _status, headers: pairs.extend(headers))  # type: ignore[arg-type]
    assert [name for name, _ in pairs].count("RateLimit-Policy") == count


def test_exception_of_the_application_is_passed_on(tmp_path: Path, clock: ManualClock) -> None:
    def app(_environ: Any, start_response: Any) -> list[bytes]:
        start_response("500 No", [], (ValueError, ValueError("no"), None))
        raise KeyError("mine")

    governor = wrap(app, write(tmp_path, [rate()]), clock=clock)
    started: list[Any] = []
    environ = {"REQUEST_METHOD": "GET", "HTTP_X_PROJECT_ID": "p"}
    with pytest.raises(KeyError, match="mine"):
        governor(environ, lambda *given: started.append(given))  # type: ignore[arg-type]
    assert started[0][2][0] is ValueError
    assert governor.counts.failed == 0


def test_refusal_is_sent_after_throttle_milliseconds(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    ini = INI.replace("throttle_milliseconds = 0", "throttle_milliseconds = 5")
    web = GovernorClient(write(tmp_path, [rate(limit=1)], ini=ini), clock)
    web.get(project=None)
    assert web.statuses(1) == [200]
    assert slept == []
    assert web.statuses(2) == [429, 429]
    assert slept == [0.005, 0.005]


def test_log_line_of_a_refusal_is_that_of_the_original(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    web = GovernorClient(write(tmp_path, [rate("each", 1.0)]), clock)
    caplog.clear()
    web.statuses(2, project="1234")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("dthrottle.governor", logging.WARNING)
    assert record.getMessage() == (
        'Hit limit of 1.0 per sec. for project 1234 according to rate rule "each"'
    )


@pytest.mark.parametrize(
    ("project", "shown"),
    [
        ("a\nHit limit of 9", "a\\nHit limit of 9"),
        ("a\r\x1b[2J\x7f", "a\\r\\x1b[2J\\x7f"),
        ("a\u2028b\u202e", "a\\u2028b\\u202e"),
        ("a%s %(name)d {limit}", "a%s %(name)d {limit}"),
        ("größe", "größe"),
        ("x" * 300, "x" * 200 + "..."),
    ],
)
def test_control_characters_of_a_project_id_are_escaped_in_the_log(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture, project: str, shown: str
) -> None:
    web = GovernorClient(write(tmp_path, [rate(limit=1)]), clock)
    caplog.clear()
    assert web.statuses(2, project=project) == [200, 429]
    assert f"for project {shown} according" in caplog.messages[0]
    assert "\n" not in caplog.messages[0]


def test_failing_throttle_passes_requests(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def check(self, _tag: bytes) -> Decision:
            raise OSError("broken")

    web = GovernorClient(write(tmp_path, [rate(limit=1)]), clock)
    made: Any = web.wrapped
    made._general = [made._general[0]._replace(domain=Broken())]
    caplog.clear()
    assert web.statuses(3) == [200] * 3
    assert made.counts.failed == 3
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "broken" in caplog.text


def test_failing_logger_passes_requests(tmp_path: Path, clock: ManualClock) -> None:
    class Refuse(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            if record.levelno == logging.WARNING:
                raise OSError("no")
            return True

    web = GovernorClient(write(tmp_path, [rate(limit=1)]), clock, logger="picky")
    logging.getLogger("picky").addFilter(Refuse())
    assert web.statuses(2) == [200, 200]
    assert web.wrapped.counts.failed == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"headers": "standart"}, "did you mean `standard`"),
        ({"table": 5}, "a name such as"),
        ({"table": {"nam": "x"}}, "name"),
        ({"cluster": {"listen": "127.0.0.1:0"}, "table": False}, "name"),
        ({"logger": 5}, "the name of a logger"),
        ({"tabl": False}, "did you mean `table`"),
        ({"xyzzy": False}, "the known names are headers, table"),
    ],
)
def test_wrong_option_is_an_error(tmp_path: Path, options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        wrap(hello, write(tmp_path, [rate()]), **options)
    assert next(iter(options)) in (caught.value.field or "")


def test_options_have_the_documented_names() -> None:
    assert set(Options.__annotations__) == {"headers", "table", "cluster", "logger", "clock"}


def test_log_says_which_processes_share_the_counts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    named: Any = {"name": "gov", "dir": str(tmp_path), "size": 1000}
    with_redis = write(tmp_path, [rate(limit=1)])
    without = tmp_path / "other.conf"
    without.write_text(INI.partition("[eom:redis]")[0], "utf-8")
    cluster: Any = {"name": "west", "listen": "127.0.0.1:0"}
    for path, options, says in [
        (with_redis, {"table": named}, "[eom:redis] is not used any more: the counts are shared by "
         "all processes on this host that use table gov; other hosts count separately, "
         "because there is no cluster"),
        (without, {"table": False}, "the counts are kept in this process only; other hosts"),
        (without, {"table": {**named, "size": "8 MB", "name": "c"}, "cluster": cluster},
         "table c, and with all hosts of cluster west"),
    ]:  # fmt: skip
        caplog.clear()
        GovernorClient(path, **options)
        (record,) = [r for r in caplog.records if "counts are" in r.getMessage()]
        assert (record.name, record.levelname) == ("dthrottle.governor", "INFO")
        assert says in record.getMessage()
        assert ("redis" in record.getMessage()) is (path == with_redis)
    assert GovernorClient(with_redis, table=named).statuses(1) == [200]
    assert GovernorClient(with_redis, table=named).statuses(1) == [429], "both share one table"


def test_governors_with_different_rates_in_one_table_cause_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table: Any = {"name": f"two{random.getrandbits(40)}", "dir": str(tmp_path), "size": 1000}
    path = write(tmp_path, [rate(limit=1)])
    clients = [GovernorClient(path, table=table) for _ in range(2)]
    assert "disturb" not in caplog.text
    clients.append(GovernorClient(write(tmp_path, [rate(limit=2)]), table=table))
    assert "governor rate all" in caplog.text
    assert "disturb" in caplog.text
