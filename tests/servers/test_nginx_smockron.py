"""The configuration in docs/nginx.md for users of Smockron's gatekeeper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

import nginx
from server import (
    REPOSITORY,
    Answer,
    Server,
    free_port,
    running,
    send_at_once,
    server_folder,
    wait_until,
)

from dthrottle import Domain, Throttle

PAGE = (REPOSITORY / "docs/nginx.md").read_text("utf-8")
# The requests that the example allows at once, and those that it delays: 5 s at 10/s.
BURST, DELAYED = 20, 50
SECRET = "0123456789abcdef0123456789abcdef"


def block(kind: str) -> str:
    """Return the only code block of a kind."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@contextmanager
def example(own: int, other: int) -> Iterator[Server]:
    """Run the example, with the paths and addresses of the test."""
    text = block("nginx smockron")
    with server_folder(None) as folder:
        (folder / "dthrottle.toml").write_text(block("toml smockron"))
        (folder / "secret").write_text(SECRET)
        (folder / "secret").chmod(0o600)
        for documented, tested in (
            ("/etc/dthrottle.toml", f"{folder}/dthrottle.toml"),
            ("/etc/dthrottle/secret", f"{folder}/secret"),
            ("0.0.0.0:7373", f"127.0.0.1:{own}"),
            ("peer=10.0.0.1 peer=10.0.0.2", f"peer=127.0.0.1:{other}"),
        ):
            assert text.count(documented) == 1, documented
            text = text.replace(documented, tested)
        parts = re.fullmatch(r"http {(.*)server {(.*)}\s*}\s*", text, re.DOTALL)
        assert parts is not None
        port = free_port()
        command = nginx.write(folder, port, parts[1], parts[2] + nginx.location("/"))
        with running(command, folder, port) as server:
            yield server


def test_requests_are_delayed_up_to_a_maximum_and_then_rejected() -> None:
    with example(free_port(), free_port()) as server:
        # A slow machine may need more time to send the requests than the delays take.
        count = BURST + 2 * DELAYED
        answers = wait_until("some requests are rejected", lambda: rejected(server, count))
        for answer in answers:
            status = answer.headers["x-status"]
            assert answer.status == (503 if status == "REJECTED" else 200)
            assert ("retry-after" in answer.headers) is (status == "REJECTED")
        assert "DELAYED" in {answer.headers["x-status"] for answer in answers}


def rejected(server: Server, count: int) -> list[Answer] | None:
    answers = send_at_once(server, "/", count)
    return answers if any(answer.status == 503 for answer in answers) else None


def test_one_limit_holds_for_all_hosts() -> None:
    own, other = free_port(), free_port()
    cluster = f"""
[cluster]
name = "web"
secret = "{SECRET}"
listen = "127.0.0.1:{other}"
peers = ["127.0.0.1:{own}"]
"""
    with (
        example(own, other) as server,
        closing(Throttle.from_toml(block("toml smockron") + cluster)) as node,
    ):
        node.start()
        # Without other hosts, sequential requests are delayed by at most 100 ms.
        web = node.domain("web")
        wait_until(
            "the requests of another host are charged here", lambda: is_rejected(server, web)
        )


def is_rejected(server: Server, web: Domain) -> bool:
    # Charges again, because the first report may be sent before the nodes know each other.
    web.charge("127.0.0.1", BURST + 2 * DELAYED)
    return server.get("/").status == 503
