"""The name of an application, which all its workers share and no other application has."""

from __future__ import annotations

import logging
import os
import random
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web import WsgiClient

from dthrottle import DthrottleError, wsgi
from dthrottle.application import application_name


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def name(monkeypatch: pytest.MonkeyPatch, *argv: str) -> str:
    """Return the name for a command line."""
    monkeypatch.setattr(sys, "argv", list(argv))
    found = application_name()
    assert found is not None
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}", found)
    return found


def test_options_of_the_server_do_not_change_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = name(monkeypatch, "/venv/bin/gunicorn", "shop.wsgi:app")
    assert "shop.wsgi-app" in bare
    for argv in [
        ("/venv/bin/gunicorn", "-w", "8", "--bind", "127.0.0.1:8000", "shop.wsgi:app"),
        ("/venv/lib/gunicorn/__main__.py", "--bind", "unix:run.sock", "shop.wsgi:app", "--preload"),
        ("uvicorn", "--host=localhost", "--fd", "3", "shop.wsgi:app", "--workers", "2"),
    ]:
        assert name(monkeypatch, *argv) == bare


def test_other_applications_folders_and_environments_have_other_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = {name(monkeypatch, "gunicorn", "shop:app")}
    names.add(name(monkeypatch, "gunicorn", "shop:admin"))
    names.add(name(monkeypatch, "gunicorn", "blog:app"))
    names.add(name(monkeypatch, "gunicorn", "-c", "a.py"))
    names.add(name(monkeypatch, "gunicorn", "-c", "b.py"))
    names.add(name(monkeypatch, "manage.py", "runserver"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    names.add(name(monkeypatch, "gunicorn", "shop:app"))
    monkeypatch.setattr(sys, "prefix", "/srv/venv")
    names.add(name(monkeypatch, "gunicorn", "shop:app"))
    assert len(names) == 8


def test_name_depends_on_the_file_that_makes_the_middleware(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["mod_wsgi"])
    monkeypatch.chdir("/")
    found = []
    for folder in ("a", "b", "a"):
        file = tmp_path / folder / "app.py"
        space: dict[str, Any] = {"application_name": application_name}
        exec(compile("made = application_name()", str(file), "exec"), space)
        found.append(space["made"])
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("argv", [[], [""], ["-c"], ["-"]])
def test_interactive_python_has_no_name(monkeypatch: pytest.MonkeyPatch, argv: list[str]) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    assert application_name() is None


def test_name_under_uwsgi_depends_on_the_option_with_the_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["uwsgi"])
    names = set()
    options: list[dict[Any, Any]] = [
        {"module": b"shop:app", "workers": b"4"},
        {b"module": "shop:app", b"workers": b"8"},
        {"wsgi-file": b"blog.py"},
        {"mount": [b"/a=a.py", b"/b=b.py"]},
        {},
    ]
    for option in options:
        module: Any = types.ModuleType("uwsgi")
        module.opt = option
        monkeypatch.setitem(sys.modules, "uwsgi", module)
        names.add(application_name())
    assert len(names) == 4


def test_symbolic_link_to_the_folder_keeps_the_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = []
    for release in ("1", "2"):
        (tmp_path / release).mkdir()
        current = tmp_path / "current"
        current.unlink(missing_ok=True)
        current.symlink_to(release)
        monkeypatch.chdir(current)
        monkeypatch.setenv("PWD", str(current))
        names.append(name(monkeypatch, "gunicorn", "shop:app"))
        monkeypatch.setenv("PWD", "/")
        names.append(name(monkeypatch, "gunicorn", "shop:app"))
    assert names[0] == names[2]
    assert names[1] != names[3]


def test_removed_folder_still_has_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert name(monkeypatch, "gunicorn", "shop:app")


@pytest.mark.parametrize(
    "word", ["x" * 300, "größe:app", "../..", "--", ".hidden", "a b", "\udcff", "日本.py"]
)
def test_any_command_line_has_a_valid_name(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    name(monkeypatch, word)
    name(monkeypatch, "gunicorn", word)


SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
from dthrottle.wsgi import ThrottleMiddleware
def ask(app, peer="203.0.113.7", path="/"):
    statuses = []
    environ = {"REQUEST_METHOD": "GET", "REMOTE_ADDR": peer, "PATH_INFO": path}
    app(environ, lambda status, headers: statuses.append(status[:3]))
    return statuses[0]
def hello(environ, start_response):
    start_response("200 OK", [])
    return []
"""


def run(folder: Path, code: str) -> list[str]:
    """Run an application, and return the lines that it prints."""
    (folder / "app.py").write_text(SCRIPT + code, "utf-8")
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def shop_tables() -> set[Path]:
    """Return the tables of this user for applications named shop."""
    name = f"dthrottle-{os.getuid()}-shop-*"
    return {*Path("/run/dthrottle").glob(name), *Path("/dev/shm").glob(name)}


@pytest.fixture
def shm() -> Iterator[None]:
    """Remove the tables that a test leaves behind."""
    before = shop_tables()
    yield
    for file in shop_tables() - before:
        file.unlink()


@pytest.mark.usefixtures("shm")
def test_buckets_survive_a_restart_and_differ_between_folders(tmp_path: Path) -> None:
    code = "app = ThrottleMiddleware(hello, '2/day', table={'size': 1000})\nprint(ask(app))\n"
    outputs = []
    for folder in ("one/shop", "one/shop", "one/shop", "two/shop"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        outputs.append(run(tmp_path / folder, code))
    assert [lines[-1] for lines in outputs] == ["200", "200", "429", "200"]
    assert [len(lines) for lines in outputs] == [2, 2, 3, 2]
    assert "before this process opened the table" in outputs[2][1]
    tables = [re.findall(r"table (shop-app.py-\w+)", lines[0])[0] for lines in outputs]
    assert tables[0] == tables[1] == tables[2] != tables[3]


@pytest.mark.usefixtures("shm")
def test_middlewares_with_different_routes_have_separate_buckets(tmp_path: Path) -> None:
    code = """
app = ThrottleMiddleware(hello, "1/day", routes=["/login"], table={"size": 1000})
app = ThrottleMiddleware(app, "5/day", table={"size": 1000})
print([ask(app, path="/login"), ask(app, path="/login"), ask(app), ask(app), ask(app), ask(app)])
"""
    (tmp_path / "shop").mkdir()
    outputs = run(tmp_path / "shop", code)
    assert outputs[-1] == str(["200", "429", "200", "200", "200", "429"])
    assert len(outputs) == 3


@pytest.mark.usefixtures("shm")
def test_colliding_default_domain_is_renamed_with_a_warning(tmp_path: Path) -> None:
    code = """
app = ThrottleMiddleware(hello, "5/day", table={"size": 1000})
app = ThrottleMiddleware(hello, "5/day", table={"size": 1000})
app = ThrottleMiddleware(app, "9/day", table={"size": 1000})
print([ask(app) for _ in range(6)])
"""
    (tmp_path / "shop").mkdir()
    outputs = run(tmp_path / "shop", code)
    assert ['this one uses "default 2"' in line for line in outputs[:4]] == [
        False,
        False,
        True,
        False,
    ]
    assert outputs[4:] == [str(["200"] * 5 + ["429"])]


@pytest.mark.usefixtures("shm")
def test_colliding_chosen_domain_keeps_its_name_with_a_warning(tmp_path: Path) -> None:
    code = """
first = ThrottleMiddleware(hello, "5/day", domain="login", table={"size": 1000})
second = ThrottleMiddleware(hello, "9/day", domain="login", table={"size": 1000})
"""
    (tmp_path / "shop").mkdir()
    outputs = run(tmp_path / "shop", code)
    assert ["disturb" in line for line in outputs] == [False, True, False]


OPEN = {
    "dict": """
config = {"rate": "9 per 9 years", **({"cluster": CLUSTER} if CLUSTER else {})}
native = ThrottleMiddleware(hello, config, table={"size": 1000})._http.native
""",
    "file": """
lines = [f"{key} = {value!r}" for key, value in (CLUSTER or {}).items()]
lines = ["rate = '9 per 9 years'", *(["[cluster]"] if CLUSTER else []), *lines]
open("web.toml", "w").write("\\n".join(lines))
native = ThrottleMiddleware(hello, "web.toml", table={"size": 1000})._http.native
""",
    "limits": """
limits = Limits(WsgiReader(lambda environ: environ), {"size": 1000}, CLUSTER, {})
native = limits.used(limits.limit("9 per 9 years", {}, can_await=False)).native
""",
}


@pytest.mark.usefixtures("shm")
@pytest.mark.parametrize("made", OPEN)
def test_each_cluster_secret_has_its_own_table(tmp_path: Path, made: str) -> None:
    """Processes with the same secret share a table, whatever tables were there before."""
    folder = tmp_path / "shop"
    folder.mkdir()

    names: list[str] = []

    def ask(secret: str | None) -> tuple[str, ...]:
        cluster = {"name": "web", "listen": "127.0.0.1:0", "secret": secret} if secret else None
        code = f"""
from dthrottle.limits import Limits
from dthrottle.wsgi import WsgiReader
CLUSTER = {cluster!r}
{OPEN[made]}
remaining = native.domain().check("t").remaining
print(native.table_name, remaining)
"""
        found = re.fullmatch(r"(shop-app\.py-\w{10}([-\d]*)) (\d)", run(folder, code)[-1])
        assert found
        names.append(found[1])
        return found.groups()[1:]

    one, two = "the first secret of them", "the second secret of them"
    assert [ask(None), ask(one), ask(two)] == [("", "8"), ("-2", "8"), ("-3", "8")]
    (first,) = [file for file in shop_tables() if file.name.endswith(f"-{names[0]}")]
    first.unlink()
    assert [ask(one), ask(two)] == [("-2", "7"), ("-3", "7")]


def test_log_names_the_table(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dthrottle")
    WsgiClient("1/s", table={"name": "web", "dir": str(tmp_path), "size": 1000})
    WsgiClient("1/s", table=False)
    outputs = [record.getMessage() for record in caplog.records]
    assert outputs == [
        "throttling by domain 'default', shared in table web",
        "throttling by domain 'default', in a table without a name",
    ]


@pytest.mark.parametrize("name", ["gunicorn.error", "uvicorn.error"])
def test_server_logs_the_table_where_python_would_not(tmp_path: Path, name: str) -> None:
    lines: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    server, handler = logging.getLogger(name), Handler()
    server.addHandler(handler)
    server.setLevel(logging.INFO)
    try:
        WsgiClient("1/s", table={"name": "web", "dir": str(tmp_path), "size": 1000})
    finally:
        server.removeHandler(handler)
        server.setLevel(logging.NOTSET)
    assert lines == ["dthrottle: throttling by domain 'default', shared in table web"]


def test_unusable_default_table_causes_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table: Any = {"name": "web", "dir": str(tmp_path / "missing"), "size": 1000}
    web = WsgiClient("1/day", table=table)
    (warning,) = caplog.messages
    assert "shared only with forked children" in warning
    assert web.statuses(2) == [200, 429]


DOMAINS_NAMED_TABLE = [
    'rate = "1/day"\n[domains.table]\nrate = "5/day"',
    'rate = "1/day"\n[domains]\ntable = { rate = "5/day" }',
    'rate = "1/day"\ndomains.table.rate = "5/day"',
]


@pytest.mark.parametrize("text", DOMAINS_NAMED_TABLE)
def test_domain_named_table_is_not_a_table(tmp_path: Path, text: str) -> None:
    file = tmp_path / "web.toml"
    file.write_text(text, "utf-8")
    table: Any = {"name": "a", "dir": str(tmp_path), "size": 1000}
    assert WsgiClient(file, table=table).statuses(2) == [200, 429]
    assert WsgiClient(str(file), table=table).statuses(1) == [429]
    assert WsgiClient(file, table=table, domain="table").statuses(6) == [200] * 5 + [429]
    assert [path.name for path in tmp_path.iterdir() if path != file] == [
        f"dthrottle-{os.getuid()}-a"
    ]


@pytest.mark.parametrize(
    ("text", "own"),
    [
        *((text, False) for text in DOMAINS_NAMED_TABLE),
        ('rate = "1/day"\n[table]\nsize = 1000', False),
        ('rate = "1/day"\n[table]\nname = "OWN"\nsize = 1000', True),
    ],
)
def test_unnamed_table_of_a_file_gets_the_name_of_the_application(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, own: bool
) -> None:
    name = f"file-{random.getrandbits(32):08x}"
    monkeypatch.setattr(wsgi, "application_name", lambda: name)
    file = tmp_path / "web.toml"
    file.write_text(text.replace("OWN", f"{name}-own"), "utf-8")
    path = Path(f"/dev/shm/dthrottle-{os.getuid()}-{name}" + ("-own" if own else ""))
    try:
        # Two workers.
        assert [WsgiClient(file).statuses(1), WsgiClient(file).statuses(1)] == [[200], [429]]
    finally:
        path.unlink()


def test_module_without_a_callable_names_the_application(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PWD", raising=False)
    shop = types.ModuleType("shop.wsgi")
    shop.__file__ = str(tmp_path / "shop" / "wsgi.py")
    monkeypatch.setitem(sys.modules, "shop.wsgi", shop)
    names = set()
    for more in (["-w", "4"], ["-w", "8", "--log-config", "json"]):
        monkeypatch.setattr(sys, "argv", ["/bin/gunicorn", *more, "shop.wsgi"])
        names.add(application_name())
    assert len(names) == 1
    monkeypatch.setattr(sys, "argv", ["/bin/gunicorn", "json"])
    assert application_name() not in names


@pytest.mark.parametrize("what", ["rate", "file"])
def test_default_name_taken_by_another_file_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    what: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = f"taken-{random.getrandbits(32):08x}"
    monkeypatch.setattr(wsgi, "application_name", lambda: name)
    if os.getuid() == 0:
        Path("/run/dthrottle").mkdir(mode=0o755, exist_ok=True)
    folders = [Path("/run/dthrottle"), Path("/dev/shm"), Path("/tmp")]
    squatted = [at / f"dthrottle-{os.getuid()}-{name}" for at in folders if at.is_dir()]
    config: Any = "1/day"
    if what == "file":
        config = tmp_path / "web.toml"
        config.write_text('rate = "1/day"')
    try:
        for path in squatted:
            path.write_text("not a table")
        web = WsgiClient(config)
        (warning,) = caplog.messages
        assert "shared only with forked children" in warning
        assert web.statuses(2) == [200, 429]
        with pytest.raises(DthrottleError):
            WsgiClient(config, table=name)
    finally:
        for path in squatted:
            path.unlink(missing_ok=True)
