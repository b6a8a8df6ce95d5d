"""RESP with redis-cli and redis-py."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
import redis
from daemons import LONG, Daemon

from dthrottle.client import Client


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon('rate = "3 per day"', 'resp = "127.0.0.1:0"') as daemon:
        yield daemon


@pytest.fixture(params=[2, 3])
def client(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    host, port = daemon.resp.split(":")
    client = redis.Redis(host, int(port), protocol=request.param, socket_timeout=LONG)
    yield client
    client.close()


def throttle(client: redis.Redis, key: str, *numbers: int) -> list[int]:
    return list(client.execute_command("CL.THROTTLE", key, *numbers))  # type: ignore[no-untyped-call]


def assert_soon(seconds: int, after: int) -> None:
    """Check a time that was `after` seconds a moment ago."""
    assert after - LONG <= seconds <= after


def test_redis_cli_can_use_the_daemon(daemon: Daemon) -> None:
    port = daemon.resp.split(":")[1]

    def cli(*words: str, text: str | None = None) -> str:
        command = ["redis-cli", "-p", port, *words]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=LONG, check=True
        )
        return done.stdout

    def ask(*words: str) -> list[int]:
        return [int(word) for word in cli("CL.THROTTLE", "user 123", *words).split()]

    assert ask("15", "30", "60000") == [0, 16, 15, -1, 2000]
    *first, reset = ask("15", "30", "60000", "15")
    assert first == [0, 16, 0, -1]
    assert_soon(reset, 32_000)
    *first, retry, reset = ask("15", "30", "60000")
    assert first == [1, 16, 0]
    assert_soon(retry, 2000)
    assert_soon(reset, 32_000)
    assert cli("PING") == "PONG\n"
    assert "dthrottled_version:" in cli("INFO")
    assert "cl.throttle" in cli("COMMAND")
    assert "ERR unknown command 'GET'" in cli("GET", "x")
    both = cli(text="PING\nCL.THROTTLE piped 0 1 60\nCL.THROTTLE piped 0 1 60\n").split()
    assert (both[0], both[1], both[6]) == ("PONG", "0", "1")


def test_redis_py_can_use_the_daemon(client: redis.Redis) -> None:
    protocol = client.connection_pool.connection_kwargs["protocol"]
    key = f"py-{protocol}"
    assert client.ping()
    assert client.info()["loading"] == 0
    assert throttle(client, key, 2, 1, 6000) == [0, 3, 2, -1, 6000]
    *first, reset = throttle(client, key, 2, 1, 6000, 2)
    assert first == [0, 3, 0, -1]
    assert_soon(reset, 18_000)
    assert throttle(client, key, 2, 1, 6000)[:3] == [1, 3, 0]
    assert throttle(client, key, 2, 1, 6000, 0)[:3] == [0, 3, 0]
    assert throttle(client, key, 2, 1, 6000, 4)[:4] == [1, 3, 0, -1]
    with pytest.raises(
        redis.ResponseError, match="period must be a whole number of at least 1, got 0"
    ):
        throttle(client, key, 2, 1, 0)
    with pytest.raises(redis.ResponseError, match="wrong number"):
        throttle(client, key)


def test_redis_py_can_pipeline_commands(client: redis.Redis) -> None:
    protocol = client.connection_pool.connection_kwargs["protocol"]
    pipeline = client.pipeline(transaction=False)
    for _ in range(1000):
        pipeline.execute_command("CL.THROTTLE", f"pipe-{protocol}", 99, 1, 3600)  # type: ignore[no-untyped-call]
    answers = pipeline.execute()
    assert [answer[0] for answer in answers] == [0] * 100 + [1] * 900


def test_rules_of_calls_do_not_use_the_shared_table(daemon: Daemon, client: redis.Redis) -> None:
    throttle(client, "apart", 0, 1, 3600)
    with Client(daemon.socket, timeout=LONG) as lines:
        assert lines.peek("apart").remaining == 3


def test_one_client_cannot_add_all_rules() -> None:
    """Nor can it refill the bucket of a key by adding rules."""
    with Daemon('rate = "3 per day"', 'resp = "127.0.0.1:0"') as daemon:
        host, port = daemon.resp.split(":")
        with (
            redis.Redis(host, int(port), socket_timeout=LONG) as client,
            redis.Redis(host, int(port), socket_timeout=LONG) as attacker,
        ):
            assert [throttle(client, "key", 0, 1, 3600)[0] for _ in range(2)] == [0, 1]
            pipeline = attacker.pipeline(transaction=False)
            for burst in range(1, 4002):
                pipeline.execute_command("CL.THROTTLE", "x", burst, 1, 60)
            answers = pipeline.execute(raise_on_error=False)
            refused = [answer for answer in answers if isinstance(answer, redis.ResponseError)]
            assert len(refused) == 4001 - 250
            assert "too many different rules" in str(refused[0])
            assert throttle(client, "key", 0, 1, 3600)[0] == 1, "the bucket must still be empty"
            assert throttle(client, "new", 7, 7, 7)[0] == 0, (
                "other clients must be able to add rules"
            )


def test_info_reveals_no_figures(client: redis.Redis) -> None:
    assert set(client.info()) == {
        "redis_version", "redis_mode", "dthrottled_version", "loading", "role"
    }  # fmt: skip
