"""`nginx -t` explains every invalid value and opens no table."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import nginx
import pytest
from nginx import location
from server import REPOSITORY, server_folder, wait_until

ZONE = "dthrottle_zone $uri zone=a rate=1r/s;"
NO_TABLE = {"table": ""}

BAD: list[tuple[str, str, str]] = [
    # Header fields.
    ("dthrottle_headers draft7;", "", 'invalid value "draft7"; dthrottle_headers takes on, off, '),
    ("dthrottle_headers on; dthrottle_headers off;", "", '"dthrottle_headers" directive is dup'),
    # Zones.
    ("dthrottle_zone $uri zone=a rate=1;", "", 'invalid rate "1"; write a number and r/s'),
    ("dthrottle_zone $uri zone=a rate=0r/s;", "", 'invalid rate "0r/s"; write a number and r/s'),
    ("dthrottle_zone $uri zone=a rate=1r/y;", "", 'invalid rate "1r/y"; write a number and r/s'),
    ("dthrottle_zone $uri zone=a rate=-1r/s;", "", 'invalid rate "-1r/s"'),
    (
        "dthrottle_zone $uri zone=a rate=99999999999999999r/s;",
        "",
        "dthrottle: `domains.a.rules[0].rate` must be",
    ),
    ("dthrottle_zone $uri zone=a:1k rate=1r/s;", "", 'invalid zone size "1k"; write at least'),
    ("dthrottle_zone $uri zone=:1m rate=1r/s;", "", "the zone has no name; write zone=name"),
    ("dthrottle_zone $uri rate=1r/s rate=1r/s;", "", 'must have a "zone" parameter'),
    (
        "dthrottle_zone $uri zone=a burst=1;",
        "",
        'invalid parameter "burst=1"; dthrottle_zone takes',
    ),
    ("dthrottle_zone $nothing zone=a rate=1r/s;", "", 'unknown "nothing" variable'),
    ("dthrottle_zone $uri zone=a;", "", 'zone "a" has no rate, and the dthrottle_config file has'),
    (ZONE + ZONE, "", 'dthrottle_zone "a" is already defined in FOLDER/nginx.conf:'),
    # Uses.
    (ZONE, "dthrottle zone=b;", 'zone "b" is used, but no dthrottle_zone defines it in FOLDER'),
    (ZONE, "dthrottle burst=1;", '"dthrottle" must have a "zone" parameter'),
    (ZONE, "dthrottle zone=a burst=-1;", 'invalid burst "burst=-1"; write burst=0 to'),
    (ZONE, "dthrottle zone=a burst=9999999999999;", "invalid burst"),
    (ZONE, "dthrottle zone=a delay=0;", 'invalid delay "delay=0"; write how many requests'),
    (ZONE, "dthrottle zone=a max_delay=x;", 'invalid max_delay "max_delay=x"; write a time'),
    (
        ZONE,
        "dthrottle zone=a max_delay=1s;",
        'zone "a" has a rate, so burst and delay determine',
    ),
    (ZONE, "dthrottle zone=a burst=5 nodelay delay=3;", "only one of nodelay and delay= is"),
    (ZONE, "dthrottle zone=a burst=5 delay=3 nodelay;", "only one of nodelay and delay= is"),
    (ZONE, "dthrottle zone=a burst=5 delay=3 delay=4;", "only one of nodelay and delay= is"),
    (ZONE, "dthrottle zone=a nodelai;", 'invalid parameter "nodelai"; dthrottle takes zone=name'),
    (ZONE, "dthrottle zone=a; dthrottle zone=a;", 'zone "a" must be used only once here'),
    (ZONE, "dthrottle zone=a; dthrottle off;", '"dthrottle off" and another "dthrottle" exclude'),
    (ZONE, "dthrottle off; dthrottle zone=a;", '"dthrottle off" and another "dthrottle" exclude'),
    (ZONE, "dthrottle_status 200;", "value must be between 400 and 599"),
    (ZONE, "dthrottle_log_level loud;", 'invalid value "loud"'),
    (ZONE, "dthrottle_dry_run perhaps;", 'invalid value "perhaps" in "dthrottle_dry_run"'),
    # Table.
    ("dthrottle_table a/b;", "", "dthrottle_table: `table.name` must have only letters"),
    ("dthrottle_table a size=0;", "", 'invalid size "size=0"; write bytes such as size=64m'),
    ("dthrottle_table a size=1k;", "", "dthrottle_table: `table.size` must be at least 4800512"),
    ("dthrottle_table a b;", "", 'invalid parameter "b"; dthrottle_table takes a name, size='),
    ("dthrottle_table a; dthrottle_table b;", "", '"dthrottle_table" directive is duplicate'),
    # Cluster.
    (
        "dthrottle_cluster name=a liste=x;",
        "",
        "dthrottle_cluster: `cluster.liste` is an unknown key; did you mean `listen`?",
    ),
    ("dthrottle_cluster listen=127.0.0.1:1;", "", "dthrottle_cluster: `cluster.name` is missing"),
    ("dthrottle_cluster name=a name=b;", "", "dthrottle_cluster: `cluster.name` is given twice"),
    (
        "dthrottle_cluster name=a listen=10.0.0.1:1;",
        "",
        "dthrottle_cluster: `cluster.listen` must be a loopback",
    ),
    ("dthrottle_cluster name=a pacing=x;", "", "cluster.pacing"),
    (
        "dthrottle_cluster name=a period=1ms;",
        "",
        "dthrottle_cluster: `cluster.period` must be a duration from",
    ),
    ("dthrottle_cluster name=a secret_file=none;", "", "`cluster.secret`: cannot read"),
    (
        "dthrottle_cluster name=a secret=short;",
        "",
        "dthrottle_cluster: `cluster.secret` must have 16 to 4096",
    ),
    ("dthrottle_cluster name=a peer=x peer=10.0.0;", "", "cluster.peers[1]"),
    # File.
    ("dthrottle_config none.toml;", "", 'cannot read "FOLDER/none.toml" (2: No such file'),
]


def own_tables() -> set[Path]:
    """Return the tables with default names."""
    name = "dthrottle-*-nginx-*"
    return {*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)}


@pytest.mark.parametrize(("http", "server", "message"), BAD)
def test_an_invalid_value_is_explained(http: str, server: str, message: str) -> None:
    status, text, tables = nginx.check_config(http, server, **NO_TABLE)
    assert status == 1
    assert "[emerg] " in text
    assert message in text, text
    assert "test failed" in text
    assert tables == []


def test_checking_a_valid_configuration_opens_no_table(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sixteen bytes and more\n")
    http = (
        ZONE
        + f"dthrottle_cluster name=web secret_file={secret} listen=127.0.0.1:0 peer=127.0.0.1:9"
        + " peer=localhost period=50ms reports=eager tolerance=auto pacing=on retention=15s"
        + ' "retention_bytes=16 MB" "packet_key=quoted \\" and long enough";'
    )
    before = own_tables()
    status, text, tables = nginx.check_config(http, "dthrottle zone=a burst=5 nodelay;")
    assert status == 0, text
    assert "test is successful" in text
    assert tables == []
    assert own_tables() == before


def test_conflicts_between_a_file_and_directives_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "dthrottle.toml"
    file.write_text("[domains.a]\nrate = '1/fortnight'\n")
    http = f"dthrottle_config {file}; dthrottle_zone $uri zone=a;"
    status, text, _ = nginx.check_config(http, "dthrottle zone=a;", **NO_TABLE)
    assert status == 1
    assert f"{file}: line 2: `domains.a.rate` must be a rate" in text

    file.write_text("[domains.a]\nrate = '1/s'\n[cluster]\nname='x'\nlisten = '127.0.0.1:0'\n")
    for options, lines, message in [
        ("burst=1", "", 'zone "a" has the rules of a file, which set the burst'),
        ("", "dthrottle_cluster name=x;", "contradict each other: "),
        ("", ZONE.replace("zone=a", "zone=b") + "dthrottle_zone $uri zone=c;", 'zone "c" has no'),
    ]:
        status, text, _ = nginx.check_config(
            http + lines, f"dthrottle zone=a {options};", **NO_TABLE
        )
        assert status == 1
        assert message in text
    http = f"dthrottle_config {file}; {ZONE}"
    status, text, _ = nginx.check_config(http, "dthrottle zone=a;", **NO_TABLE)
    assert (status, "has a rate and also rules in the dthrottle_config file" in text) == (
        1,
        True,
    ), text


def test_the_table_is_named_after_the_server() -> None:
    before = own_tables()
    use = location("/a", "dthrottle zone=a;")
    with nginx.nginx(ZONE.replace("1r/s", "1r/d"), use, **NO_TABLE) as server:
        assert server.statuses("/a", 2) == [200, 503]
        (made,) = own_tables() - before
        server.process.send_signal(signal.SIGHUP)
        wait_until("a reload", lambda: "reconfiguring" in server.log())
        assert server.statuses("/a", 2) == [503, 503]
        assert own_tables() - before == {made}
    made.unlink()


# limit_req needs 128 bytes for a key, a table 27 bytes and at least 4.8 MB.
SIZES = [
    (["a:1m"], 0, 5),
    (["a:40m"], 8, 9.5),
    (["a:40m", "b:40m"], 17, 19),
    (["a:40m", "b"], 27, 29),
    (["a"], 27, 29),
    (["a:200m", "b"], 43, 46),
]


@pytest.mark.parametrize(("zones", "least", "most"), SIZES)
def test_the_table_has_room_for_the_sizes_of_all_zones(
    zones: list[str], least: float, most: float
) -> None:
    http = "".join(f"dthrottle_zone $uri zone={zone} rate=1r/s;" for zone in zones)
    uses = "".join(f"dthrottle zone={zone.partition(':')[0]};" for zone in zones)
    table = "dthrottle_table test dir={folder}/tables;"
    with nginx.nginx(http, location("/a", uses), table=table, workers="1") as server:
        server.get("/a")
        (made,) = (server.folder / "tables").iterdir()
        assert least <= made.stat().st_size / 1e6 <= most


def test_requests_pass_and_the_log_says_why_if_the_table_cannot_be_opened() -> None:
    use = location("/a", "dthrottle zone=a;")
    # A directory has the name of the table.
    folder = "dthrottle_table test dir=/tmp;"
    name = Path("/tmp", f"dthrottle-{65534 if os.geteuid() == 0 else os.geteuid()}-test")
    name.mkdir()
    try:
        with nginx.nginx(ZONE, use, table=folder, workers="1") as server:
            assert server.statuses("/a", 3) == [200] * 3
            assert "nothing is limited" in server.log()
    finally:
        name.rmdir()


def test_the_examples_of_the_documentation_are_valid() -> None:
    text = (REPOSITORY / "docs" / "nginx.md").read_text()
    examples = re.findall(r"^```nginx\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        with server_folder(None) as folder:
            nginx.write(folder, 1, "", "")
            (folder / "dthrottle.toml").write_text("[domains.login]\nrate = 1\n")
            (folder / "dthrottle").mkdir()
            (folder / "dthrottle" / "secret").write_text("sixteen bytes and more")
            own = re.sub("load_module .*", "", example).replace("/etc/", f"{folder}/")
            head = f"load_module {folder}/ngx_http_dthrottle_module.so;\nevents {{}}\n"
            path = folder / "example.conf"
            path.write_text(f"{head}pid {folder}/pid;\n{own}")
            done = nginx.test(folder, nginx.command(folder, path))
            assert done.returncode == 0, done.stderr
