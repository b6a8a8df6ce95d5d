"""What the modules cost in nginx and Apache, beside what users would pick instead.

Writes bench/out/servers.json: `ratios` of instructions a request, ours over theirs, and figures.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from count import count
from kinds import REPOSITORY, Kind
from speed import speed

MANY = 100_000
ROUNDS = 3
KINDS = {
    "nginx": Kind("nginx", "bare"),
    "nginx_limit_req_1": Kind("nginx", "limit_req"),
    "nginx_ours_1": Kind("nginx", "ours"),
    "nginx_limit_req_100k": Kind("nginx", "limit_req", MANY),
    "nginx_ours_100k": Kind("nginx", "ours", MANY),
    "apache": Kind("apache", "bare"),
    "apache_ours": Kind("apache", "ours"),
    "apache_mod_qos": Kind("apache", "mod_qos"),
    "apache_mod_evasive": Kind("apache", "mod_evasive"),
}
# Name, ours, theirs, what must be reached.
RATIOS = (
    ("nginx_limit_req_cpu_1", "nginx_ours_1", "nginx_limit_req_1", 1.0),
    ("nginx_limit_req_cpu_100k", "nginx_ours_100k", "nginx_limit_req_100k", 1.0),
    ("apache_bare_cpu", "apache_ours", "apache", 1.03),
)


def main() -> int:
    """Measure, show and write."""
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
    figures = {}
    for name in KINDS:
        figures[f"{name}_instructions"] = round(instructions[name], 1)
        figures[f"{name}_cpu_us"] = round(statistics.median(cpu[name]), 2)
        figures[f"{name}_requests_per_s"] = round(statistics.median(rate[name]))
        print(f"{name:24} {figures[f'{name}_cpu_us']:8.2f} us CPU a request, "
              f"{figures[f'{name}_requests_per_s']:7} requests/s")  # fmt: skip
    ratios, missed = {}, 0
    for name, ours, theirs, most in RATIOS:
        ratios[name] = round(instructions[ours] / instructions[theirs], 4)
        missed += ratios[name] > most
        print(f"{name:26} {ratios[name]:.4f}, at most {most}")
    out = REPOSITORY / "bench" / "out" / "servers.json"
    Path(out.parent).mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"ratios": ratios, "figures": figures}, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
