"""Shows and changes tables that are in use: ``python -m dthrottle list``, ``check TAG``, ..."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dthrottle import (
    ClusterStats,
    Decision,
    DthrottleError,
    TableInfo,
    __version__,
    remove_table,
    tables,
)
from dthrottle._dthrottle import Middleware
from dthrottle.address import client_address
from dthrottle.application import application_name
from dthrottle.config import TableConfig
from dthrottle.options import source_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Return 1 if a check was refused, 2 after an error."""
    args = _parser().parse_args(arguments)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader closed the pipe; nothing is left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (DthrottleError, _UsageError) as error:
        print(f"dthrottle: {error}", file=sys.stderr)
        return 2


class _UsageError(Exception):
    """The arguments do not determine a table or its rules."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m dthrottle", description=__doc__)
    parser.add_argument("--version", action="version", version=f"dthrottle {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--group", help="a table of this group instead of the user's")
    where.add_argument("--dir", help="a table in this directory instead of the default ones")
    common = argparse.ArgumentParser(add_help=False, parents=[where])
    common.add_argument("--table", metavar="NAME", help="the table; needed if there are several")
    common.add_argument("--json", action="store_true", help="print JSON")

    for name, run, text in (
        ("list", _list, "show all tables: name, size, buckets in use, file"),
        ("stats", _stats, "show tables and the counters of their clusters"),
        ("peers", _peers, "show the cluster of a table"),
    ):
        commands.add_parser(name, parents=[common], help=text).set_defaults(run=run)
    remove = commands.add_parser("remove", parents=[where], help="remove a table")
    remove.add_argument("name", help="its name; processes that have it open keep it")
    remove.set_defaults(run=_remove)
    for name, run, text in (
        ("check", _check, "check a tag and charge it"),
        ("peek", _check, "check a tag without charging it"),
        ("reset", _reset, "fill the buckets of a tag"),
    ):
        command = commands.add_parser(name, parents=[common], help=text)
        command.set_defaults(run=run, command=name)
        command.add_argument("tag", help="an address, or any other text")
        command.add_argument("--text", action="store_true", help="take an address as plain text")
        command.add_argument(
            "--config", type=Path, metavar="FILE", help="a TOML file with the rules"
        )
        command.add_argument("--rate", help="a rule, if there is no file: 100/s")
        command.add_argument("--burst", help="the burst of the rule")
        command.add_argument("--domain", help='the domain ("default")')
        command.add_argument(
            "--scope", help='the route of a limit: "shop endpoint:login" of the Flask app "shop"'
        )
        command.add_argument("--cost", type=int, default=1, help="the units to check (1)")
        command.add_argument(
            "--change-rules",
            action="store_true",
            help="allow rules that the table does not have",
        )
    return parser


def _list(args: argparse.Namespace) -> int:
    found = _tables(args)
    if args.json:
        return _print_json([_table_fields(table) for table in found])
    lines: list[tuple[str, ...]] = [("table", "tags", "buckets", "bytes", "file")]
    for table in found:
        error = f"cannot be used: {table.fault}" if table.fault else str(table.path)
        counts = (str(count) for count in (table.tags, table.buckets, table.bytes))
        lines.append((table.name, *counts, error))
    _print(lines)
    return 0


def _stats(args: argparse.Namespace) -> int:
    found = _tables(args)
    if args.json:
        return _print_json([_table_fields(table) for table in found])
    if not found:
        print("no named tables")
    lines = [("table", "buckets", "tags", "MB", "")]
    for table in found:
        error = f"cannot be used: {table.fault}" if table.fault else ""
        size = f"{table.bytes / 1e6:.1f}"
        lines.append((table.name, str(table.buckets), str(table.tags), size, error))
    _print(lines if found else [])
    for table in found:
        cluster = table.cluster
        if cluster is not None:
            print(f"\n{table.name}: node {cluster.node:016x}, exchanged by process {cluster.pid}")
            _print([(name, str(count)) for name, count in cluster.counts.items() if count])
    return 0


def _peers(args: argparse.Namespace) -> int:
    cluster = _one(args).cluster
    if args.json:
        return _print_json(None if cluster is None else _cluster_fields(cluster))
    if cluster is None:
        print("this table belongs to no cluster")
        return 0
    print(f"node {cluster.node:016x}, exchanged by process {cluster.pid}")
    lines = [("peer", "address", "state", "seen", "delay", "received", "repaired", "lost")]
    lines += [
        (
            f"{peer.node:016x}",
            peer.address or "?",
            peer.state,
            f"{peer.age:.1f} s ago",
            f"{peer.delay * 1e3:.1f} ms",
            str(peer.received),
            str(peer.repaired),
            str(peer.lost),
        )
        for peer in cluster.peers
    ]
    _print(lines if cluster.peers else [])
    return 0


def _remove(args: argparse.Namespace) -> int:
    remove_table(args.name, group=args.group, dir=args.dir)
    return 0


def _check(args: argparse.Namespace) -> int:
    native, tag = _native_and_tag(args)
    domain = native.domain()
    check = domain.check if args.command == "check" else domain.peek
    decision = check(tag, args.cost)
    if args.json:
        _print_json(_fields(decision))
    else:
        _print(_lines(decision))
    return 0 if decision.allowed else 1


def _reset(args: argparse.Namespace) -> int:
    native, tag = _native_and_tag(args)
    native.domain().reset(tag)
    return 0


def _native_and_tag(args: argparse.Namespace) -> tuple[Middleware, bytes]:
    """Return a middleware, which keeps the throttle open, and the tag."""
    if (args.config is None) == (args.rate is None):
        raise _UsageError("give the rules: --config FILE, or --rate 100/s")
    source: Any = args.config
    if source is None:
        source = {"rate": args.rate}
        if args.burst:
            source["burst"] = int(args.burst) if args.burst.isdecimal() else args.burst
    # A file may name its table itself.
    table = None if args.config is not None and args.table is None else _where(args, _one(args))
    options = source_options(source, {"domain": args.domain, "table": table})
    native = Middleware(options, application=application_name())
    changed = native.changed_domain
    if changed is not None and not args.change_rules:
        message = (
            f"this table has no rule of domain {changed!r} with this name, rate and burst; give "
            "the rules of the application, or --change-rules to change the table"
        )
        raise _UsageError(message)
    native.open()
    tag = (None if args.text else client_address(args.tag)) or os.fsencode(args.tag)
    if args.scope:
        tag = b"%b\0%b" % (os.fsencode(args.scope), tag)
    return native, tag


def _lines(decision: Decision) -> Iterable[tuple[str, str]]:
    yield "allowed", "yes" if decision.allowed else f"no, by {decision.rule}"
    yield "remaining", f"{decision.remaining} of {decision.limit}"
    if decision.balance < 0:
        yield "in debt by", str(-decision.balance)
    if not decision.allowed:
        yield "again after", f"{decision.retry_after:.3f} s"
    yield "full after", f"{decision.reset_after:.3f} s"


# Tables.


def _tables(args: argparse.Namespace) -> list[TableInfo]:
    found = tables(group=args.group, dir=args.dir)
    if args.table is None:
        return found
    named = [table for table in found if table.name == args.table]
    if not named:
        raise _UsageError(f"no table {args.table!r}; there are: {_names(found)}")
    return named


def _one(args: argparse.Namespace) -> TableInfo:
    found = _tables(args)
    if len(found) != 1:
        raise _UsageError(f"name the table, --table NAME; there are: {_names(found)}")
    return found[0]


def _names(found: list[TableInfo]) -> str:
    return ", ".join(table.name for table in found) or "none"


def _where(args: argparse.Namespace, table: TableInfo) -> TableConfig:
    where: TableConfig = {"name": table.name}
    if args.group:
        where["group"] = args.group
    if args.dir:
        where["dir"] = args.dir
    return where


# Output.


def _fields(record: object) -> dict[str, Any]:
    return {name: getattr(record, name) for name in dir(record) if not name.startswith("_")}


def _table_fields(table: TableInfo) -> dict[str, Any]:
    cluster = None if table.cluster is None else _cluster_fields(table.cluster)
    return {**_fields(table), "path": str(table.path), "cluster": cluster}


def _cluster_fields(cluster: ClusterStats) -> dict[str, Any]:
    # JavaScript has no integers of 64 bits.
    peers = [{**_fields(peer), "node": f"{peer.node:016x}"} for peer in cluster.peers]
    return {**_fields(cluster), "node": f"{cluster.node:016x}", "peers": peers}


def _print_json(value: object) -> int:
    print(json.dumps(value))
    return 0


def _print(lines: Iterable[Sequence[str]]) -> None:
    lines = list(lines)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


if __name__ == "__main__":
    sys.exit(main())
