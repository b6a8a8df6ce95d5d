"""A look at tables that are in use: ``python -m dthrottle stats``, ``peers``, ``check TAG``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dthrottle import Decision, DthrottleError, TableInfo, tables
from dthrottle._dthrottle import Middleware
from dthrottle.address import client_address
from dthrottle.application import application_name
from dthrottle.config import TableConfig
from dthrottle.options import source_options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 1: the check was refused, 2: something is wrong."""
    args = _parser().parse_args(arguments)
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads has read enough; nothing is left to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DthrottleError as error:
        print(f"dthrottle: {error}", file=sys.stderr)
        return 2
    except _Unclear as error:
        print(f"dthrottle: {error}", file=sys.stderr)
        return 2


class _Unclear(Exception):
    """It does not say which table."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m dthrottle", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--table", metavar="NAME", help="which table; needless if there is one")
    common.add_argument("--group", help="a table of this group instead of the user's")
    common.add_argument("--dir", help="a table in this folder instead of the usual ones")

    stats = commands.add_parser("stats", parents=[common], help="show tables and what they hold")
    stats.set_defaults(run=_stats)
    peers = commands.add_parser("peers", parents=[common], help="show the cluster of a table")
    peers.set_defaults(run=_peers)
    for name, text in (("check", "ask for a tag, and take"), ("peek", "ask, and take nothing")):
        check = commands.add_parser(name, parents=[common], help=text)
        check.set_defaults(run=_check, command=name)
        check.add_argument("tag", help="an address, or any other text")
        check.add_argument("--text", action="store_true", help="an address, too, is only text")
        check.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with the rules")
        check.add_argument("--rate", help="a rule, if there is no file: 100/s")
        check.add_argument("--burst", help="beside the rate")
        check.add_argument("--domain", help='which rules ("default")')
        check.add_argument("--scope", help="of a limit at routes: endpoint:login")
        check.add_argument("--cost", type=int, default=1, help="how much to ask for (1)")
    return parser


def _stats(args: argparse.Namespace) -> int:
    found = _tables(args)
    if not found:
        print("no named tables")
    lines = [("table", "buckets", "room", "MB", "")]
    for table in found:
        fault = f"cannot be used: {table.fault}" if table.fault else ""
        size = f"{table.bytes / 1e6:.1f}"
        lines.append((table.name, str(table.buckets), str(table.tags), size, fault))
    _print(lines if found else [])
    for table in found:
        seen = table.cluster
        if seen is not None:
            print(f"\n{table.name}: node {seen.node:016x}, exchanged by process {seen.pid}")
            _print([(name, str(count)) for name, count in seen.counts.items() if count])
    return 0


def _peers(args: argparse.Namespace) -> int:
    seen = _one(args).cluster
    if seen is None:
        print("this table belongs to no cluster")
        return 0
    print(f"node {seen.node:016x}, exchanged by process {seen.pid}")
    lines = [("peer", "address", "state", "heard", "delay", "received", "repaired", "lost")]
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
        for peer in seen.peers
    ]
    _print(lines if seen.peers else [])
    return 0


def _check(args: argparse.Namespace) -> int:
    if (args.config is None) == (args.rate is None):
        raise _Unclear("give the rules: --config FILE, or --rate 100/s")
    source: Any = args.config
    if source is None:
        source = {"rate": args.rate, **({"burst": args.burst} if args.burst else {})}
    # A file may name its table itself.
    table = None if args.config is not None and args.table is None else _where(args, _one(args))
    options = source_options(source, {"domain": args.domain, "table": table})
    native = Middleware(options, application=application_name())
    native.open()
    domain = native.domain()
    tag = (None if args.text else client_address(args.tag)) or os.fsencode(args.tag)
    if args.scope:
        tag = b"%b\0%b" % (os.fsencode(args.scope), tag)
    ask = domain.check if args.command == "check" else domain.peek
    decision = ask(tag, args.cost)
    _print(_told(decision))
    return 0 if decision.allowed else 1


def _told(decision: Decision) -> Iterable[tuple[str, str]]:
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
        raise _Unclear(f"no table {args.table!r}; there are: {_names(found)}")
    return named


def _one(args: argparse.Namespace) -> TableInfo:
    found = _tables(args)
    if len(found) != 1:
        raise _Unclear(f"say which table, --table NAME; there are: {_names(found)}")
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


def _print(lines: Iterable[Sequence[str]]) -> None:
    lines = list(lines)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip())


if __name__ == "__main__":
    sys.exit(main())
