"""`apachectl configtest` explains every invalid value and opens no table."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import apache
import pytest
from apache import location
from server import REPOSITORY, wait_until

RULE = "DThrottleRule default 1/s\n"

BAD: list[tuple[str, str]] = [
    # Rules.
    ("DThrottleRule default", "takes a domain, a rate such as"),
    ("DThrottleRule default 1/fortnight", "DThrottleRule: `rules[0].rate` must be a rate such as"),
    ("DThrottleRule default 0/s", "DThrottleRule: `rules[0].rate` must be a rate such as"),
    ("DThrottleRule default 1/s burst=0", '"burst=0": must be a number of requests'),
    ("DThrottleRule default 1/s burst=5x", '"burst=5x": must be a number of requests'),
    (
        "DThrottleRule default 1/s brst=5",
        '"brst=5": unknown parameter; DThrottleRule takes a domain',
    ),
    ("DThrottleRule default 1/s burst=10s5", '"burst=10s5": must be a number of requests'),
    ("DThrottleRule default 1/s charge_refused=x", '"charge_refused=x": must be on or off'),
    (
        "DThrottleRule a 1/s name=x\nDThrottleRule a 2/s name=x",
        "`domains.a.rules[1].name` must be unique in its domain",
    ),
    # Directives for locations.
    ("DThrottle Perhaps", "DThrottle must be On or Off"),
    ("DThrottle On", "DThrottle is on, but there is no rule: add DThrottleRule default"),
    ("DThrottleDomain none", 'names the unknown domain "none": add a DThrottleRule'),
    ("DThrottleTag %{nothing", 'DThrottleTag "%{nothing": '),
    ("DThrottleIPv6Prefix 129", 'DThrottleIPv6Prefix must be a number from 1 to 128, got "129"'),
    ("DThrottleCost -1", "DThrottleCost must be a number from 0 to"),
    ("DThrottleCost %{nothing", 'DThrottleCost "%{nothing": '),
    ("DThrottleStatus 450", "DThrottleStatus must be a status that Apache knows, such"),
    ("DThrottleStatus 200", 'DThrottleStatus must be a number from 400 to 599, got "200"'),
    *[
        (
            f"DThrottleMaxDelay {value}",
            "DThrottleMaxDelay must be a time with a unit, of at most an hour",
        )
        for value in ("5", "-5", "00", "long", "ms", "2sec", "3601s")
    ],
    ("DThrottleMaxDelayed many", "DThrottleMaxDelayed must be a number from 0 to"),
    ("DThrottleDryRun 1", "DThrottleDryRun must be On or Off"),
    ("DThrottleHeaders 1", "DThrottleHeaders must be on, off, standard, draft-7"),
    ("DThrottleEnvironment 1", "DThrottleEnvironment must be On or Off"),
    ("DThrottleLogLevel loud", "DThrottleLogLevel must be debug, info, notice"),
    # Table.
    ("DThrottleTable a/b", "DThrottleTable: `table.name` must have only letters"),
    ("DThrottleTable a size=0", '"size=0": must be a number of bytes such as size=64M'),
    ("DThrottleTable a size=1K", "DThrottleTable: `table.size` must be at least 4800512 bytes"),
    ("DThrottleTable a b", '"b": unknown parameter; DThrottleTable takes a name'),
    ("DThrottleTable a\nDThrottleTable b", "DThrottleTable must be given once, with a name"),
    # Cluster.
    (
        "DThrottleCluster name=a liste=x",
        "DThrottleCluster: `cluster.liste` is an unknown key; did you mean `listen`?",
    ),
    ("DThrottleCluster listen=127.0.0.1:1", "DThrottleCluster: `cluster.name` is missing"),
    ("DThrottleCluster name=a name=b", "DThrottleCluster: `cluster.name` is given twice"),
    (
        "DThrottleCluster name=a listen=10.0.0.1:1",
        "DThrottleCluster: `cluster.listen` must be a loopback address",
    ),
    ("DThrottleCluster name=a pacing=x", "DThrottleCluster: `cluster.pacing` must be on or off"),
    (
        "DThrottleCluster name=a period=50",
        'DThrottleCluster: `cluster.period` must be a duration such as "100ms", got "50"',
    ),
    (
        "DThrottleCluster name=a retention=15",
        'DThrottleCluster: `cluster.retention` must be a duration such as "15s", got "15"',
    ),
    ("DThrottleCluster name=a secret_file=none", "`cluster.secret`: cannot read"),
    ("DThrottleCluster name=a peer=x peer=10.0.0", "cluster.peers[1]"),
    # File.
    ("DThrottleConfigFile none.toml", '"FOLDER/none.toml": cannot be read'),
]


@pytest.mark.parametrize(("lines", "message"), BAD)
def test_an_invalid_value_is_explained(lines: str, message: str) -> None:
    status, text, tables = apache.check_config(lines, table="")
    assert status == 1
    assert message in text, text
    assert tables == []


def test_checking_a_valid_configuration_opens_no_table(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sixteen bytes and more\n")
    lines = RULE + (
        f"DThrottleCluster name=web secret_file={secret} listen=127.0.0.1:0 peer=127.0.0.1:9 "
        'peer=localhost period=50ms reports=eager tolerance=auto pacing=on "retention_bytes=16 MB" '
        '"packet_key=quoted \\" and long enough"\nDThrottle On\n'
    )
    status, text, tables = apache.check_config(lines)
    assert status == 0, text
    assert "Syntax OK" in text
    assert tables == []


def test_errors_in_a_file_name_it_and_the_line(tmp_path: Path) -> None:
    file = tmp_path / "dthrottle.toml"
    file.write_text("[domains.a]\nrate = '1/fortnight'\n")
    lines = f"DThrottleConfigFile {file}\nDThrottleDomain a\nDThrottle On\n"
    status, text, _ = apache.check_config(lines)
    assert (status, f"{file}: line 2: `domains.a.rate` must be a rate" in text) == (1, True), text
    file.write_text("[domains.a]\nrate = '1/s'\n[cluster]\nname='x'\nlisten = '127.0.0.1:0'\n")
    assert apache.check_config(lines)[0] == 0
    status, text, _ = apache.check_config(lines + "DThrottleCluster name=x\n")
    assert (status, "contradict each other: " in text) == (1, True), text


def own_tables() -> set[Path]:
    name = "dthrottle-*-apache-*"
    return {*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)}


def test_the_table_is_named_after_the_server() -> None:
    before = own_tables()
    lines = "DThrottleRule default 1/day\n" + location("/a", "DThrottle On")
    with apache.apache(lines, table="") as server:
        assert server.statuses("/a", 2) == [200, 429]
        (made,) = own_tables() - before
        with apache.apache(lines, table="") as another:
            assert another.statuses("/a", 2) == [200, 429]
            (other,) = own_tables() - before - {made}
        other.unlink()
        children = server.children()
        server.process.send_signal(signal.SIGUSR1)
        wait_until("other children", lambda: not set(children) & set(server.children()))
        assert server.statuses("/a", 2) == [429, 429]
        assert own_tables() - before == {made}
    made.unlink()


def test_the_table_has_the_size_of_the_directive() -> None:
    for size, least, most in [("64M", 60e6, 64 << 20), ("1000000", 27e6, 29e6), ("1", 0, 5e6)]:
        table = f"DThrottleTable test size={size} dir={{folder}}/tables"
        with apache.apache(RULE + "DThrottle On\n", table=table) as server:
            server.get("/a")
            (made,) = (server.folder / "tables").iterdir()
            assert least <= made.stat().st_size <= most


def test_requests_pass_and_the_log_says_why_if_the_table_cannot_be_opened(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    name = f"dthrottle-{65534 if os.geteuid() == 0 else os.geteuid()}-taken"
    (tmp_path / name).mkdir()
    for folder in [tmp_path, *tmp_path.parents][:2]:
        folder.chmod(0o755)
    with apache.apache(
        RULE + "DThrottle On\n", table=f"DThrottleTable taken dir={tmp_path}"
    ) as server:
        assert server.statuses("/a", 3) == [200] * 3
        assert "nothing is limited" in server.log()


def test_the_example_of_the_documentation_is_valid() -> None:
    text = (REPOSITORY / "docs" / "apache.md").read_text()
    (example,) = re.findall(r"^```apache\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    status, output, _ = apache.check_config(re.sub("LoadModule .*", "", example))
    assert status == 0, output
