"""Environment and notes of Apache's module, if the configuration does not name them."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache import LIBRARY, apache, location
from server import Server, server_folder, wait_until

SCRIPT = """#!/bin/sh
printf 'Content-Type: text/plain\\n\\n'
printf '%s %s %s' "$DTHROTTLE_DECISION" "$DTHROTTLE_REMAINING" "$DTHROTTLE_DELAY"
"""
PAGE = '<!--#echo var="DTHROTTLE_DECISION" --> <!--#echo var="DTHROTTLE_REMAINING" -->'
FILE = 'Header set X-Status "%{DTHROTTLE_DECISION}e %{DTHROTTLE_REMAINING}e"\n'
# A program that reads the variables at the end of the request.
LOG = """
function seen(r)
    local file = io.open("{folder}/seen", "a")
    file:write(r.uri, " ", tostring(r.subprocess_env["DTHROTTLE_DECISION"]), " ",
               tostring(r.notes["dthrottle-remaining"]), "\\n")
    file:close()
    return apache2.OK
end
"""
LINES = """
LoadModule cgi_module {library}/mod_cgi.so
LoadModule include_module {library}/mod_include.so
LoadModule lua_module {library}/mod_lua.so
Alias /page {folder}/page
Alias /file {folder}/file
Alias /type {folder}/page
ScriptAlias /script {folder}/script
LuaHookLog {folder}/log.lua seen
ErrorDocument 404 /script/error
DThrottleConfigFile {folder}/dthrottle.toml
DThrottleDomain unnamed
DThrottleTag %{{REQUEST_URI}}
DThrottle On
<Directory {folder}/file>
    AllowOverride FileInfo
</Directory>
"""
TOML = """
[domains.unnamed]
rate = "1/day"
burst = 3
[domains.dry]
rate = "1/day"
dry_run = true
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with server_folder(None) as folder:
        write_files(folder)
        lines = LINES.format(folder=folder, library=LIBRARY)
        lines += location("/page", "Options +Includes", "SetOutputFilter INCLUDES")
        lines += location("/always", "DThrottleEnvironment On")
        lines += location("/costly", "DThrottleCost 2")
        lines += location("/dry", "DThrottleDomain dry")
        with apache(lines, mpm="prefork", names="") as started:
            yield started


def write_files(folder: Path) -> None:
    for name, text in [
        ("script", SCRIPT),
        ("page/index.html", PAGE),
        ("file/.htaccess", FILE),
        ("file/index.html", "hello\n"),
        ("log.lua", LOG.replace("{folder}", str(folder))),
        ("dthrottle.toml", TOML),
        ("seen", ""),
    ]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "script").chmod(0o755)
    (folder / "seen").chmod(0o666)


def test_a_directive_in_a_section_can_name_a_variable() -> None:
    lines = 'DThrottleRule default "1/day" burst=2\nDThrottle On\n' + location(
        "/named", 'Header set X-Status "%{dthrottle_remaining}e"'
    )
    with apache(lines, names="") as started:
        assert [started.get("/named").headers["x-status"] for _ in range(2)] == ["1", "0"]


def body(server: Server, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def test_a_script_gets_the_environment(server: Server) -> None:
    assert [body(server, "/script") for _ in range(2)] == ["passed 2 0", "passed 1 0"]
    assert server.statuses("/script", 2) == [200, 429]


def test_a_page_with_includes_gets_the_environment(server: Server) -> None:
    assert [body(server, "/page/index.html") for _ in range(2)] == ["passed 2", "passed 1"]


def test_directives_in_htaccess_get_the_environment(server: Server) -> None:
    answers = [server.get("/file/index.html") for _ in range(2)]
    assert [answer.headers["x-status"] for answer in answers] == ["passed 2", "passed 1"]


def test_a_script_for_an_error_page_gets_the_environment(server: Server) -> None:
    # The request is checked once, for the page that does not exist.
    for left in (2, 1, 0):
        assert body(server, "/page/none") == f"passed {left} 0"
    assert server.get("/page/none").status == 429


def seen(server: Server, path: str) -> list[str]:
    file = next(Path(line.split()[1]) for line in _config(server) if line.startswith("LuaHookLog"))
    lines = (file.parent / "seen").read_text().splitlines()
    # Children write the lines after the response, in any order.
    return sorted(line.removeprefix(f"{path} ") for line in lines if line.startswith(f"{path} "))


def _config(server: Server) -> list[str]:
    return (server.folder / "apache.conf").read_text().splitlines()


def test_a_domain_in_dry_run_logs_refusals(server: Server) -> None:
    assert server.statuses("/dry", 2) == [200, 200]
    logged = wait_until("two lines", lambda: seen(server, "/dry") * (len(seen(server, "/dry")) > 1))
    assert logged == ["passed 0", "refused-dry-run 0"]
    assert 'limiting requests, dry run, by domain "dry"' in server.log()


def test_the_environment_is_always_set_if_the_directive_says_so(server: Server) -> None:
    assert server.statuses("/always", 4) == [200] * 3 + [429]
    logged = wait_until(
        "four lines", lambda: seen(server, "/always") * (len(seen(server, "/always")) > 3)
    )
    assert logged == ["passed 0", "passed 1", "passed 2", "refused 0"]
    # Without the directive, the variables are left out for plain files that pass.
    assert server.statuses("/plain", 4) == [200] * 3 + [429]
    logged = wait_until(
        "four lines", lambda: seen(server, "/plain") * (len(seen(server, "/plain")) > 3)
    )
    assert logged == ["nil nil"] * 3 + ["refused 0"]
    server.get("/costly")
    assert wait_until("a line", lambda: seen(server, "/costly")) == ["passed 1"]
