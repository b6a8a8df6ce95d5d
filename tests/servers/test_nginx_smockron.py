"""The configuration that docs/nginx.md gives to users of Smockron's gatekeeper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

import nginx
from server import REPOSITORY, Answer, Server, at_once, folder_for, free_port, running, until

from dthrottle import Domain, Throttle

PAGE = (REPOSITORY / "docs/nginx.md").read_text("utf-8")
# Those that the rules of the example let through at once, and those that wait: 5 s at 10/s.
BURST, DELAYED = 20, 50
SECRET = "0123456789abcdef0123456789abcdef"


def block(kind: str) -> str:
    """Give the one code block of a kind."""
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@contextmanager
def example(own: int, other: int) -> Iterator[Server]:
    """Run the example, with the paths and addresses of the test."""
    text = block("nginx smockron")
    with folder_for(None) as folder:
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
        # A slow machine may need longer for so many requests than their turns take.
        count = BURST + 2 * DELAYED
        answers = until("some are rejected", lambda: rejected(server, count))
        for answer in answers:
            status = answer.headers["x-status"]
            assert answer.status == (503 if status == "REJECTED" else 200)
            assert ("retry-after" in answer.headers) is (status == "REJECTED")
        assert "DELAYED" in {answer.headers["x-status"] for answer in answers}


def rejected(server: Server, count: int) -> list[Answer] | None:
    answers = at_once(server, "/", count)
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
        # One request after the other is delayed by 100 ms at most where nobody else counts.
        web = node.domain("web")
        until("another host's requests count", lambda: is_rejected(server, web))


def is_rejected(server: Server, web: Domain) -> bool:
    # The report of the first charge may be sent before the nodes know each other.
    web.charge("127.0.0.1", BURST + 2 * DELAYED)
    return server.get("/").status == 503
