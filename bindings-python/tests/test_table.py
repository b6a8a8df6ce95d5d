"""Tables: their names, the processes that share them, and warnings."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from dthrottle import ConfigError, FileError, ManualClock, TableConfig, Throttle

RATE = "1/100 years"
SMALL = 1000


def in_folder(folder: Path, name: str = "web") -> TableConfig:
    """Return the configuration of a small table in a folder."""
    return {"name": name, "dir": str(folder), "size": SMALL}


def test_throttles_with_one_table_name_share_buckets(tmp_path: Path) -> None:
    one, other = (Throttle(RATE, burst=10, table=in_folder(tmp_path)) for _ in range(2))
    elsewhere = Throttle(RATE, burst=10, table=in_folder(tmp_path, "api"))
    assert one.allow("t", 7)
    assert other.check("t", 3).remaining == 0
    assert not one.allow("t")
    assert elsewhere.peek("t").remaining == 10
    files = sorted(path.name for path in tmp_path.iterdir())
    assert [name.rpartition("-")[2] for name in files] == ["api", "web"]


def test_table_outlives_its_throttles(tmp_path: Path) -> None:
    with Throttle(RATE, burst=10, table=in_folder(tmp_path)) as throttle:
        assert throttle.allow("t", 10)
    del throttle
    assert not Throttle(RATE, burst=10, table=in_folder(tmp_path)).allow("t")


TAKE = """
import sys
from dthrottle import Throttle
table = {"name": "web", "dir": sys.argv[1], "size": 1000}
throttle = Throttle("1/100 years", burst=1000, table=table)
print(sum(throttle.allow("t") for _ in range(600)))
"""


def test_unrelated_processes_share_a_named_table(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TAKE, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(process.communicate(timeout=60)[0]) for process in started) == 1000
    assert [process.returncode for process in started] == [0, 0, 0]


BY_NAME = """
import sys
from dthrottle import Throttle
throttle = Throttle("1/100 years", burst=1000, table={"name": sys.argv[1], "size": 1000})
print(sum(throttle.allow("t") for _ in range(600)), throttle.table_name)
"""


def test_named_table_does_not_depend_on_environment_variables(tmp_path: Path) -> None:
    name = f"environment-{random.getrandbits(32):08x}"
    path = os.environ["PATH"]
    shell = {"HOME": "/root", "TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    service = {"RUNTIME_DIRECTORY": str(tmp_path), "STATE_DIRECTORY": str(tmp_path)}
    taken = []
    try:
        for variables in (shell, service, {}):
            command = [sys.executable, "-c", BY_NAME, name]
            out = subprocess.check_output(command, env={"PATH": path, **variables}, text=True)
            taken.append(out.split())
    finally:
        for folder in ("/run/dthrottle", "/dev/shm"):
            Path(folder, f"dthrottle-{os.geteuid()}-{name}").unlink(missing_ok=True)
    assert taken == [["600", name], ["400", name], ["0", name]]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_error_about_another_users_file_names_owner_and_fix() -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    folder.chmod(0o1777)
    file = folder / "dthrottle-0-web"
    try:
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        subprocess.run([*nobody, "touch", file], check=True)
        with pytest.raises(FileError) as caught:
            Throttle("1/s", table=in_folder(folder))
    finally:
        shutil.rmtree(folder)
    for part in (str(file), "belongs to user 65534 (nobody), not to user 0", "set `dir`"):
        assert part in str(caught.value)


def test_world_readable_secret_causes_a_warning(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sixteen bytes and more")
    secret.chmod(0o640)
    cluster: Any = {"name": "web", "listen": "127.0.0.1:0", "secret": {"file": str(secret)}}
    Throttle("1/s", cluster=cluster)
    secret.chmod(0o644)
    with pytest.warns(RuntimeWarning, match="every user of this machine can read") as caught:
        Throttle("1/s", cluster=cluster)
    assert len(caught) == 1
    assert str(secret) in str(caught[0].message)


def test_table_may_be_described_in_toml(tmp_path: Path) -> None:
    toml = f"rate = {RATE!r}\nburst = 10\n[table]\nname = 'web'\ndir = '{tmp_path}'\nsize = 1000\n"
    path = tmp_path / "dthrottle.toml"
    path.write_text(toml, "utf-8")
    assert Throttle.from_toml(toml).allow("t", 9)
    assert Throttle.from_file(path).check("t").remaining == 0
    assert not Throttle(RATE, burst=10, table=in_folder(tmp_path)).allow("t")
    with pytest.raises(ConfigError) as caught:
        Throttle("1/s", table="a/b")
    assert caught.value.field == "table.name"


def test_table_argument_adds_a_table_to_toml_without_one(tmp_path: Path) -> None:
    text, path = f"rate = {RATE!r}\n[domains]\ntable = {{ rate = 5 }}\n", tmp_path / "web.toml"
    path.write_text(text, "utf-8")
    table = in_folder(tmp_path)
    assert Throttle.from_toml(text, table=table).table_name == "web"
    assert Throttle.from_file(path, table=table).table_name == "web"
    for wrong, field in (({"sice": 5}, "table.sice"), ("a/b", "table.name")):
        with pytest.raises(ConfigError) as caught:
            Throttle.from_toml(text, table=wrong)  # type: ignore[arg-type]
        assert caught.value.field == field
    with pytest.raises(ConfigError, match="already described in the configuration") as caught:
        Throttle.from_toml("table = { private = true }", table=table)
    assert caught.value.field == "table"


@pytest.mark.parametrize("table", [None, {}, {"private": True}, {"size": 500}, {"size": "1 MB"}])
def test_unnamed_tables_are_separate(table: Any) -> None:
    one, other = (Throttle(RATE, burst=1, table=table) for _ in range(2))
    assert one.allow("t")
    assert other.allow("t")
    assert not one.allow("t")


def test_manual_clock_with_a_named_table_is_an_error(tmp_path: Path, clock: ManualClock) -> None:
    with pytest.raises(ConfigError, match="with a manual clock") as caught:
        Throttle("1/s", table=in_folder(tmp_path), clock=clock)
    assert caught.value.field == "table"
    assert list(tmp_path.iterdir()) == []
    assert Throttle("1/s", table={"size": 5}, clock=clock).allow("t")


def test_missing_folder_of_a_table_causes_one_warning(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    toml = f"rate = '1/s'\ntable = {{ name = 'web', dir = '{missing}' }}"
    path = tmp_path / "dthrottle.toml"
    path.write_text(toml, "utf-8")
    makers: list[Any] = [
        lambda: Throttle("1/s", table=in_folder(missing)),
        lambda: Throttle.from_toml(toml),
        lambda: Throttle.from_file(path),
    ]
    for make in makers:
        with pytest.warns(RuntimeWarning, match="shared only with forked children") as caught:
            throttle = make()
        assert len(caught) == 1
        assert str(missing) in str(caught[0].message)
        assert caught[0].filename == __file__
        assert throttle.allow("t")
        assert not throttle.allow("t")


def test_warning_about_a_table_can_be_an_error(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="web"):
            Throttle("1/s", table=in_folder(tmp_path / "missing"))


def test_existing_table_of_another_size_causes_a_warning(tmp_path: Path) -> None:
    first = Throttle(RATE, burst=1, table=in_folder(tmp_path))
    assert first.allow("t")
    with pytest.warns(RuntimeWarning, match="exists with room for") as caught:
        second = Throttle(RATE, burst=1, table={**in_folder(tmp_path), "size": 1_000_000})
    assert len(caught) == 1
    assert not second.allow("t")


def test_file_that_is_not_a_table_is_an_error(tmp_path: Path) -> None:
    Throttle("1/s", table=in_folder(tmp_path))
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"\0" * 8192)
    with pytest.raises(FileError, match="not a table"):
        Throttle("1/s", table=in_folder(tmp_path))
    file.chmod(0o666)
    with pytest.raises(FileError, match="other users can access it"):
        Throttle("1/s", table=in_folder(tmp_path))


def test_table_of_a_group_is_accessible_to_it(tmp_path: Path) -> None:
    own = tmp_path.stat().st_gid
    groups: list[str | int] = [own, str(own)]
    for group in groups:
        Throttle("1/s", table={**in_folder(tmp_path), "group": group})
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o660
    with pytest.raises(ConfigError, match="must be a group") as caught:
        Throttle("1/s", table={**in_folder(tmp_path), "group": "no such group"})
    assert caught.value.field == "table.group"
