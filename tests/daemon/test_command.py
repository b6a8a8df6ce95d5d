"""The command `dthrottle` with a real daemon."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest
from daemons import LONG, ROOT, TOKEN, Daemon

COMMAND = ROOT / "target/debug/dthrottle"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    rules = 'rate = "10 per day"\n[domains."log in"]\nrate = "5 per day"'
    with Daemon(rules, 'max_delay = "2 days"') as daemon:
        yield daemon


def run(daemon: Daemon, *words: str, tcp: bool = False) -> tuple[int, str, str]:
    target = daemon.tcp if tcp else str(daemon.socket)
    command = [str(COMMAND), *words, "--daemon", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    return done.returncode, done.stdout, done.stderr


def test_check_peek_and_reset_print_the_decision(daemon: Daemon) -> None:
    options = ["--domain", "log in"]
    code, out, _ = run(daemon, "check", "a b", "--cost", "3", *options)
    assert (code, out.splitlines()[:3]) == (0, ["allowed", "limit        5", "remaining    2"])
    code, out, _ = run(daemon, "check", "a b", "--cost", "3", *options, tcp=True)
    assert (code, out.splitlines()[0], out.splitlines()[-1]) == (1, "refused", "rule         rule1")
    code, out, _ = run(daemon, "check", "a b", "--cost", "3", "--partial", *options)
    assert (code, "granted      2" in out) == (0, True)
    assert run(daemon, "peek", "a b", *options)[0] == 1
    assert run(daemon, "check", "a b", "--max-delay", "99999999", *options)[0] == 0
    assert run(daemon, "reset", "a b", *options) == (0, "", "")
    assert run(daemon, "peek", "a b", *options)[0] == 0


def test_check_with_json_prints_the_fields_of_the_http_response(daemon: Daemon) -> None:
    words = ["json", "--domain", "log in", "--cost", "3", "--json"]
    code, out, _ = run(daemon, "check", *words)
    first = json.loads(out)
    assert (code, first["allowed"], first["remaining"], first["rule"]) == (0, True, 2, None)
    code, out, _ = run(daemon, "check", *words)
    second = json.loads(out)
    assert (code, second["allowed"], second["rule"], second["deciding"]) == (
        1,
        False,
        "rule1",
        "rule1",
    )
    # Times in JSON are in seconds.
    assert second["retry_after"] == pytest.approx(86400 / 5, abs=60)
    query = "/check?tag=json&domain=log%20in&cost=3&peek=1"
    request = urllib.request.Request(f"http://{daemon.http}{query}")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request, timeout=LONG) as response:
        assert json.load(response).keys() == first.keys()


def test_daemon_may_be_a_relative_path(daemon: Daemon) -> None:
    for target in ("socket", "./socket"):
        command = [str(COMMAND), "check", "relative", "--cost", "1", "--daemon", target]
        done = subprocess.run(command, cwd=daemon.dir, capture_output=True, text=True, timeout=LONG)
        assert (done.returncode, done.stderr) == (0, ""), target
        assert done.stdout.startswith("allowed\n")


def test_a_command_succeeds_silently_if_its_reader_has_closed_the_pipe() -> None:
    words = (["check", "pipe"], ["peek", "pipe"], ["stats"], ["bench", "--seconds", "0.1"])
    # The load of `bench` would disturb other tests that use the same daemon.
    with Daemon('rate = "10 per day"') as daemon:
        for command in ([str(COMMAND), *w, "--daemon", str(daemon.socket)] for w in words):
            reader, writer = os.pipe()
            os.close(reader)
            with os.fdopen(writer, "w") as pipe:
                done = subprocess.run(
                    command, stdout=pipe, stderr=subprocess.PIPE, text=True, timeout=LONG
                )
            assert (done.returncode, done.stderr) == (0, ""), command


def test_make_build_builds_the_command() -> None:
    command = ["make", "--dry-run", "build"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONG)
    built = [line.split()[-1] for line in done.stdout.splitlines() if "cargo build" in line]
    assert {"dthrottled", "dthrottle-cli"} <= set(built), done.stderr


def test_commands_for_state_need_the_token_over_tcp(daemon: Daemon) -> None:
    right, wrong = daemon.dir / "right", daemon.dir / "wrong"
    right.write_text(f"{TOKEN}\n")
    wrong.write_text("another-horse-battery\n")
    for words in (["reset", "x"], ["stats"], ["peers"], ["top", "--once"]):
        for options in ([], ["--token-file", str(wrong)]):
            code, _, error = run(daemon, *words, *options, tcp=True)
            assert (code, "needs the daemon's Unix socket, or" in error) == (2, True), words
        assert run(daemon, *words, "--token-file", str(right), tcp=True)[0] == 0, words
        assert run(daemon, *words)[0] == 0, words
    assert run(daemon, "check", "x", tcp=True)[0] == 0, "a decision needs no token"
    assert "contains no token" in run(daemon, "stats", "--token-file", "/dev/null")[2]


def test_top_escapes_hidden_characters(daemon: Daemon) -> None:
    for tag in ("admin\u202egro", "a\u2066b\u200bc", "\x1b[2J"):
        run(daemon, "check", tag, "--cost", "10")
        run(daemon, "check", tag)
    top = run(daemon, "top", "--once")[1]
    assert "  admin\\u{202e}gro\n" in top
    assert "  a\\u{2066}b\\u{200b}c\n" in top
    assert "  \\u{1b}[2J\n" in top
    assert not set("\u202e\u2066\u200b\x1b") & set(top)


def test_errors_name_the_argument_and_the_fix(daemon: Daemon) -> None:
    code, _, error = run(daemon, "check", "x", "--domain", "none")
    assert (code, error.startswith('dthrottle: unknown domain "none"')) == (2, True)
    assert "newline" in run(daemon, "check", "x\ny")[2]
    for target, said in [
        ("/nowhere", "start dthrottled, or name its socket with --daemon"),
        ("nowhere.sock", "cannot connect to nowhere.sock: No such file or directory"),
        ("localhost:7373", '--daemon must be a path or an address such as "127.0.0.1:7373", got'),
    ]:
        command = [str(COMMAND), "stats", "--daemon", target]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_the_answer_of_another_server_is_an_error(daemon: Daemon) -> None:
    for words in (["check", "x"], ["peek", "x"], ["reset", "x"], ["stats"]):
        command = [str(COMMAND), *words, "--daemon", daemon.http]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
        assert (done.returncode, "the answer is not from a dthrottled" in done.stderr) == (2, True)


def test_stats_peers_and_top_print_the_figures(daemon: Daemon) -> None:
    run(daemon, "check", "figures", "--cost", "10")
    run(daemon, "check", "figures")
    figures = json.loads(run(daemon, "stats", "--json")[1])
    assert figures["refused"] >= 1
    lines = dict(line.split(None, 1) for line in run(daemon, "stats")[1].splitlines())
    assert int(lines["refused"]) == figures["refused"]
    assert run(daemon, "peers")[1] == "the daemon is not part of a cluster\n"
    top = run(daemon, "top", "--once")[1]
    assert "  figures\n" in top
    assert "rule1" in top


def test_top_updates_in_a_terminal(daemon: Daemon) -> None:
    main, side = pty.openpty()
    command = [str(COMMAND), "top", "--interval", "0.1", "--daemon", str(daemon.socket)]
    with subprocess.Popen(command, stdout=side) as process:
        os.close(side)
        seen = b""
        deadline = time.monotonic() + LONG
        while seen.count(b"\x1b[H") < 3 and time.monotonic() < deadline:
            seen += os.read(main, 65536)
        process.kill()
    os.close(main)
    assert seen.count(b"\x1b[H") >= 3
    assert b"/s allowed" in seen


def test_bench_counts_allowed_and_refused_checks(daemon: Daemon) -> None:
    # The first round takes all units: 10 for each of 100 tags.
    code, out, _ = run(daemon, "bench", "--seconds", "0.3", "--depth", "1000", "--tags", "100")
    figures = dict(line.split(None, 1) for line in out.splitlines() if "trip" not in line)
    assert code == 0
    assert int(figures["allowed"]) == 1000
    assert int(figures["decisions/s"]) > 0
    assert run(daemon, "bench", "--seconds", "0.1", "--depth", "5000")[0] == 0
    code, _, error = run(daemon, "bench", "--depth", "5001")
    assert (code, error) == (2, "dthrottle: --depth must be at most 5000, got 5001\n")
