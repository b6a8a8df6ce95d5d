"""The adapters for requests, httpx and urllib3, with a real server that sends busy responses."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
import requests
import urllib3

from dthrottle import ArgumentError, ManualClock
from dthrottle.busy import BusyThrottle, Caller, ServiceBusy
from dthrottle.busy import httpx as for_httpx
from dthrottle.busy import requests as for_requests
from dthrottle.busy import urllib3 as for_urllib3


class Server(ThreadingHTTPServer):
    """Sends its prepared answers in order, then 200."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.seen = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        # Streams are sent in chunks.
        while size := int(self.rfile.readline(), 16):
            self.rfile.read(size + 2)
        self.rfile.readline()
        self.do_GET()

    def do_GET(self) -> None:
        self.server.seen += 1
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Sleep:
    """Replaces time.sleep: sleeps until the test wakes it."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()

    def __call__(self, _seconds: float) -> None:
        self.begun.set()
        assert self.over.wait(60)


@pytest.fixture
def sleep(monkeypatch: pytest.MonkeyPatch) -> Sleep:
    made = Sleep()
    monkeypatch.setattr(time, "sleep", made)
    return made


Get = Callable[[str], int]
Maker = Callable[..., Get]


def by_requests(throttle: BusyThrottle | None = None, **options: Any) -> Get:
    session = requests.Session()
    session.mount("http://", for_requests.BusyAdapter(throttle, **options))

    def get(url: str) -> int:
        return session.get(url).status_code

    return get


def by_httpx(throttle: BusyThrottle | None = None, **options: Any) -> Get:
    def get(url: str) -> int:
        with httpx.Client(transport=for_httpx.BusyTransport(throttle, **options)) as client:
            return client.get(url).status_code

    return get


def by_async_httpx(throttle: BusyThrottle | None = None, **options: Any) -> Get:
    async def get(url: str) -> int:
        transport = for_httpx.AsyncBusyTransport(throttle, **options)
        async with httpx.AsyncClient(transport=transport) as client:
            return (await client.get(url)).status_code

    return lambda url: asyncio.run(get(url))


def by_urllib3(throttle: BusyThrottle | None = None, **options: Any) -> Get:
    http = for_urllib3.BusyPoolManager(throttle, **options)
    return lambda url: http.request("GET", url, retries=False).status


MAKERS: list[tuple[Maker, type[Exception]]] = [
    (by_requests, requests.exceptions.RequestException),
    (by_httpx, httpx.TransportError),
    (by_async_httpx, httpx.TransportError),
    (by_urllib3, urllib3.exceptions.HTTPError),
]
each = pytest.mark.parametrize(("make", "error"), MAKERS, ids=lambda it: it.__name__)


@each
def test_busy_response_stops_the_next_request(
    make: Maker, error: type[Exception], server: Server
) -> None:
    throttle = BusyThrottle()
    get = make(throttle)
    assert get(server.url) == 200
    server.answers = [(503, {"Retry-After": "60"})]
    assert get(server.url) == 503, "the caller gets the busy response"
    with pytest.raises(ServiceBusy, match="is busy: not sent, try again in") as raised:
        get(server.url)
    assert isinstance(raised.value, error)
    assert raised.value.service == f"127.0.0.1:{server.server_port}"
    assert 55 < raised.value.wait <= 60
    assert server.seen == 2
    stats = throttle.stats()
    assert (stats.sent, stats.refused, stats.good, stats.busy) == (2, 1, 1, 1)


@each
def test_request_with_max_delay_waits_for_its_turn(
    make: Maker, error: type[Exception], server: Server
) -> None:
    get = make(BusyThrottle(), max_delay=5)
    server.answers = [(429, {"Retry-After": "1"})]
    # Before the response, because the pause begins with it.
    begun = time.monotonic()
    assert get(server.url) == 429
    assert get(server.url) == 200
    assert 0.9 < time.monotonic() - begun < 5
    server.answers = [(429, {"Retry-After": "60"})]
    while get(server.url) != 429:
        pass
    with pytest.raises(error):
        get(server.url)


@each
def test_options_choose_busy_statuses_and_service_names(
    make: Maker, error: type[Exception], server: Server
) -> None:
    throttle = BusyThrottle()
    get = make(throttle, statuses={500}, service=lambda _: "all")
    server.answers = [(503, {}), (500, {"Retry-After": "60"})]
    assert [get(server.url), get(server.url)] == [503, 500]
    with pytest.raises(error, match="all is busy"):
        get(server.url)
    assert not throttle.should_send("all")


@each
def test_service_function_receives_the_whole_url(
    make: Maker, error: type[Exception], server: Server
) -> None:
    throttle = BusyThrottle()
    get = make(throttle, service=lambda url: url)
    server.answers = [(503, {"Retry-After": "60"})]
    assert get(f"{server.url}one?a=b") == 503
    assert get(f"{server.url}two") == 200
    with pytest.raises(error, match=f"{server.url}one"):
        get(f"{server.url}one?a=b")
    assert not throttle.should_send(f"{server.url}one?a=b")


@each
def test_failed_connection_is_not_a_busy_response(make: Maker, error: type[Exception]) -> None:
    throttle = BusyThrottle()
    get = make(throttle)
    with pytest.raises(error):
        get("http://127.0.0.1:1/")
    stats = throttle.stats()
    assert (stats.sent, stats.busy, stats.good) == (1, 0, 0)


def test_urllib3_checks_every_attempt(server: Server) -> None:
    http = for_urllib3.BusyPoolManager(max_delay=5)
    server.answers = [(302, {"Location": "/"}), (503, {"Retry-After": "1"})]
    retries = urllib3.Retry(3, status_forcelist=[503], respect_retry_after_header=False)
    begun = time.monotonic()
    assert http.request("GET", server.url, retries=retries).status == 200
    assert time.monotonic() - begun > 0.9
    stats = http.throttle.stats()
    assert (stats.sent, stats.good, stats.busy) == (3, 2, 1)


def test_requests_checks_every_attempt(server: Server) -> None:
    retries = urllib3.Retry(3, status_forcelist=[503], respect_retry_after_header=False)
    throttle = BusyThrottle(floor=20)
    session = requests.Session()
    session.mount("http://", for_requests.BusyAdapter(throttle, max_delay=5, max_retries=retries))
    server.answers = [(503, {"Retry-After": "1"})]
    begun = time.monotonic()
    assert session.get(server.url).status_code == 200
    assert time.monotonic() - begun > 0.9
    stats = throttle.stats()
    assert (stats.sent, stats.good, stats.busy) == (2, 1, 1)
    # The last attempt counts, too.
    server.answers = [(503, {})] * 4
    with pytest.raises(requests.exceptions.RetryError):
        session.get(server.url)
    assert throttle.stats().busy == 5
    session.mount("http://", for_requests.BusyAdapter(throttle, max_retries=retries))
    server.answers = [(503, {"Retry-After": "60"})] * 4
    throttle.forget(f"127.0.0.1:{server.server_port}")
    with pytest.raises(for_requests.ServiceBusyError) as raised:
        session.get(server.url)
    assert raised.value.request is not None
    assert throttle.stats().busy == 6


def test_service_is_the_host_behind_a_proxy(server: Server) -> None:
    throttle = BusyThrottle()
    session = requests.Session()
    session.mount("http://", for_requests.BusyAdapter(throttle))
    proxies = {"http": server.url}
    server.answers = [(503, {"Retry-After": "60"})]
    assert session.get("http://one.example/", proxies=proxies).status_code == 503
    assert session.get("http://two.example/", proxies=proxies).status_code == 200
    with pytest.raises(ServiceBusy, match=r"one\.example is busy"):
        session.get("http://one.example/", proxies=proxies)


def test_stopped_request_of_urllib3_closes_no_connection(server: Server) -> None:
    http = for_urllib3.BusyPoolManager(maxsize=1, block=True)
    assert http.request("GET", server.url).status == 200
    pool = http.connection_from_url(server.url)
    server.answers = [(503, {"Retry-After": "60"})]
    assert http.request("GET", server.url, retries=False).status == 503
    for _ in range(5):
        with pytest.raises(ServiceBusy):
            http.request("GET", server.url)
    http.throttle.forget(f"127.0.0.1:{server.server_port}")
    assert http.request("GET", server.url).status == 200
    assert pool.num_connections == 1, "no connection was closed"


def test_waiting_request_holds_no_connection(server: Server, sleep: Sleep) -> None:
    """A request that waits for one service must not block the only connection for another."""
    names = iter(["slow", "slow", "slow", "quick", "quick", "slow"])
    http = for_urllib3.BusyPoolManager(
        max_delay=100, service=lambda _: next(names), maxsize=1, block=True
    )
    server.answers = [(503, {"Retry-After": "60"})]
    assert http.request("GET", server.url, retries=False).status == 503
    waiting = threading.Thread(target=http.request, args=("GET", server.url), daemon=True)
    waiting.start()
    assert sleep.begun.wait(30)
    assert http.request("GET", server.url, pool_timeout=10).status == 200
    assert waiting.is_alive()
    assert server.seen == 2
    http.throttle.forget("slow")
    sleep.over.set()
    waiting.join()
    assert server.seen == 3


@each
def test_failing_service_function_is_an_error_and_sends_nothing(
    make: Maker, error: type[Exception], server: Server
) -> None:
    def fails(_: str) -> str:
        raise LookupError("no name")

    with pytest.raises(LookupError, match="no name"):
        make(service=fails)(server.url)
    with pytest.raises(ArgumentError, match="service"):
        make(service=lambda _: 7)(server.url)
    assert (server.seen, error) == (0, error)


@each
def test_invalid_retry_after_causes_no_pause(
    make: Maker, error: type[Exception], server: Server
) -> None:
    throttle = BusyThrottle()
    get = make(throttle)
    for garbage in ("-5", "soon", "21 Oct Wed, 23:59:59 +99999999999999999999 Jan", "1e9"):
        server.answers = [(503, {"Retry-After": garbage})]
        assert get(server.url) == 503
        assert throttle.turn(f"127.0.0.1:{server.server_port}").wait <= 1, garbage
        throttle.forget(f"127.0.0.1:{server.server_port}")
    assert error is not None


def test_each_hop_of_a_redirect_is_checked(server: Server) -> None:
    session = requests.Session()
    session.mount("http://", for_requests.BusyAdapter(adapter := BusyThrottle()))
    server.answers = [(302, {"Location": f"http://localhost:{server.server_port}/"}), (503, {})]
    assert session.get(server.url).status_code == 503
    assert adapter.limit(f"127.0.0.1:{server.server_port}") is None
    assert adapter.limit(f"localhost:{server.server_port}") is not None


def test_streamed_body_is_not_read_before_its_turn(server: Server) -> None:
    read: list[bytes] = []

    def body() -> Iterator[bytes]:
        for part in (b"one", b"two"):
            read.append(part)
            yield part

    throttle = BusyThrottle()
    throttle.on_busy(f"127.0.0.1:{server.server_port}", 60)
    session = requests.Session()
    session.mount("http://", for_requests.BusyAdapter(throttle))
    stream = body()
    with pytest.raises(ServiceBusy):
        session.post(server.url, data=stream)
    with (
        httpx.Client(transport=for_httpx.BusyTransport(throttle)) as client,
        pytest.raises(ServiceBusy),
    ):
        client.post(server.url, content=stream)
    with pytest.raises(ServiceBusy):
        for_urllib3.BusyPoolManager(throttle).request("POST", server.url, body=stream)
    assert read == []
    throttle.forget(f"127.0.0.1:{server.server_port}")
    assert session.post(server.url, data=stream).status_code == 200
    assert read == [b"one", b"two"]


def test_pickling_an_adapter_is_an_error_with_a_hint() -> None:
    with pytest.raises(TypeError, match="mount one in each process"):
        pickle.dumps(for_requests.BusyAdapter())


def test_request_cancelled_while_waiting_takes_no_turn(server: Server) -> None:
    throttle = BusyThrottle()

    async def work() -> None:
        transport = for_httpx.AsyncBusyTransport(throttle, max_delay=60)
        async with httpx.AsyncClient(transport=transport) as client:
            server.answers = [(503, {"Retry-After": "30"})]
            await client.get(server.url)
            tasks = [asyncio.create_task(client.get(server.url)) for _ in range(5)]
            await asyncio.sleep(0.1)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)

    asyncio.run(work())
    assert (server.seen, throttle.stats().sent) == (1, 1)


def test_child_forked_while_a_thread_waits_has_its_own_turn(server: Server, sleep: Sleep) -> None:
    throttle, service = BusyThrottle(), f"127.0.0.1:{server.server_port}"
    get = by_urllib3(throttle, max_delay=100)
    server.answers = [(503, {"Retry-After": "60"})]
    assert get(server.url) == 503
    waiting = threading.Thread(target=get, args=(server.url,), daemon=True)
    waiting.start()
    assert sleep.begun.wait(30)
    child = os.fork()
    if child == 0:
        # The child has the throttle but not the waiting thread.
        turn = throttle.turn(service)
        os._exit(0 if not turn and turn.wait < 60 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    throttle.forget(service)
    sleep.over.set()
    waiting.join()
    assert throttle.stats().sent == 2


def test_async_clients_wait_without_blocking(server: Server, clock: ManualClock) -> None:
    """The clock stands still, so a client that blocks the loop would wait until max_delay."""
    throttle = BusyThrottle(clock=clock)

    async def work() -> None:
        transport = for_httpx.AsyncBusyTransport(throttle, max_delay=30)
        async with httpx.AsyncClient(transport=transport) as client:
            server.answers = [(503, {"Retry-After": "1"})]
            await client.get(server.url)
            task = asyncio.create_task(client.get(server.url))
            for _ in range(10):
                await asyncio.sleep(0.01)
            assert not task.done()
            assert server.seen == 1
            throttle.forget(f"127.0.0.1:{server.server_port}")
            assert (await task).status_code == 200

    asyncio.run(work())


def test_max_delay_may_be_a_timedelta() -> None:
    assert Caller(max_delay=timedelta(seconds=5)).max_delay == 5
    with pytest.raises(
        ArgumentError, match=r"^`max_delay` must be seconds from 0 to a year, got -1"
    ):
        Caller(max_delay=timedelta(seconds=-1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"throttle": 7}, "`throttle` must be a BusyThrottle, got 7"),
        ({"max_delay": -1}, "`max_delay` must be seconds from 0 to a year, got -1"),
        ({"max_delay": "1"}, "`max_delay` must be a number of seconds, got '1'"),
        ({"max_delay": float("nan")}, "`max_delay` must be seconds from 0 to a year, got nan"),
        ({"statuses": "503"}, "`statuses` must be numbers such as 429 and 503, got '503'"),
        ({"service": "api"}, "`service` must be a function from URL to name, got 'api'"),
    ],
)
def test_invalid_option_is_an_error_with_its_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Caller(**options)
