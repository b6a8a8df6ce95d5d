"""Compares the modules for nginx and Apache with limit_req, mod_qos and mod_evasive.

Writes bench/out/servers.json, with figures and with `ratios` (dthrottle over the other) of
instructions per request and bytes per key.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from count import count
from kinds import REPOSITORY, SMALL, Kind
from memory import LIMIT_REQ_BYTES, memory
from speed import speed

MANY = 200 if SMALL else 100_000
ROUNDS = 1 if SMALL else 3
KINDS = {
    "nginx": Kind("nginx", "bare"),
    "nginx_limit_req_1": Kind("nginx", "limit_req"),
    "nginx_ours_1": Kind("nginx", "ours"),
    "nginx_limit_req_100k": Kind("nginx", "limit_req", MANY),
    "nginx_ours_100k": Kind("nginx", "ours", MANY),
    "nginx_limit_req_delay": Kind("nginx", "limit_req", mode="delay"),
    "nginx_ours_delay": Kind("nginx", "ours", mode="delay"),
    "apache": Kind("apache", "bare"),
    "apache_ours": Kind("apache", "ours"),
    "apache_logs": Kind("apache", "bare", logs=True),
    "apache_ours_logs": Kind("apache", "ours", logs=True),
    "apache_mod_qos": Kind("apache", "mod_qos"),
    "apache_mod_evasive": Kind("apache", "mod_evasive"),
}
# Small tables are larger than necessary, so the default of a million keys is measured too.
MEMORY = {
    "nginx_limit_req_100k": Kind("nginx", "limit_req", 20_000 if SMALL else 100_000),
    "nginx_ours_100k": Kind("nginx", "ours", 20_000 if SMALL else 100_000),
    "nginx_ours_1m": Kind("nginx", "ours", 20_000 if SMALL else 1_000_000),
}
# The share of keys that may be evicted, because both lines of a key can be full.
FORGOTTEN = 0.002
MAX_MEMORY = 0.25
# Name, dthrottle, the other, and the maximum of the ratio. None has no maximum.
RATIOS = (
    ("nginx_limit_req_cpu_1", "nginx_ours_1", "nginx_limit_req_1", 1.0),
    ("nginx_limit_req_cpu_100k", "nginx_ours_100k", "nginx_limit_req_100k", 1.0),
    ("apache_bare_cpu", "apache_ours", "apache", 1.03),
    ("nginx_limit_req_cpu_delay", "nginx_ours_delay", "nginx_limit_req_delay", None),
    ("apache_bare_cpu_logs", "apache_ours_logs", "apache_logs", None),
)


def measure_memory(figures: dict[str, float]) -> float:
    """Return the ratio of bytes per key."""
    for name, kind in MEMORY.items():
        each, forgotten = memory(kind)
        figures[f"{name}_bytes_per_key"] = round(each, 2)
        figures[f"{name}_forgotten"] = forgotten
        print(f"{name:24} {each:10.1f} bytes a key, {forgotten} forgotten", flush=True)
        if forgotten > kind.keys * FORGOTTEN:
            raise SystemExit(f"{name}: {forgotten} keys were forgotten")
    return round(figures["nginx_ours_1m_bytes_per_key"] / LIMIT_REQ_BYTES, 4)


def main() -> int:
    """Measure, print, and write the file."""
    figures: dict[str, float] = {}
    ratios = {"nginx_limit_req_memory": measure_memory(figures)}
    missed = int(ratios["nginx_limit_req_memory"] > MAX_MEMORY)
    instructions = {}
    for name, kind in KINDS.items():
        instructions[name] = count(kind)
        print(f"{name:24} {instructions[name]:10.0f} instructions a request", flush=True)
    cpu: dict[str, list[float]] = {name: [] for name in KINDS}
    rate: dict[str, list[float]] = {name: [] for name in KINDS}
    for _ in range(ROUNDS):
        for name, kind in KINDS.items():
            used, requests = speed(kind)
            cpu[name].append(used)
            rate[name].append(requests)
    for name in KINDS:
        figures[f"{name}_instructions"] = round(instructions[name], 1)
        figures[f"{name}_cpu_us"] = round(statistics.median(cpu[name]), 2)
        figures[f"{name}_requests_per_s"] = round(statistics.median(rate[name]))
        print(f"{name:24} {figures[f'{name}_cpu_us']:8.2f} us CPU a request, "
              f"{figures[f'{name}_requests_per_s']:7} requests/s")  # fmt: skip
    print(
        f"{'nginx_limit_req_memory':26} {ratios['nginx_limit_req_memory']:.4f}, at most {MAX_MEMORY}"
    )
    for name, ours, theirs, most in RATIOS:
        ratios[name] = round(instructions[ours] / instructions[theirs], 4)
        missed += most is not None and ratios[name] > most
        print(f"{name:26} {ratios[name]:.4f}" + ("" if most is None else f", at most {most}"))
    out = REPOSITORY / ("target/bench/small" if SMALL else "bench/out") / "servers.json"
    Path(out.parent).mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"ratios": ratios, "figures": figures}, indent=2) + "\n")
    # In a short run the ratios are meaningless.
    return 1 if missed and not SMALL else 0


if __name__ == "__main__":
    sys.exit(main())
