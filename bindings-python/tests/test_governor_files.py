"""The files of Governor: the example of the specification, missing files, and errors."""

from __future__ import annotations

import configparser
import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from governors import INI, GovernorClient, rate, write

from dthrottle import ConfigError, FileError, ManualClock

SPECIFICATION = """\
[eom:governor]
rates_file = {folder}/.eom/governor.json
project_rates_file = {folder}/.eom/governor_project.json
throttle_milliseconds = 5
log_config_file = {folder}/logging.conf
log_config_disable_existing = {disable}

[eom:redis]
host = 192.168.3.11
port = 6379
"""

LOGGING = """\
[loggers]
keys = root
[handlers]
keys = lines
[formatters]
keys = plain
[logger_root]
level = INFO
handlers = lines
[handler_lines]
class = FileHandler
args = ("{folder}/eom.log",)
formatter = plain
[formatter_plain]
format = %(levelname)s %(name)s %(message)s
"""

# Runs in a new process, because it configures logging for the whole process.
PROGRAM = """\
import logging, sys
sys.path[:0] = sys.argv[2:]
from governors import GovernorClient
logging.getLogger("mine")
web = GovernorClient(sys.argv[1], table=False)
logging.getLogger("mine").warning("a line of another logger")
print(web.statuses(3, project="p"), web.statuses(4, project="big"))
"""


def bad(folder: Path, *given: Any, **more: Any) -> ConfigError:
    """Return the error about wrong files."""
    with pytest.raises(ConfigError) as caught:
        GovernorClient(write(folder, *given, **more), ManualClock())
    return caught.value


@pytest.mark.parametrize("disable", ["False", "True"])
def test_example_of_the_specification_limits_requests_and_configures_logging(
    tmp_path: Path, disable: str
) -> None:
    (tmp_path / ".eom").mkdir()
    ini = SPECIFICATION.format(folder=tmp_path, disable=disable)
    write(tmp_path / ".eom", [rate("each", 2, 0.001)], [rate("own", 3, 0.001, project="big")])
    (tmp_path / "eom.conf").write_text(ini, "utf-8")
    (tmp_path / "logging.conf").write_text(LOGGING.format(folder=tmp_path), "utf-8")
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        str(tmp_path / "eom.conf"),
        str(Path(__file__).parent),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[200, 200, 429] [200, 200, 200, 429]\n"
    other_lines = ["WARNING mine a line of another logger"] if disable == "False" else []
    lines = (tmp_path / "eom.log").read_text("utf-8").splitlines()
    (shared,) = [line for line in lines if "counts are" in line]
    assert shared.startswith("INFO dthrottle.governor [eom:redis] is not used")
    assert [line for line in lines if line != shared] == [
        *other_lines,
        'WARNING dthrottle.governor Hit limit of 2 per sec. for project p according to rate rule "each"',
        'WARNING dthrottle.governor Hit limit of 3 per sec. for project big according to rate rule "own"',
    ]


def test_config_may_be_a_path_a_parser_or_a_dict(tmp_path: Path, clock: ManualClock) -> None:
    path = write(tmp_path, [rate(limit=1)])
    parser = configparser.ConfigParser(interpolation=None)
    parser["eom:governor"] = {"rates_file": str(tmp_path / "governor.json")}
    section = {"rates_file": tmp_path / "governor.json", "throttle_milliseconds": 0}
    section["log_config_disable_existing"] = False
    for config in (str(path), parser, {"eom:governor": section, "eom:redis": {}}):
        assert GovernorClient(config, clock).statuses(2) == [200, 429]


@pytest.mark.parametrize(
    ("old", "new", "warns"),
    [
        ("project_rates_file = governor_project.json\n", "", "is missing"),
        ("governor_project.json", "", "is missing"),
        ("governor_project.json", "/no/such/file", "/no/such/file does not exist"),
    ],
)
def test_missing_project_rates_cause_a_warning(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture,
    old: str, new: str, warns: str,
) -> None:  # fmt: skip
    path = write(tmp_path, [rate(limit=1)], "not JSON", INI.replace(old, new))
    assert GovernorClient(path, clock).statuses(2) == [200, 429]
    (record, *_) = caplog.records
    assert (record.name, record.levelname) == ("dthrottle.governor", "WARNING")
    assert warns in record.getMessage()


@pytest.mark.parametrize("key", ["rates_file", "project_rates_file", "log_config_file"])
def test_unreadable_file_is_an_error_with_its_key(tmp_path: Path, key: str) -> None:
    ini = f"[eom:governor]\nrates_file = governor.json\n{key} = {tmp_path}\n"
    with pytest.raises(
        FileError, match=f"`{key}` cannot be read from .*: Is a directory"
    ) as caught:
        GovernorClient(write(tmp_path, [rate()], ini=ini), ManualClock())
    assert caught.value.field == key


@pytest.mark.parametrize("key", ["rates_file", "log_config_file"])
def test_missing_file_is_an_error(tmp_path: Path, key: str) -> None:
    ini = f"[eom:governor]\nrates_file = governor.json\n{key} = none.json\n"
    with pytest.raises(FileError, match=r"cannot be read from .*none\.json: No such file"):
        GovernorClient(write(tmp_path, [rate()], ini=ini), ManualClock())
    with pytest.raises(FileError, match=r"`config` cannot be read from .*none\.conf"):
        GovernorClient(tmp_path / "none.conf")


def test_empty_rates_file_limits_no_request(tmp_path: Path, clock: ManualClock) -> None:
    web = GovernorClient(write(tmp_path), clock)
    assert web.statuses(3) == [200] * 3
    assert web.get(project=None).status == 400


def test_ini_file_may_have_comments_quotes_and_colons(tmp_path: Path, clock: ManualClock) -> None:
    ini = (
        "\ufeff# comment\n[eom:auth]\nkey : 5\n[eom:governor]\nrates_file: 'none.json'\n"
        '; another\nrates_file = "governor.json"\nproject_rates_file = governor_project.json\n'
        "throttle_milliseconds = 0.5\nlog_config_disable_existing = no\n"
    )
    web = GovernorClient(write(tmp_path, "\ufeff" + json.dumps([rate(limit=1)]), ini=ini), clock)
    assert web.statuses(2) == [200, 429]


@pytest.mark.parametrize(
    ("ini", "line", "field", "says"),
    [
        ("", None, "eom:governor", r"must have the section \[eom:governor\]"),
        ("[eom:redis]\n", None, "eom:governor", "must have the section"),
        ("rates_file = a\n", 1, "config", "line 1: must be INI"),
        ("[eom:governor]\n\nrates_file\n", 3, "config", "line 3: must be INI"),
        ("[eom:governor]\n", None, "rates_file", "`rates_file` must be the path"),
        ("[eom:governor]\nrates_file =\n", 2, "rates_file", "`rates_file` must be .* but is missing"),
        ("[eom:governor]\nrate_file = a\n", 2, "rate_file", "did you mean rates_file?"),
        ("[eom:governor]\nRates_File = a\n", 2, "Rates_File", "did you mean rates_file?"),
        ("[a]\nthrottle_milliseconds = a\n[eom:governor]\nthrottle_milliseconds = five\n", 4,
         "throttle_milliseconds", "must be a number from 0 to 3600000, got 'five'"),
        ("[eom:governor]\nthrottle_milliseconds = -1\n", 2, "throttle_milliseconds", "from 0"),
        ("[eom:governor]\nthrottle_milliseconds = nan\n", 2, "throttle_milliseconds", "from 0"),
        ("[eom:governor]\nthrottle_milliseconds = 1e9\n", 2, "throttle_milliseconds", "3600000"),
        ("[eom:governor]\nlog_config_disable_existing = perhaps\n", 2,
         "log_config_disable_existing", "True or False"),
        ("[eom:governor]\nlog_config_file = governor.json\n", 2, "log_config_file",
         "governor.json does not configure logging: "),
    ],
)  # fmt: skip
def test_wrong_ini_file_is_an_error_with_line_and_field(
    tmp_path: Path, ini: str, line: int | None, field: str, says: str
) -> None:
    error = bad(tmp_path, ini=ini)
    assert (error.line, error.field) == (line, field)
    assert re.search(says, str(error))
    assert str(error).startswith(str(tmp_path / "eom.conf"))


@pytest.mark.parametrize(
    "config", [None, 5, "", b"a", {"eom:governor": 5}, {}, {"eom:governor": {}}]
)
def test_config_of_another_type_is_an_error(config: Any) -> None:
    with pytest.raises(ConfigError, match=r"config|must be a dict") as caught:
        GovernorClient(config)
    assert caught.value.field in ("config", "eom:governor", "rates_file")


def test_ini_file_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(b"[eom:governor]\nrates_file = \xff\n")
    with pytest.raises(ConfigError, match="must be UTF-8"):
        GovernorClient(path)
    with pytest.raises(FileError, match="null"):
        GovernorClient("a\0b")


WRONG: list[tuple[str, Any, str]] = [
    ("name", None, "`name` must be text, got None"),
    ("name", "", "printable text of 1 to 200 bytes"),
    ("name", 5, "`name` must be text, got 5"),
    ("name", "a\nb", "printable"),
    ("name", "a\ud800", "printable"),
    ("name", "ä" * 101, "1 to 200 bytes"),
    ("limit", "300", "`limit` must be a number from 0 to 1099511627776, got '300'"),
    ("limit", True, "number"),
    ("limit", None, "number"),
    ("limit", -1, "`limit` must be a number from 0 to 1099511627776, got -1"),
    ("limit", -0.5, "from 0"),
    ("limit", float("nan"), "from 0"),
    ("limit", float("inf"), "from 0"),
    ("limit", 2**40 + 1, "from 0 to 1099511627776"),
    ("limit", 10**400, "got 1000"),
    ("drain_velocity", "1", "must be a number of requests per second: 0, or from one in 100 years"),
    ("drain_velocity", False, "must be a number"),
    ("drain_velocity", -0.5, "100 years to 1000000000, got -0.5"),
    ("drain_velocity", 1e-10, "from one in 100 years"),
    ("drain_velocity", 2e9, "to 1000000000"),
    ("drain_velocity", [1], "number"),
    ("route", "/(v1", "a regular expression of Python (missing )"),
    ("route", 5, "must be text"),
    ("methods", {"GET": 1}, 'a list such as ["GET", "POST"]; leave it out for all methods'),
    ("methods", ["GET", 5], "a list such as"),
    ("methods", ["GET POST"], "a list such as"),
    ("limits", 5, "`limits` is an unknown field; did you mean limit?"),
    ("Limit", 5, "did you mean limit?"),
    ("method", ["GET"], "did you mean methods?"),
    ("drain_velocty", 5, "did you mean drain_velocity?"),
    ("project", 5, "`project` must be text, got 5"),
    ("project", None, "must be text"),
]


@pytest.mark.parametrize(("field", "value", "says"), WRONG)
def test_wrong_value_of_a_rate_is_an_error_with_line_and_field(
    tmp_path: Path, field: str, value: Any, says: str
) -> None:
    rates = [rate("first", project="p"), rate("second", project="p"), rate(project="p")]
    rates[1][field] = value
    error = bad(tmp_path, [], rates)
    assert says in str(error)
    assert error.field == f"project_rates_file[1].{field}"
    lines = (tmp_path / "governor_project.json").read_text("utf-8").splitlines()
    assert error.line is not None
    # Each field has its own line, and the error has the line of the field in the second entry.
    assert f'"{field}":' in lines[error.line - 1]
    assert error.line > lines.index("  {", 2)
    assert str(error).startswith(f"{tmp_path / 'governor_project.json'}: line {error.line}: rate 2")


@pytest.mark.parametrize("field", ["name", "limit", "drain_velocity", "project"])
def test_missing_field_of_a_rate_is_an_error(tmp_path: Path, field: str) -> None:
    entry = rate(project="p")
    del entry[field]
    error = bad(tmp_path, [], [rate(project="p"), entry])
    assert f"`{field}` must be " in str(error)
    assert "but is missing" in str(error)
    assert (error.field, error.line) == (f"project_rates_file[1].{field}", 8)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "must be JSON"),
        ('[\n  {"name": "a",\n  }\n]', 3, "line 3, column 3: must be JSON: "),
        ('[\n{"name": "a"}\n', 3, "must be JSON"),
        ("[" * 100_000, None, "must be a list of rates"),
        ("[" + "9" * 5000 + "]", None, "must be a list of rates"),
        ('{"name": "a"}', 1, "must be a list of rates"),
        ("null", 1, "must be a list of rates"),
        ('[\n\n  5\n]', 3, "line 3: rate 1: must be an object"),
        ('[{"name": "[,{", "limit": 1, "drain_velocity": 1, "project": "p"},\n\n\n [], 5]', 4, "rate 2: must be an object"),
    ],
)  # fmt: skip
def test_invalid_json_is_an_error_with_its_line(
    tmp_path: Path, text: str, line: int | None, says: str
) -> None:
    for name in ("governor.json", "governor_project.json"):
        files: list[Any] = [text] if name == "governor.json" else [[], text]
        error = bad(tmp_path, *files)
        assert says in str(error)
        assert error.line == line
        assert str(error).startswith(str(tmp_path / name))


def test_json_file_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "governor.json").write_bytes(b'[{"name": "\xff"}]')
    with pytest.raises(ConfigError, match=r"governor\.json: must be UTF-8"):
        GovernorClient(path)


def test_unknown_names_cause_warnings(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    rates = [rate("a", 2.5, comment="old", project="p", route=None, methods=None)]
    ini = INI.replace("[eom:redis]", "timeout = 5\n[eom:redis]")
    web = GovernorClient(write(tmp_path, rates, ini=ini), clock)
    assert web.statuses(3) == [200, 200, 429]
    conf, file = tmp_path / "eom.conf", tmp_path / "governor.json"
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING][:3]
    assert warnings == [
        f"{conf}: line 9: [eom:governor] `timeout` is an unknown key and is ignored",
        f"{file}: line 6: rate 1 ('a'): `comment` is an unknown field and is ignored",
        f"{file}: line 7: rate 1 ('a'): `project` is an unknown field and is ignored",
    ]
