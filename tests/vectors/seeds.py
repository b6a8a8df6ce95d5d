"""Writes seeds for fuzzing. Each is a datagram of the vectors, or the body of one.

python3 tests/vectors/seeds.py FOLDER

Each body follows a byte for its kind and one for its flags, which
core/tests/hostile/datagram.rs reads first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from list_dropped import bodies, dropped
from list_protocol import KEYS, later, written
from wire_keys import KINDS, unseal


def seeds() -> list[bytes]:
    datagrams = [bytes.fromhex(str(each["hex"])) for each in [*written(), *later(), *dropped()]]
    out = [*datagrams]
    for each in [*written(), *later()]:
        envelope, body = unseal(KEYS[str(each["keys"])], bytes.fromhex(str(each["hex"])))
        out.append(bytes([envelope.kind, envelope.flags]) + body)
    out += [bytes([KINDS.index(kind) + 1, flags]) + body for _, kind, flags, body in bodies()]
    return out


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (folder / f"seed-{number:03}").write_bytes(seed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
