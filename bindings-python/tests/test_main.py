"""The command ``python -m dthrottle``."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import vectors
from flask import Flask
from test_cluster import ports

import dthrottle
from dthrottle import Throttle
from dthrottle.__main__ import main
from dthrottle.address import client_address
from dthrottle.flask import Limiter

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "python.md"

Output = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Return the configuration of a table in the folder of the test."""
    return {"name": f"t{random.getrandbits(32):08x}", "dir": str(tmp_path), "size": 1000}


def run(table: Any, *arguments: str) -> int:
    return main([*arguments, "--dir", table["dir"]])


def test_check_charges_a_tag_and_peek_does_not(table: Any, capsys: Output) -> None:
    throttle = Throttle("3/hour", table=table)
    throttle.allow("alice")
    rule = ("--rate", "3/hour", "--table", table["name"])
    assert run(table, "peek", "alice", *rule) == 0
    assert run(table, "check", "alice", *rule) == 0
    assert "remaining   1 of 3" in capsys.readouterr().out
    assert run(table, "check", "alice", *rule, "--cost", "2") == 1
    output = capsys.readouterr().out
    assert re.search(r"allowed +no, by rule1\n", output)
    assert re.search(r"again after +1[12]\d\d\.\d\d\d s\n", output)
    assert throttle.peek("alice").remaining == 1, "the command checks the same bucket"


def test_address_is_checked_as_the_tag_of_middleware(table: Any) -> None:
    throttle = Throttle("1/hour", table=table)
    throttle.allow(client_address("203.0.113.7") or b"")
    throttle.allow(b"endpoint:one\0bob")
    assert run(table, "check", "203.0.113.7", "--rate", "1/hour") == 1
    assert run(table, "check", "203.0.113.7", "--rate", "1/hour", "--text") == 0
    assert run(table, "check", "bob", "--rate", "1/hour", "--scope", "endpoint:one") == 1
    assert run(table, "check", "bob", "--rate", "1/hour") == 0


def test_scope_of_the_documentation_names_the_bucket_of_a_flask_route(table: Any) -> None:
    app = Flask("shop")
    limiter = Limiter(app, table=table)

    @app.post("/login")
    @limiter.limit("1/minute")
    def login() -> str:
        return "hello"

    assert app.test_client().post("/login").status_code == 200
    where = ("--rate", "1/minute", "--domain", "1/minute", "--table", table["name"])
    assert run(table, "peek", "127.0.0.1", *where) == 0
    assert run(table, "peek", "127.0.0.1", *where, "--scope", "shop endpoint:login") == 1
    assert '--scope "shop endpoint:login"' in DOCUMENTATION.read_text()


def test_check_by_another_rate_changes_no_bucket_without_a_flag(table: Any, capsys: Output) -> None:
    throttle = Throttle("1/hour", table=table)
    throttle.allow("alice")
    for command in ("peek", "check", "reset"):
        assert run(table, command, "alice", "--rate", "100/s") == 2
        assert "no rule of domain" in capsys.readouterr().err
        assert throttle.peek("alice").remaining == 0
    assert run(table, "peek", "alice", "--rate", "1/hour", "--domain", "unknown") == 2
    assert "no rule of domain 'unknown'" in capsys.readouterr().err
    assert run(table, "check", "alice", "--rate", "1/hour") == 1
    changed = ("--rate", "100/s", "--change-rules")
    assert run(table, "check", "bob", *changed) == 0


@pytest.mark.parametrize(("burst", "limit"), [("5", 5), ("24s", 2)])
def test_burst_of_a_check_may_be_a_number_or_a_time(
    table: Any, capsys: Output, burst: str, limit: int
) -> None:
    Throttle("5/minute", burst=limit, table=table)
    assert run(table, "check", "alice", "--rate", "5/minute", "--burst", burst) == 0
    assert f"of {limit}\n" in capsys.readouterr().out


def test_reset_fills_the_bucket_of_a_tag(table: Any) -> None:
    throttle = Throttle("1/hour", table=table)
    throttle.allow("alice")
    throttle.allow("bob")
    assert run(table, "reset", "alice", "--rate", "1/hour") == 0
    assert throttle.peek("alice").remaining == 1
    assert throttle.peek("bob").remaining == 0


def test_list_shows_tables_and_remove_removes_one(table: Any, capsys: Output) -> None:
    Throttle("1/hour", table=table).allow("alice")
    other: Any = {**table, "name": "other"}
    Throttle("1/hour", table=other)
    assert run(table, "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["table", "tags", "buckets", "bytes", "file"]
    assert {line.split()[0] for line in lines[1:]} == {table["name"], "other"}
    assert run(table, "remove", "other") == 0
    assert run(table, "list", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["name"], found["buckets"], found["cluster"]) == (table["name"], 1, None)
    assert found["path"].startswith(table["dir"])
    assert run(table, "remove", "other") == 2
    assert 'unknown table "other"' in capsys.readouterr().err


def test_json_of_a_check_has_every_field_of_a_decision(table: Any, capsys: Output) -> None:
    Throttle("1/hour", table=table)
    assert run(table, "check", "alice", "--rate", "1/hour", "--json") == 0
    decision = json.loads(capsys.readouterr().out)
    assert set(decision) == set(vectors.read("records")["Decision"]["names"])
    assert (decision["allowed"], decision["reset_after"]) == (True, pytest.approx(3600, abs=60))
    assert run(table, "peers", "--json") == 0
    assert json.loads(capsys.readouterr().out) is None


def test_version_is_that_of_the_package(capsys: Output) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["--version"])
    assert exited.value.code == 0
    assert capsys.readouterr().out == f"dthrottle {dthrottle.__version__}\n"


def test_check_reads_the_rules_of_a_file(table: Any, tmp_path: Path, capsys: Output) -> None:
    config = tmp_path / "dthrottle.toml"
    rules = '[domains.login]\nrate = "1/hour"\n'
    config.write_text(rules)
    throttle = Throttle(domains={"login": {"rate": "1/hour"}}, table=table)
    throttle.domain("login").allow("alice")
    file = ("--config", str(config), "--domain", "login")
    assert run(table, "check", "alice", *file, "--table", table["name"]) == 1
    config.write_text(rules + f'[table]\nname = "{table["name"]}"\ndir = "{table["dir"]}"\n')
    assert run(table, "check", "alice", *file) == 1
    config.write_text(rules.replace("hour", "fortnight"))
    assert run(table, "check", "alice", *file, "--table", table["name"]) == 2
    assert "fortnight" in capsys.readouterr().err
    missing = ("--config", str(tmp_path / "missing"), "--table", table["name"])
    assert run(table, "check", "alice", *missing) == 2
    assert capsys.readouterr().err.count(str(tmp_path / "missing")) == 1


def test_stats_shows_the_buckets_of_a_table(table: Any, capsys: Output) -> None:
    assert run(table, "stats") == 0
    assert "no named tables" in capsys.readouterr().out
    throttle = Throttle("3/hour", table=table)
    for number in range(5):
        throttle.allow(str(number))
    assert run(table, "stats") == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["table", "buckets", "tags", "MB"]
    assert line.split()[:2] == [table["name"], "5"]


def test_peers_shows_the_cluster_of_a_table(table: Any, capsys: Output) -> None:
    one, two = ports(2)
    alone = Throttle("3/hour", table=table)
    assert run(table, "peers") == 0
    assert capsys.readouterr().out == "this table belongs to no cluster\n"
    alone.close()
    nodes: list[Throttle] = []
    table = {**table, "name": table["name"] + ".1"}
    for mine, other in ((one, two), (two, one)):
        cluster: Any = {"name": "c", "without_secret": True, "listen": f"127.0.0.1:{mine}"}
        cluster["peers"] = [f"127.0.0.1:{other}"]
        where: Any = {**table, "name": table["name"] + (".2" if nodes else "")}
        nodes.append(Throttle("3/hour", cluster=cluster, table=where))
        nodes[-1].start()
    end = time.monotonic() + 60
    while True:
        assert run(table, "peers", "--table", table["name"]) == 0
        output = capsys.readouterr().out
        if f"127.0.0.1:{two}" in output and " up " in output:
            break
        assert time.monotonic() < end, output
        time.sleep(0.1)
    assert run(table, "stats", "--table", table["name"]) == 0
    assert re.search(r"node [0-9a-f]{16}, exchanged by process \d+", capsys.readouterr().out)
    for node in nodes:
        node.close()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "a"], "--rate"),
        (["check", "a", "--rate", "1/s"], "--table NAME; there are: none"),
        (["check", "a", "--rate", "1/s", "--table", "nope"], "no table 'nope'"),
        (["peers"], "--table NAME; there are: none"),
    ],
)
def test_missing_or_unknown_table_is_an_error(
    table: Any, capsys: Output, arguments: list[str], says: str
) -> None:
    assert run(table, *arguments) == 2
    assert says in capsys.readouterr().err
    assert list(Path(table["dir"]).iterdir()) == [], "the command makes no table"


def test_package_runs_as_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "dthrottle", "--help"], capture_output=True)
    assert done.returncode == 0
    assert b"peers" in done.stdout


def test_check_accepts_tags_that_are_not_utf_8(table: Any) -> None:
    throttle = Throttle("1/hour", table=table)
    throttle.allow(b"\xff")
    assert run(table, "check", os.fsdecode(b"\xff"), "--rate", "1/hour") == 1


def test_closed_pipe_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "dthrottle", "stats"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
