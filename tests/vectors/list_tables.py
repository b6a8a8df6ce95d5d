"""Cases for the key `table` in configs.json.

A named table is a file that would remain after the test, so no good case has a name. The tests of
each language open named tables in separate folders.
"""

from __future__ import annotations

from list_bad_configs import BOOL_SAYS, case
from list_configs import Entry, limited

SIZE_SAYS = '"64 MB"'
NAME_SAYS = "letters, digits"


def good() -> list[Entry]:
    return [
        limited("a private table", 'rate = "1/s"\ntable = { private = true }\n',
             {"rate": "1/s", "table": {"private": True}}),
        limited("a table that is not private", "table = { private = false }\n",
             {"table": {"private": False}}),
        limited("an empty table", "rate = 2\n[table]\n", {"rate": 2, "table": {}}),
        limited("a table for 5000 tags", "table.size = 5_000\n", {"table": {"size": 5000}}),
        limited("a table for one tag", "table = { size = 1 }\n", {"table": {"size": 1}}),
        limited("a table of 2 MB", 'table = { size = "2 MB" }\n',
             {"table": {"size": "2 MB"}}),
        limited("a private table with its size", '[table]\nsize = "5000 tags"\nprivate = true\n',
             {"table": {"size": "5000 tags", "private": True}}),
        *[limited(f"a table of {size!r}", f'table = {{ private = true, size = "{size}" }}\n',
               {"table": {"private": True, "size": size}})
          for size in ("1000 tags", "3000000 bytes", "900kb", " 2 MiB ", "1024 KiB", "1M")],
        limited("a table before domains", '[table]\nsize = 100\n[domains.api]\nrate = "10/s"\n',
             {"table": {"size": 100}, "domains": {"api": {"rate": "10/s"}}}),
    ]  # fmt: skip


def bad() -> list[Entry]:
    return [*kinds(), *names(), *sizes(), *combinations(), *unknown_keys()]


# Rows of a table, as in list_bad_configs.
# fmt: off


def kinds() -> list[Entry]:
    return [
        case("table is a number", "table", ["3", '"web"'], "rate = 1\ntable = 3 #!\n",
             {"rate": 1, "table": 3}),
        case("table is a bool", "table", ["true", '"web"'], "table = true #!\n", {"table": True}),
        case("table is a list", "table", ['"web"'], 'table = ["web"] #!\n', {"table": ["web"]}),
        case("table is null", "table", ['"web"'], None, {"table": None}),
        case("table name is a number", "table.name", ["5", "text"], "[table]\nname = 5 #!\n",
             {"table": {"name": 5}}),
        case("table name is null", "table.name", ["text"], None, {"table": {"name": None}}),
        case("table size is a bool", "table.size", ["true", SIZE_SAYS],
             "table = { size = true } #!\n", {"table": {"size": True}}),
        case("table size is a list", "table.size", [SIZE_SAYS], "table.size = [5] #!\n",
             {"table": {"size": [5]}}),
        case("table group is a bool", "table.group", ["text"],
             '[table]\nname = "web"\ngroup = false #!\n',
             {"table": {"name": "web", "group": False}}),
        case("table dir is a number", "table.dir", ["7", "text"],
             '[table]\nname = "web"\n\ndir = 7 #!\n', {"table": {"name": "web", "dir": 7}}),
        case("table private is text", "table.private", ["yes", BOOL_SAYS],
             'table = { private = "yes" } #!\n', {"table": {"private": "yes"}}),
        case("table private is a number", "table.private", ["1", BOOL_SAYS],
             "[table]\nsize = 5\nprivate = 1 #!\n", {"table": {"size": 5, "private": 1}}),
        case("table default_name is text", "table.default_name", ["yes", BOOL_SAYS],
             'table = { name = "web", default_name = "yes" } #!\n',
             {"table": {"name": "web", "default_name": "yes"}}),
        case("table private is null", "table.private", [BOOL_SAYS], None,
             {"table": {"private": None}}),
    ]


def names() -> list[Entry]:
    long = "n" * 101
    odd = ["a/b", "../web", ".web", ".", "two words", "grün", "a:b"]
    return [
        *[case(f"table name {name!r}", "table.name", [name, NAME_SAYS],
               f'rate = 1\ntable = "{name}" #!\n', {"rate": 1, "table": name})
          for name in odd],
        case("an empty table name", "table.name", ["100"], 'table = "" #!\n', {"table": ""}),
        case("a table name of 101 bytes", "table.name", ["101", "100"], f'table = "{long}" #!\n',
             {"table": long}),
        case("a bad name in a table", "table.name", ["a/b", NAME_SAYS],
             '[table]\nsize = 10\nname = "a/b" #!\n', {"table": {"size": 10, "name": "a/b"}}),
        case("an empty name in a table", "table.name", ["100"], 'table = { name = "" } #!\n',
             {"table": {"name": ""}}),
        case("a newline in a table name", "table.name", [NAME_SAYS],
             'table = "a\\nb" #!\n', {"table": "a\nb"}),
    ]


def sizes() -> list[Entry]:
    odd = ["", "MB", "-5", "5 apples", "1.5 MB", "1e6", "99999999999999999999", "9999999999999 GB"]
    return [
        *[case(f"table size {number}", "table.size", [str(number), "tags"],
               f"[table]\nsize = {number} #!\n", {"table": {"size": number}})
          for number in (0, -1, 1.5, 2**36 + 1)],
        *[case(f"table size {text!r}", "table.size", [text, SIZE_SAYS],
               f'table = {{ size = "{text}" }} #!\n', {"table": {"size": text}})
          for text in odd],
        case("table size of 0 tags as text", "table.size", ["tags, or bytes", "got 0"],
             'table = { size = "0 tags" } #!\n', {"table": {"size": "0 tags"}}),
        case("table size is a number as text", "table.size", [SIZE_SAYS, 'got the text "1000"'],
             'table = { size = "1000" } #!\n', {"table": {"size": "1000"}}),
        case("a table of too few bytes", "table.size", ["1000 bytes", "at least"],
             '[table]\nprivate = true\nsize = "1 kB" #!\n',
             {"table": {"private": True, "size": "1 kB"}}),
        case("a named table of too few bytes", "table.size", ["1000000 bytes", "at least"],
             '[table]\nname = "web"\nsize = "1 MB" #!\n',
             {"table": {"name": "web", "size": "1 MB"}}),
    ]


def combinations() -> list[Entry]:
    return [
        case("a private table with a name", "table.name", ["private"],
             '[table]\nprivate = true\nname = "web" #!\n',
             {"table": {"private": True, "name": "web"}}),
        case("a group without a name", "table.group", ["name"],
             '[table]\ngroup = "www-data" #!\n', {"table": {"group": "www-data"}}),
        case("a group's number without a name", "table.group", ["name"],
             "table = { group = 33 } #!\n", {"table": {"group": 33}}),
        case("a folder without a name", "table.dir", ["name"],
             '[table]\nsize = 5\ndir = "/run" #!\n', {"table": {"size": 5, "dir": "/run"}}),
        case("a default name without a name", "table.default_name", ["name"],
             "[table]\ndefault_name = true #!\n", {"table": {"default_name": True}}),
        case("a private table with a group", "table.group", ["name"],
             '[table]\nprivate = true\ngroup = "www-data" #!\n',
             {"table": {"private": True, "group": "www-data"}}),
        case("a private table with a folder", "table.dir", ["name"],
             '[table]\nprivate = true\ndir = "/run" #!\n',
             {"table": {"private": True, "dir": "/run"}}),
    ]


def unknown_keys() -> list[Entry]:
    say = "unknown key"
    return [
        case("unknown key in table, similar to size", "table.sise", [say, "size"],
             "[table]\nsise = 5 #!\n", {"table": {"sise": 5}}),
        case("unknown key in table, similar to no known key", "table.zzzzzz", [say, "private"],
             "table = { zzzzzz = 5 } #!\n", {"table": {"zzzzzz": 5}}),
        case("unknown key, similar to table", "tabel", [say, "table"], 'tabel = "web" #!\n',
             {"tabel": "web"}),
        case("table in a domain", "domains.api.table", [say, "table"],
             '[domains.api]\nrate = 1\ntable = "web" #!\n',
             {"domains": {"api": {"rate": 1, "table": "web"}}}),
        case("rate in a table", "table.rate", [say], "[table]\nrate = 5 #!\n",
             {"table": {"rate": 5}}),
    ]
