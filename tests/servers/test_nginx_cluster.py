"""nginx as a node of a cluster: one of its workers exchanges, and another one goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nginx import location, nginx
from server import Server, free_port, held, until

from dthrottle import Throttle

BURST = 1000
# Who looks at the table must be its user.
SAME_USER = {"main": "user root;"} if os.geteuid() == 0 else {}


@contextmanager
def node(workers: int = 3) -> Iterator[tuple[Server, Throttle, Throttle]]:
    """Give nginx as a node, another node, and a look at the table of the first."""
    here, there = free_port(), free_port()
    http = (
        "dthrottle_zone $arg_key zone=web rate=1r/d;"
        "dthrottle_zone $arg_key zone=hour rate=1r/h;"
        f"dthrottle_cluster name=test listen=127.0.0.1:{here} peer=127.0.0.1:{there};"
    )
    uses = location("/web", f"dthrottle zone=web burst={BURST - 1} nodelay;")
    uses += location("/hour", "dthrottle zone=hour burst=5;")
    rules = f"""
        [domains.web]
        rate = "1/day"
        burst = {BURST}
        [domains.hour]
        rate = "1/hour"
        burst = 6
    """

    def cluster(listen: int, peer: int) -> str:
        return f"""
            [cluster]
            name = "test"
            listen = "127.0.0.1:{listen}"
            peers = ["127.0.0.1:{peer}"]
        """

    with nginx(http, uses, workers=str(workers), **SAME_USER) as server:
        tables = server.folder / "tables"
        until("a table", lambda: list(tables.iterdir()))
        table = f"table = {{ name = 'test', dir = '{tables}' }}\n"
        look = Throttle.from_toml(table + rules + cluster(here, there))
        other = Throttle.from_toml(rules + cluster(there, here))
        other.start()
        try:
            yield server, other, look
        finally:
            other.close()
            look.close()


def exchanger(look: Throttle) -> int:
    """Give the process that exchanges for the table."""
    stats = look.cluster_stats()
    assert stats
    return stats.pid


def is_heard(server: Server, other: Throttle, key: str) -> bool:
    """Whether what nginx lets pass is charged at the other node. Asks again and again."""
    assert server.get(f"/web?key={key}").status == 200
    return other.domain("web").peek(key).remaining < BURST


def test_one_worker_exchanges_and_another_goes_on_when_it_is_killed() -> None:
    with node() as (server, other, look):
        until("nginx is heard", lambda: is_heard(server, other, "first"))
        first = exchanger(look)
        assert first in server.children()
        for child in server.children():
            threads = list(Path(f"/proc/{child}/task").iterdir())
            assert len(threads) == 2, "itself, and the one that exchanges or waits for its turn"
        assert len(list(Path(f"/proc/{server.process.pid}/task").iterdir())) == 1
        os.kill(first, signal.SIGKILL)
        until("another one exchanges", lambda: exchanger(look) != first)
        until("nginx is heard again", lambda: is_heard(server, other, "second"))
        assert exchanger(look) in server.children()
        # And the other way round.
        assert other.domain("web").allow("third")

        def is_charged() -> bool:
            other.domain("web").allow("third")
            return int(server.get("/web?key=third").headers["x-remaining"]) < BURST - 100

        until("the other node is heard", is_charged)


def test_an_old_worker_leaves_the_exchange_to_new_ones() -> None:
    with node(workers=1) as (server, other, look):
        until("nginx is heard", lambda: is_heard(server, other, "first"))
        old = exchanger(look)
        assert server.get("/hour?key=h").status == 200
        waiting = held(server, "/hour?key=h")
        assert waiting, "a request that keeps the old worker alive"
        server.process.send_signal(signal.SIGHUP)
        until("a new worker exchanges", lambda: exchanger(look) != old)
        assert {old, exchanger(look)} == set(server.children())
        until("nginx is heard again", lambda: is_heard(server, other, "second"))
        waiting.close()
        until("the old worker ends", lambda: old not in server.children())
