"""The responses of nginx's module to single requests, which are those of limit_req."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nginx import location, nginx
from server import Answer, Server, retry_with_keys, send_at_once, wait_in_delay, wait_until

HTTP = """
dthrottle_zone $request_uri zone=slow rate=1r/d;
dthrottle_zone $arg_key zone=key rate=1r/d;
dthrottle_zone $arg_key zone=other:1m rate=1r/d;
dthrottle_zone $arg_key zone=tenth rate=10r/s;
dthrottle_zone $arg_key zone=hour rate=1r/h;
dthrottle_zone $arg_key zone=mixed rate=1r/d;
dthrottle_zone $arg_key zone=tried rate=1r/d;
dthrottle_status 429;
"""
# With a file, which may set dry_run, nginx uses the full check for each request.
FILE_HTTP = """
dthrottle_config {file};
dthrottle_zone $arg_key zone=rules;
dthrottle_zone "$arg_key-$arg_more" zone=dry;
dthrottle_zone $arg_key zone=dry-hour;
"""
SERVER = (
    "dthrottle zone=slow;"
    + location("/inherits")
    + location("/off", "dthrottle off;")
    + location("/own", "dthrottle zone=key burst=2 nodelay;")
    + location("/less", "dthrottle zone=key burst=1 nodelay;")
    + location("/both", "dthrottle zone=key burst=2 nodelay;", "dthrottle zone=other;")
    + location("/tenth", "dthrottle zone=tenth burst=6;")
    + location("/two-stages", "dthrottle zone=tenth burst=6 delay=3;")
    + location("/dry", "dthrottle zone=hour burst=1;", "dthrottle_dry_run on;")
    + location(
        "/teapot", "dthrottle zone=key;", "dthrottle_status 418;", "dthrottle_log_level warn;"
    )
    + location("/mixed", "dthrottle zone=mixed burst=9 nodelay;", "dthrottle zone=tenth burst=6;")
    + location("/count", "dthrottle zone=mixed burst=9 nodelay;")
    + location("/minute", "dthrottle zone=hour burst=1;")
    + location("/page", "dthrottle zone=key;", "error_page 429 =200 /shown;")
    + location("/shown", "dthrottle zone=other;")
    + "location /tried { dthrottle zone=tried burst=5 nodelay; try_files /nothing @named; }\n"
    + location("@named", "dthrottle zone=tried burst=5 nodelay;")
)
FILE_SERVER = (
    location("/rules", "dthrottle zone=rules;")
    + location("/patient", "dthrottle zone=rules max_delay=2s;")
    + location("/dry-domain", "dthrottle zone=dry;")
    + location("/dry-wait", "dthrottle zone=dry-hour max_delay=3600s;")
    + location("/dry-first", "dthrottle zone=dry;", "dthrottle zone=other;")
    + location("/dry-delay", "dthrottle zone=dry;", "dthrottle zone=hour burst=1;")
)
TOML = """
[domains.rules]
rules = [
    { name = "fast", rate = "2/s", burst = 2 },
    { name = "slow", rate = "100/s" },
]
[domains.dry]
rate = "1/day"
dry_run = true
[domains.dry-hour]
rate = "2/hour"
burst = 1
dry_run = true
"""


@pytest.fixture(scope="module")
def file_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("config") / "dthrottle.toml"
    file.write_text(TOML)
    with nginx(HTTP + FILE_HTTP.format(file=file), SERVER + FILE_SERVER) as started:
        yield started


@pytest.fixture(scope="module")
def plain_server() -> Iterator[Server]:
    with nginx(HTTP, SERVER) as started:
        yield started


@pytest.fixture(params=["plain_server", "file_server"])
def server(request: pytest.FixtureRequest) -> Server:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Server)
    return found


def shown(answer: Answer) -> tuple[int, str | None, str | None]:
    return answer.status, answer.headers.get("x-status"), answer.headers.get("x-remaining")


def test_a_location_without_limits_inherits_them(server: Server) -> None:
    assert shown(server.get("/inherits")) == (200, "PASSED", "0")
    assert shown(server.get("/inherits")) == (429, "REJECTED", "0")
    assert [shown(server.get("/off")) for _ in range(3)] == [(200, None, None)] * 3
    assert server.statuses("/own?key=i", 4) == [200, 200, 200, 429]


def test_an_empty_key_is_not_limited(server: Server) -> None:
    assert [shown(server.get("/own")) for _ in range(5)] == [(200, None, None)] * 5


def test_a_key_may_have_any_length(server: Server) -> None:
    assert server.statuses("/own?key=" + "x" * 3000, 4) == [200, 200, 200, 429]
    assert server.statuses("/own?key=" + "x" * 3001, 1) == [200]


def test_uses_with_different_bursts_share_one_bucket(server: Server) -> None:
    assert shown(server.get("/less?key=c")) == (200, "PASSED", "1")
    assert shown(server.get("/less?key=c")) == (200, "PASSED", "0")
    assert shown(server.get("/less?key=c")) == (429, "REJECTED", "0")
    assert shown(server.get("/own?key=c")) == (200, "PASSED", "0")
    assert shown(server.get("/own?key=c")) == (429, "REJECTED", "0")
    assert shown(server.get("/less?key=c")) == (429, "REJECTED", "0")


def test_a_request_must_pass_all_limits_and_a_refusal_charges_none(server: Server) -> None:
    assert shown(server.get("/both?key=b")) == (200, "PASSED", "0")
    assert server.statuses("/both?key=b", 5) == [429] * 5
    assert shown(server.get("/own?key=b")) == (200, "PASSED", "1")


def test_a_refusal_has_the_status_of_the_directive_and_retry_after(server: Server) -> None:
    first, second = (server.get("/teapot?key=t") for _ in range(2))
    assert (first.status, first.headers.get("retry-after")) == (200, None)
    assert second.status == 418
    # The bucket of the zone is larger than the burst of this use, so the time is one day.
    assert int(second.headers["retry-after"]) == pytest.approx(86400, abs=2)
    assert "[warn]" in server.log()
    assert re.search(r"limiting requests, retry after 8639\d\.", server.log())


def test_retry_after_includes_units_taken_by_locations_with_larger_bursts(server: Server) -> None:
    assert server.statuses("/own?key=w", 3) == [200] * 3
    # Three units must refill until this use allows one request.
    answer = server.get("/teapot?key=w")
    assert answer.status == 418
    assert int(answer.headers["retry-after"]) == pytest.approx(3 * 86400, abs=2)


def are_spaced(answers: list[Answer], seconds: float) -> None:
    """Check that each response comes this much later than the one before, or slightly more."""
    for number, answer in enumerate(answers, 1):
        assert number * seconds - 0.03 < answer.seconds < number * seconds + 0.3


def test_delayed_requests_are_spaced_by_the_rate(server: Server) -> None:
    def check(key: str) -> None:
        answers = send_at_once(server, f"/tenth?key=s{key}", 8)
        assert sorted(answer.status for answer in answers) == [200] * 7 + [429]
        statuses = [str(shown(answer)[1]) for answer in answers]
        assert (sorted(statuses[:2]), statuses[2:]) == (["PASSED", "REJECTED"], ["DELAYED"] * 6)
        are_spaced(answers[2:], 0.1)

    retry_with_keys(check)


def test_the_longest_delay_of_several_limits_counts_and_is_charged_once(server: Server) -> None:
    def check(key: str) -> None:
        answers = send_at_once(server, f"/mixed?key=m{key}", 4)
        assert [shown(answer)[1] for answer in answers] == ["PASSED"] + ["DELAYED"] * 3
        are_spaced(answers[1:], 0.1)
        assert shown(server.get(f"/count?key=m{key}")) == (200, "PASSED", "5")

    retry_with_keys(check)


def test_requests_within_delay_are_not_delayed(server: Server) -> None:
    def check(key: str) -> None:
        answers = send_at_once(server, f"/two-stages?key=t{key}", 7)
        assert [answer.status for answer in answers] == [200] * 7
        assert [shown(answer)[1] for answer in answers] == ["PASSED"] * 4 + ["DELAYED"] * 3
        are_spaced(answers[4:], 0.1)

    retry_with_keys(check)


def test_a_client_that_leaves_during_its_delay_gets_a_refund(server: Server) -> None:
    path = "/minute?key=g"
    assert shown(server.get(path))[1] == "PASSED"
    for _ in range(4):
        client = wait_until("another request can be delayed", lambda: wait_in_delay(server, path))
        assert server.statuses(path, 3) == [429] * 3, "only one request can be delayed"
        client.close()


def test_a_client_that_left_before_the_check_gets_a_refund(server: Server) -> None:
    path = "/minute?key=f"
    assert shown(server.get(path))[1] == "PASSED"
    workers = server.children()
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    finally:
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
    logged = f'request: "GET {path} HTTP/1.1", host: "test"'
    wait_until("the request was checked", lambda: logged in server.log())
    wait_until("another request can be delayed", lambda: wait_in_delay(server, path)).close()


def test_dry_run_refuses_nothing_and_publishes_what_it_would_do(server: Server) -> None:
    answers = [server.get("/dry?key=d") for _ in range(4)]
    assert [answer.status for answer in answers] == [200] * 4
    statuses = [shown(answer)[1] for answer in answers]
    assert statuses == ["PASSED", "DELAYED_DRY_RUN", "REJECTED_DRY_RUN", "REJECTED_DRY_RUN"]
    assert "limiting requests, dry run, " in server.log()


def test_a_domain_in_dry_run_refuses_nothing(file_server: Server) -> None:
    answers = [file_server.get("/dry-domain?key=d") for _ in range(2)]
    assert [shown(answer) for answer in answers] == [
        (200, "PASSED", "0"),
        (200, "REJECTED_DRY_RUN", "0"),
    ]


def test_a_domain_in_dry_run_delays_nothing(file_server: Server) -> None:
    answers = [file_server.get("/dry-wait?key=w") for _ in range(4)]
    statuses = [str(shown(answer)[1]) for answer in answers]
    assert statuses == ["PASSED", "DELAYED_DRY_RUN", "DELAYED_DRY_RUN", "REJECTED_DRY_RUN"]
    assert [answer.status for answer in answers] == [200] * 4
    assert "delaying request, dry run, by 17" in file_server.log()
    assert max(answer.seconds for answer in answers) < 60


def test_dry_run_in_a_file_applies_to_every_zone(tmp_path: Path) -> None:
    file = tmp_path / "dthrottle.toml"
    file.write_text("dry_run = true\n")
    http = f"dthrottle_config {file}; dthrottle_zone $arg_key zone=hour rate=1r/h;"
    uses = location("/two", "dthrottle zone=hour burst=2;")
    uses += location("/none", "dthrottle zone=hour nodelay;")
    with nginx(http, uses) as server:
        answers = [server.get("/two?key=a") for _ in range(4)]
        assert [shown(answer)[:2] for answer in answers] == [
            (200, "PASSED"),
            (200, "DELAYED_DRY_RUN"),
            (200, "DELAYED_DRY_RUN"),
            (200, "REJECTED_DRY_RUN"),
        ]
        answers = [server.get("/none?key=b") for _ in range(2)]
        assert [shown(answer)[:2] for answer in answers] == [
            (200, "PASSED"),
            (200, "REJECTED_DRY_RUN"),
        ]


def test_other_limits_apply_beside_a_domain_in_dry_run(file_server: Server) -> None:
    assert shown(file_server.get("/dry-domain?key=o")) == (200, "PASSED", "0")
    assert shown(file_server.get("/dry-first?key=o")) == (200, "REJECTED_DRY_RUN", "0")
    assert shown(file_server.get("/dry-first?key=o")) == (429, "REJECTED", "0")
    assert shown(file_server.get("/dry-delay?key=o")) == (200, "REJECTED_DRY_RUN", "0")
    client = wait_in_delay(file_server, "/dry-delay?key=o")
    assert client, "the other limit delays"
    assert file_server.get("/dry-delay?key=o").status == 429
    # Exactly the charged unit is refunded.
    client.close()
    client = wait_until(
        "another request can be delayed", lambda: wait_in_delay(file_server, "/dry-delay?key=o")
    )
    assert file_server.get("/dry-delay?key=o").status == 429
    client.close()
    wait_until(
        "another request can be delayed", lambda: wait_in_delay(file_server, "/minute?key=o")
    ).close()
    assert shown(file_server.get("/dry-domain?key=o")) == (200, "REJECTED_DRY_RUN", "0")


def test_rules_of_a_file_refuse_and_delay(file_server: Server) -> None:
    def check(key: str) -> None:
        begin = time.monotonic()
        assert shown(file_server.get(f"/rules?key=r{key}")) == (200, "PASSED", "1")
        assert file_server.statuses(f"/rules?key=r{key}", 2) == [200, 429]
        answers = send_at_once(file_server, f"/patient?key=r{key}", 6, begin)
        assert sorted(answer.status for answer in answers) == [200] * 4 + [429] * 2
        are_spaced([answer for answer in answers if answer.status == 200], 0.5)

    retry_with_keys(check)


def test_an_internal_redirect_is_not_charged_again(server: Server) -> None:
    assert shown(server.get("/page?key=p")) == (200, "PASSED", "0")
    # The error page is not charged, although its location has a zone.
    for _ in range(3):
        assert shown(server.get("/page?key=p")) == (200, "REJECTED", "0")
    assert server.get("/shown?key=p").status == 200
    assert [shown(server.get("/tried?key=q"))[2] for _ in range(2)] == ["5", "4"]
