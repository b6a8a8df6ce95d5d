"""Header fields of Apache and nginx compared with the vectors.

The servers have no manual clock. So only the first request of each case is sent, for which the
bucket is full. Refusals are tested with slow rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache as apaches
import nginx as nginxes
import pytest
from server import REPOSITORY, Answer, Server

KNOWN = {"rate", "burst", "rules", "headers", "domain"}
KINDS = ["standard", "draft-7", "draft-6", "x-ratelimit"]
SERVERS = ["apache", "nginx"]


def first_requests() -> dict[str, dict[str, Any]]:
    """Return the cases that a server can express, by the name of a domain."""
    cases = json.loads((REPOSITORY / "tests" / "vectors" / "web.json").read_text())["cases"]
    named = {f"case{number}": case for number, case in enumerate(cases)}
    return {
        domain: case
        for domain, case in named.items()
        if case["options"].keys() <= KNOWN and case["steps"][0]["request"] == {}
    }


CASES = first_requests()


def toml(value: object) -> str:
    """Write a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def config() -> str:
    text = ""
    for domain, case in CASES.items():
        rules = case["options"].keys() - {"headers", "domain"}
        options = {key: case["options"][key] for key in rules}
        text += f"domains.{domain} = {toml(options)}\n"
    for kind in KINDS:
        text += f'domains.{kind} = {{ rate = "1/day", burst = 2 }}\n'
    return text + 'domains.dry = { rate = "1/day", dry_run = true }\n'


def kind_of(case: dict[str, Any]) -> str:
    kind = case["options"].get("headers", "standard")
    return str({True: "on", False: "off"}.get(kind, kind))


def uses() -> Iterator[tuple[str, str]]:
    """Yield each domain with its kind of header fields."""
    yield from ((domain, kind_of(case)) for domain, case in CASES.items())
    yield from ((kind, kind) for kind in KINDS)
    yield "dry", "standard"


def apache_lines(file: Path) -> str:
    lines = f"DThrottleConfigFile {file}\n"
    for domain, kind in uses():
        lines += apaches.location(
            f"/{domain}",
            "DThrottle On",
            f"DThrottleDomain {domain}",
            f"DThrottleHeaders {kind}",
        )
    return lines


NGINX_ZONES = """
dthrottle_zone $remote_addr$request_uri zone=one rate=1r/d;
dthrottle_zone $remote_addr$request_uri zone=two rate=1r/d;
"""
BOTH = ("dthrottle zone=one;", "dthrottle zone=two burst=4 nodelay;")
NGINX_LOCATIONS = "".join(
    [
        nginxes.location("/both", *BOTH, "dthrottle_headers on;"),
        nginxes.location("/both-7", *BOTH, "dthrottle_headers draft-7;"),
        nginxes.location("/both-dry", *BOTH, "dthrottle_headers on;", "dthrottle_dry_run on;"),
        nginxes.location("/small", "dthrottle zone=two burst=1 nodelay;", "dthrottle_headers on;"),
        nginxes.location("/silent", *BOTH),
        "location /inherited { dthrottle_headers draft-7;",
        nginxes.location("/inherited/here", "dthrottle zone=one;"),
        nginxes.location("/inherited/off", "dthrottle zone=one;", "dthrottle_headers off;"),
        "}",
    ]
)


def nginx_http(file: Path) -> str:
    zones = "".join(f"dthrottle_zone $remote_addr zone={domain};\n" for domain, _ in uses())
    return f"dthrottle_config {file};\n{zones}{NGINX_ZONES}"


def nginx_server() -> str:
    locations = (
        nginxes.location(f"/{domain}", f"dthrottle zone={domain};", f"dthrottle_headers {kind};")
        for domain, kind in uses()
    )
    return "".join(locations) + NGINX_LOCATIONS


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    file = tmp_path_factory.mktemp("config") / "dthrottle.toml"
    file.write_text(config())
    file.parent.chmod(0o755)
    with (
        apaches.apache(apache_lines(file)) as apache,
        nginxes.nginx(nginx_http(file), nginx_server()) as nginx,
    ):
        yield {"apache": apache, "nginx": nginx}


def limits(answer: Answer) -> dict[str, str]:
    """Return the header fields about limits, except X-RateLimit-Reset, which is a Unix time."""
    return {
        name: value
        for name, value in answer.headers.items()
        if "ratelimit" in name and name != "x-ratelimit-reset"
    }


# nginx peeks at the bucket again for the fields. With the fastest rate it has refilled by then.
FIRST = [
    pytest.param(domain, server, id=f"{case['name']}-{server}")
    for domain, case in CASES.items()
    for server in SERVERS
    if (server, case["name"]) != ("nginx", "a large burst")
]


@pytest.mark.parametrize(("domain", "server"), FIRST)
def test_the_first_response_has_the_fields_of_the_vectors(
    servers: dict[str, Server], domain: str, server: str
) -> None:
    case = CASES[domain]
    name = case["options"].get("domain", "default")
    fields = case["steps"][0]["expect"]["fields"]
    # A single rule without a name has the name of its domain.
    expect = {key.lower(): value.replace(f'"{name}"', f'"{domain}"') for key, value in fields}
    expect.pop("x-ratelimit-reset", None)
    assert limits(servers[server].get(f"/{domain}")) == expect


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_has_retry_after_and_the_fields_of_its_kind(
    servers: dict[str, Server], kind: str, server: str
) -> None:
    for _ in range(2):
        assert "retry-after" not in servers[server].get(f"/{kind}").headers
    answer = servers[server].get(f"/{kind}")
    assert answer.status >= 400
    after = answer.headers["retry-after"].split(", ")[0]
    assert 86_000 < int(after) <= 86_400
    q = f'"{kind}";q=2;w=172800'
    expect = {
        "standard": {"ratelimit-policy": q, "ratelimit": f'"{kind}";r=0;t={after}'},
        "draft-7": {
            "ratelimit-policy": "2;w=172800",
            "ratelimit": f"limit=2, remaining=0, reset={after}",
        },
        "draft-6": {
            "ratelimit-policy": "2;w=172800",
            "ratelimit-limit": "2",
            "ratelimit-remaining": "0",
            "ratelimit-reset": after,
        },
        "x-ratelimit": {"x-ratelimit-limit": "2", "x-ratelimit-remaining": "0"},
    }
    assert limits(answer) == expect[kind]


@pytest.mark.parametrize("server", SERVERS)
def test_dry_run_has_the_fields_of_a_refusal_without_retry_after(
    servers: dict[str, Server], server: str
) -> None:
    answers = [servers[server].get("/dry") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert all("retry-after" not in answer.headers for answer in answers)
    assert answers[1].headers["ratelimit"].startswith('"dry";r=0;t=86')


def test_nginx_joins_the_lists_of_several_limits(servers: dict[str, Server]) -> None:
    answers = [servers["nginx"].get("/both") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 503]
    policy = '"one";q=1;w=86400, "two";q=5;w=432000'
    assert [answer.headers["ratelimit-policy"] for answer in answers] == [policy] * 2
    assert answers[0].headers["ratelimit"] == '"one";r=0;t=86400, "two";r=4;t=86400'
    one, two = answers[1].headers["ratelimit"].split(", ")
    assert one == f'"one";r=0;t={answers[1].headers["retry-after"].split(", ")[0]}'
    # The refused request was not charged by the other limit.
    assert two.startswith('"two";r=4;t=86')


def test_nginx_shows_the_limit_with_the_least_left_in_single_fields(
    servers: dict[str, Server],
) -> None:
    answer = servers["nginx"].get("/both-7")
    assert answer.headers["ratelimit"] == "limit=1, remaining=0, reset=86400"
    assert answer.headers["ratelimit-policy"] == "1;w=86400"


def test_nginx_dry_run_has_no_retry_after(servers: dict[str, Server]) -> None:
    answers = [servers["nginx"].get("/both-dry") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]
    assert "retry-after" not in answers[1].headers
    assert answers[1].headers["ratelimit"].startswith('"one";r=0;t=86')


def test_nginx_leaves_out_units_reserved_for_larger_bursts(
    servers: dict[str, Server],
) -> None:
    answers = [servers["nginx"].get("/small") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 503]
    assert [answer.headers["ratelimit"][:9] for answer in answers] == [
        '"two";r=1',
        '"two";r=0',
        '"two";r=0',
    ]


def test_nginx_writes_no_fields_by_default(servers: dict[str, Server]) -> None:
    assert limits(servers["nginx"].get("/silent")) == {}
    assert limits(servers["nginx"].get("/inherited/off")) == {}
    assert "remaining=0" in servers["nginx"].get("/inherited/here").headers["ratelimit"]
