"""Errors about options, which are raised when a middleware is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from web import WsgiClient, kinds

from dthrottle import ConfigError, DomainError, DthrottleError, FileError, Throttle
from dthrottle.options import Options


async def later(*_given: Any) -> None:
    """Do nothing."""


WRONG: list[tuple[str, Any, str]] = [
    ("domain", "", "text"),
    ("domain", 5, "text"),
    ("tag", 5, "a function"),
    ("tag", "header", "header:X-Api-Key"),
    ("tag", "header:", "header:X-Api-Key"),
    ("tag", "header:a b", "header:X-Api-Key"),
    ("tag", "addres", '"address"'),
    ("cost", "1", "whole number"),
    ("cost", -1, "whole number"),
    ("cost", 1.5, "whole number"),
    ("cost", True, "whole number"),
    ("cost", 11, "at most 10, the burst"),
    ("methods", "GET", 'list such as ["GET"'),
    ("methods", ["get"], '"GET"'),
    ("methods", [5], "text"),
    ("methods", [], "remove it"),
    ("body", {"a": object()}, "JSON"),
    ("body", {"a": float("nan")}, "JSON"),
    ("methods", 5, "list"),
    ("routes", "/api", "list"),
    ("routes", ["/(api"], "regular expression"),
    ("routes", [None], "text"),
    ("allow", "10.0.0.1", "list"),
    ("allow", ["10.0.0.1/8"], "10.0.0.0/8"),
    ("allow", ["10.0.0.300"], "network"),
    ("allow", ["2001:db8::/129"], "network"),
    ("allow", [5], "text or bytes"),
    ("allow", ["10.0.0.0/8", "alice"], "must have only addresses and networks such"),
    ("allow", ["alice"], "because tags are addresses (option `tag`)"),
    ("allow", [""], 'got ""'),
    ("allow", ["*"], "network"),
    ("allow", ["localhost"], "network"),
    ("allow", ["10.0.0.1:80"], "network"),
    ("allow", ["[::1]"], "network"),
    ("allow", 5, "list"),
    ("allow", later, "belongs in the option `skip`"),
    ("skip", "alice", "a function"),
    ("skip_failed_requests", 1, "true or false"),
    ("skip_successful_requests", "yes", "true or false"),
    ("dry_run", 1, "true or false"),
    ("dry_run", "yes", "true or false"),
    ("status", 200, "400 to 599"),
    ("status", "429", "400 to 599"),
    ("status", True, "400 to 599"),
    ("status", 429.5, "whole number"),
    ("body", 5, "problem+json"),
    ("on_refused", "log", "a function"),
    ("headers", "standart", "did you mean `standard`?"),
    ("headers", "draft-5", "did you mean"),
    ("headers", 5, "one of standard"),
    ("legacy_headers", "yes", "true or false"),
    ("retry_after", "yes", "true or false"),
    ("max_delay", "1s", "a number"),
    ("max_delay", -1, "from 0"),
    ("max_delay", float("nan"), "from 0"),
    ("max_delay", float("inf"), "from 0"),
    ("max_delayed", 1.5, "whole number"),
    ("max_delayed", -1, "from 0"),
    ("throttle_milliseconds", -5, "from 0"),
    ("trusted_proxies", True, "number of proxies"),
    ("trusted_proxies", "10.0.0.1", "list"),
    ("ipv6_prefix", 0, "1 to 128"),
    ("table", 5, "a name such as"),
    ("table", True, "a name such as"),
    ("table", "a/b", "letters, digits"),
    ("table", {"nam": "web"}, "name"),
    ("burst", 0, "burst"),
]


@kinds
@pytest.mark.parametrize(("option", "value", "says"), WRONG)
def test_wrong_value_of_an_option_is_an_error(
    client: Any, option: str, value: Any, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        client("10/s", **{"table": False, option: value})
    assert option in (caught.value.field or "")
    assert says in str(caught.value)


@kinds
def test_allow_accepts_names_only_if_tags_are_names(client: Any) -> None:
    allow = ["alice", "10.0.0.0/8", "2001:db8::1", b"bob"]
    for tag in ("header:X-Client", lambda _request: "alice"):
        client("10/s", table=False, allow=allow, tag=tag)
    for by_address in ("address", None):
        with pytest.raises(ConfigError, match=r'^`allow` must have only addresses .* got "alice"$'):
            client("10/s", table=False, allow=allow, tag=by_address)
        client("10/s", table=False, allow=allow[1:], tag=by_address)


def test_every_option_has_a_wrong_value_here() -> None:
    assert {option for option, _, _ in WRONG} == set(Options.__annotations__)


@pytest.mark.parametrize("option", ["tag", "cost", "skip", "body", "on_refused"])
def test_coroutine_as_option_of_wsgi_is_an_error(option: str) -> None:
    with pytest.raises(ConfigError, match="nothing awaits"):
        WsgiClient("10/s", table=False, **{option: later})


@kinds
@pytest.mark.parametrize(
    ("option", "near"),
    [
        ("tags", "tag"),
        ("max_dealy", "max_delay"),
        ("dryrun", "dry_run"),
        ("Status", "status"),
        ("key_func", "tag"),
        ("status_code", "status"),
        ("trust_proxy", "trusted_proxies"),
        ("on_breach", "on_refused"),
        ("xyzzy", "the known names are throttle, file, rate"),
    ],
)
def test_unknown_option_is_an_error_with_a_suggestion(client: Any, option: str, near: str) -> None:
    with pytest.raises(ConfigError) as caught:
        client("10/s", table=False, **{option: 1})
    assert caught.value.field == option
    assert f"{near}?" in str(caught.value) or near in str(caught.value)


@kinds
@pytest.mark.parametrize("source", [None, True, ["10/s"], b"10/s", object()])
def test_throttle_of_another_type_is_an_error(client: Any, source: Any) -> None:
    with pytest.raises(ConfigError, match="a Throttle, a rate") as caught:
        client(source)
    assert caught.value.field == "throttle"


@kinds
def test_wrong_configuration_of_the_throttle_is_an_error(client: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="rate"):
        client("10/fortnight", table=False)
    with pytest.raises(ConfigError, match="did you mean `burst`"):
        client({"rate": "10/s", "brst": 5})
    with pytest.raises(ConfigError, match="one of the domains a"):
        client({"domains": {"a": {"rate": 1}}, "table": {"private": True}}, domain="b")
    with pytest.raises(DomainError):
        client(Throttle("1/s"), domain="b")
    with pytest.raises(FileError):
        client(tmp_path / "missing.toml")
    file = tmp_path / "bad.toml"
    file.write_text('rate = "10/s"\nbrust = 5\n', "utf-8")
    for source in (file, str(file)):
        with pytest.raises(ConfigError, match=r"bad.toml: line 2: `brust`") as caught:
            client(source, table=False)
        assert (caught.value.field, caught.value.line) == ("brust", 2)
    file.write_bytes(b"\xff")
    with pytest.raises(DthrottleError):
        client(file)


@kinds
def test_table_burst_or_domain_given_twice_is_an_error(client: Any, tmp_path: Path) -> None:
    table = {"private": True}
    file = tmp_path / "web.toml"
    file.write_text('rate = "10/s"\ntable = { private = true }\n', "utf-8")
    for source in (Throttle("10/s"), {"rate": "10/s", "table": table}, file):
        with pytest.raises(ConfigError, match="table") as caught:
            client(source, table="web")
        assert caught.value.field == "table"
    with pytest.raises(ConfigError, match="must not be given together with `throttle`"):
        client(Throttle("10/s"), burst=5)
    with pytest.raises(ConfigError, match="given once"):
        client({"rate": "10/s", "burst": 20}, burst=5)
    with pytest.raises(ConfigError, match="left out for a domain"):
        client(Throttle("1/s").domain("default"), domain="default")


@kinds
def test_none_as_option_means_the_default(client: Any) -> None:
    options = dict.fromkeys(Options.__annotations__)
    assert client("1/day", **{**options, "table": False}).statuses(2) == [200, 429]


@kinds
@pytest.mark.parametrize("key", [5, None, "\ud800"])
def test_option_name_that_is_not_a_string_is_an_error(client: Any, key: Any) -> None:
    with pytest.raises(ConfigError, match=r"^`options` must have names that are text, got "):
        client({"rate": "1/s", key: 1}, table=False)
