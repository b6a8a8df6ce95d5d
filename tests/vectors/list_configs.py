"""Valid configurations in configs.json, each as TOML and as an object, with the resulting rules."""

from __future__ import annotations

from config import load

Entry = dict[str, object]


def good() -> list[Entry]:
    """Return all cases."""
    long_name = "n" * 255
    return [
        made("one rate", 'rate = "100/s"\n', {"rate": "100/s"}),
        made(
            "rate and burst",
            'rate = "100/s"\nburst = 200\n',
            {"rate": "100/s", "burst": 200},
        ),
        made(
            "every key of the short form",
            'rate = "10/s"\nburst = "2s"\ncharge_refused = true\ndry_run = true\n',
            {"rate": "10/s", "burst": "2s", "charge_refused": True, "dry_run": True},
        ),
        made("a number as rate", "rate = 100\n", {"rate": 100}),
        made("a decimal as rate", "rate = 0.5\nburst = 5\n", {"rate": 0.5, "burst": 5}),
        made("a number as text", 'rate = "2.5"\n', {"rate": "2.5"}),
        made("the largest burst", 'rate = "1/s"\nburst = 1_099_511_627_776\n',
             {"rate": "1/s", "burst": 2**40}),
        made("other number formats of TOML", "rate = 1_000\nburst = 0x10\n", {"rate": 1000, "burst": 16}),
        made("other string formats of TOML, and quoted keys", "'rate' = '5 per 2 minutes'\n",
             {"rate": "5 per 2 minutes"}),
        made("CRLF", 'rate = "1/s"\r\nburst = 3\r\n', {"rate": "1/s", "burst": 3}),
        made("no newline at the end", 'rate = "1/s"', {"rate": "1/s"}),
        made("an empty list of rules", "rules = []\n", {"rules": []}),
        made("unlimited", 'rate = "unlimited"\n', {"rate": "unlimited"}),
        made("unlimited in dry run", 'rate = "unlimited"\ndry_run = true\n',
             {"rate": "unlimited", "dry_run": True}),
        made(
            "rules in a list",
            'rules = [\n  { name = "burst", rate = "100/s", burst = 200 },\n'
            '  { name = "day", rate = "10000/day", charge_refused = true },\n]\n',
            {
                "rules": [
                    {"name": "burst", "rate": "100/s", "burst": 200},
                    {"name": "day", "rate": "10000/day", "charge_refused": True},
                ]
            },
        ),
        made(
            "rules as tables",
            '[[rules]]\nrate = "3/s"\n\n[[rules]]\nname = "hour"\nrate = "100/hour"\nburst = 10\n',
            {"rules": [{"rate": "3/s"}, {"name": "hour", "rate": "100/hour", "burst": 10}]},
        ),
        made(
            "default names of rules",
            'rules = [{ rate = 1 }, { name = "mine", rate = 2 }, { rate = 3 }]\n',
            {"rules": [{"rate": 1}, {"name": "mine", "rate": 2}, {"rate": 3}]},
        ),
        made(
            "sixteen rules",
            "rules = [" + ", ".join(["{ rate = 1 }"] * 16) + "]\n",
            {"rules": [{"rate": 1}] * 16},
        ),
        made(
            "names of 255 bytes, not ASCII, with blanks and points",
            f'rules = [{{ name = "{long_name}", rate = 1 }}, {{ name = "pro Tag · 日", rate = 2 }}]\n'
            f'[domains."v1.api"]\nrate = 3\n[domains."{long_name}"]\nrate = 4\n',
            {
                "rules": [{"name": long_name, "rate": 1}, {"name": "pro Tag · 日", "rate": 2}],
                "domains": {"v1.api": {"rate": 3}, long_name: {"rate": 4}},
            },
        ),
        *with_domains(),
    ]  # fmt: skip


def with_domains() -> list[Entry]:
    return [
        made("no domains", "rate = 1\ndomains = {}\n", {"rate": 1, "domains": {}}),
        made(
            "a domain with an empty list of rules",
            "[domains.free]\nrules = []\n",
            {"domains": {"free": {"rules": []}}},
        ),
        made(
            "an unlimited domain",
            "[domains.free]\nrate = 'unlimited'\n",
            {"domains": {"free": {"rate": "unlimited"}}},
        ),
        made(
            "a domain without rules beside one with a rule",
            "[domains.free]\n[domains.api]\nrate = 1\n",
            {"domains": {"free": {}, "api": {"rate": 1}}},
        ),
        made(
            "unlimited beside a domain with a rule",
            'rate = "unlimited"\n[domains.api]\nrate = 1\n',
            {"rate": "unlimited", "domains": {"api": {"rate": 1}}},
        ),
        made(
            "domains as tables",
            'rate = "100/s"\n\n[domains.api]\nrate = "10/s"\nburst = 20\n\n'
            '[domains.login]\ndry_run = true\nrules = [{ name = "tries", rate = "5/minute" }]\n',
            {
                "rate": "100/s",
                "domains": {
                    "api": {"rate": "10/s", "burst": 20},
                    "login": {"dry_run": True, "rules": [{"name": "tries", "rate": "5/minute"}]},
                },
            },
        ),
        made(
            "domains by dotted keys and inline",
            'domains.api.rate = "10/s"\ndomains.login = { rate = "1/s", burst = 2 }\n',
            {"domains": {"api": {"rate": "10/s"}, "login": {"rate": "1/s", "burst": 2}}},
        ),
        made(
            "rules of domains as tables",
            '[[domains.api.rules]]\nrate = "10/s"\n[[domains.api.rules]]\nrate = "100/minute"\n',
            {"domains": {"api": {"rules": [{"rate": "10/s"}, {"rate": "100/minute"}]}}},
        ),
        made(
            "the same rule name in two domains",
            'rules = [{ name = "a", rate = 1 }]\n[domains.api]\nrules = [{ name = "a", rate = 2 }]\n',
            {
                "rules": [{"name": "a", "rate": 1}],
                "domains": {"api": {"rules": [{"name": "a", "rate": 2}]}},
            },
        ),
        made(
            "default among the domains",
            '[domains.default]\nrate = "7/s"\n[domains.api]\nrate = "8/s"\n',
            {"domains": {"default": {"rate": "7/s"}, "api": {"rate": "8/s"}}},
        ),
        made(
            "default among the domains, dry_run at the top",
            'dry_run = true\n[domains.default]\nrate = "7/s"\n',
            {"dry_run": True, "domains": {"default": {"rate": "7/s"}}},
        ),
        made(
            "a thousand rules",
            *many_rules([16] * 62 + [8]),
            only=("default", "d0", "d62"),
        ),
    ]


def many_rules(sizes: list[int]) -> tuple[str, Entry]:
    lines = [f"d{i}.rules=[{','.join(['{rate=1}'] * n)}]" for i, n in enumerate(sizes)]
    tables = {f"d{i}": {"rules": [{"rate": 1}] * n} for i, n in enumerate(sizes)}
    return "[domains]\n" + "\n".join(lines) + "\n", {"domains": tables}


def made(name: str, toml: str, config: Entry, only: tuple[str, ...] = ()) -> Entry:
    """Return a case with the rules of every domain, or of those named in `only`."""
    rules = {
        domain: [{"name": rule.name, "limit": rule.burst} for rule in made_of.rules]
        for domain, made_of in load(config).items()
        if not only or domain in only
    }
    return {"name": name, "toml": toml, "object": config, "domains": rules}


def limited(name: str, toml: str, config: Entry) -> Entry:
    """Return a case for a key that is not about rules. A rule is added if it has none."""
    if "rate" in config or "domains" in config:
        return made(name, toml, config)
    return made(name, "rate = 1\n" + toml, {"rate": 1, **config})
