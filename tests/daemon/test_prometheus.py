"""The daemon's metrics, as promtool and a real Prometheus read them."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from daemons import LONG, TOKEN, Daemon

RULES = """
rate = "3 per day"
[domains.login]
rate = "2 per day"
[cluster]
name = "metrics"
secret = "0123456789abcdef0123456789abcdef"
listen = "127.0.0.1:0"
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(RULES) as daemon:
        yield daemon


def page(daemon: Daemon) -> str:
    request = urllib.request.Request(f"http://{daemon.http}/metrics")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request, timeout=LONG) as response:
        return str(response.read().decode())


def send_lines(daemon: Daemon, lines: bytes) -> bytes:
    host, port = daemon.tcp.split(":")
    with socket.create_connection((host, int(port)), timeout=LONG) as client:
        client.sendall(lines)
        client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as answers:
            return answers.read()


def test_promtool_accepts_the_page_of_a_cluster_node(daemon: Daemon) -> None:
    text = page(daemon)
    assert "dthrottle_cluster" in text
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=LONG
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@contextmanager
def prometheus(daemon: Daemon, folder: Path) -> Iterator[str]:
    """Run a Prometheus that scrapes the daemon. Yields its address."""
    config = folder / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n"
        "- job_name: dthrottled\n"
        "  scrape_interval: 500ms\n"
        "  scrape_timeout: 500ms\n"
        f"  authorization: {{ credentials: {TOKEN} }}\n"
        f"  static_configs: [{{ targets: ['{daemon.http}'] }}]\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus", f"--config.file={config}", f"--web.listen-address={address}"]
    command.append(f"--storage.tsdb.path={folder}/data")
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            yield address
        finally:
            process.kill()


def query(address: str, expression: str) -> dict[tuple[str, ...], float]:
    """Give the values of an expression, by the values of their labels."""
    url = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(url, timeout=LONG) as response:
        found = json.load(response)["data"]["result"]
    return {tuple(s["metric"][k] for k in sorted(s["metric"])): float(s["value"][1]) for s in found}


def test_prometheus_has_decisions_by_domain_latencies_and_process_figures(
    daemon: Daemon, tmp_path: Path
) -> None:
    assert send_lines(daemon, b"prometheus\n" * 5) == b"OK\n" * 3 + b"NO\n" * 2
    login = b"\0check\0domain=login\0tag=prometheus\n"
    send_lines(daemon, login * 3)
    with prometheus(daemon, tmp_path) as address:
        end = time.monotonic() + LONG
        decisions: dict[tuple[str, ...], float] = {}
        while not decisions:
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.1)
            try:
                decisions = query(
                    address,
                    'sum by (domain, result) (dthrottle_decisions_total{rules="config"})',
                )
            except OSError:  # It does not listen yet.
                continue
        assert decisions == {
            ("default", "allowed"): 3,
            ("default", "refused"): 2,
            ("login", "allowed"): 2,
            ("login", "refused"): 1,
        }
        duration = "dthrottled_request_duration_seconds"
        counts = query(address, f"sum by (protocol) ({duration}_count)")
        assert counts == {("lines",): 8, ("resp",): 0, ("http",): 0}
        quantile = query(
            address, f'histogram_quantile(0.5, sum by (le) ({duration}_bucket{{protocol="lines"}}))'
        )
        assert 0 < quantile[()] <= 0.1
        for name, least, most in [
            ("process_resident_memory_bytes", 1e6, 1e9),
            ("process_cpu_seconds_total", 0.001, LONG),
            ("process_open_fds", 10, 100),
            ("process_start_time_seconds", time.time() - 10 * LONG, time.time()),
        ]:
            (value,) = query(address, f"sum({name})").values()
            assert least <= value <= most, name
        assert daemon.process is not None
        (threads,) = query(address, "sum(process_threads)").values()
        assert threads >= 2
        fds = sum(1 for _ in Path(f"/proc/{daemon.process.pid}/fd").iterdir())
        (scraped,) = query(address, "sum(process_open_fds)").values()
        assert abs(scraped - fds) <= 2


def test_the_latency_histogram_is_cumulative_and_complete(daemon: Daemon) -> None:
    send_lines(daemon, b"histogram\n" * 1000)
    samples = {}
    text = page(daemon)
    assert 'dthrottled_request_duration_seconds_bucket{protocol="lines",le="+Inf"} ' in text
    for line in text.splitlines():
        if line.startswith('dthrottled_request_duration_seconds_bucket{protocol="lines"'):
            label, value = line.split("} ")
            samples[float(label.split('le="')[1].strip('"'))] = int(value)
    assert list(samples) == sorted(samples)
    assert list(samples)[-1] == float("inf")
    assert list(samples.values()) == sorted(samples.values())
    assert samples[float("inf")] >= 1000


def test_clients_cannot_add_series(daemon: Daemon) -> None:
    def series() -> set[str]:
        return {line.rsplit(" ", 1)[0] for line in page(daemon).splitlines() if line[0] != "#"}

    before = series()
    for number in range(50):
        send_lines(daemon, b"\0check\0domain=unknown%d\0tag=x\n" % number)
        send_lines(daemon, b"\0check\0domain=login\0tag=tag%d\n" % number)
    assert series() == before
