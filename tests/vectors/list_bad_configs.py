"""Wrong configurations in configs.json: the field and line of the error, and parts of its message.

The line of the wrong value or the unknown key ends with `#!` here. The mark is removed.
"""

from __future__ import annotations

from config import load
from list_configs import Entry, many_rules
from shapes import BadConfig

MARK = " #!"
RATE_SAYS = '"100/s"'  # every message about a rate has this example
BURST_SAYS = "whole number"
BOOL_SAYS = "true or false"
LONG = "n" * 256


def bad() -> list[Entry]:
    return [
        *values(),
        *types(),
        *nulls(),
        *shapes(),
        *no_rules(),
        *names(),
        *unknown_keys(),
        *syntax(),
    ]


def case(
    name: str, field: str | None, says: list[str], toml: str | None, config: Entry | None
) -> Entry:
    """Return a case. Without `config` it is only TOML, without `toml` only an object."""
    entry: Entry = {"name": name}
    if toml is not None:
        marked = [i for i, line in enumerate(toml.split("\n"), 1) if line.endswith(MARK)]
        entry |= {"toml": toml.replace(MARK, ""), "line": marked[0] if marked else None}
    if config is not None:
        entry["object"] = config
        try:
            load(config)
        except BadConfig as error:
            assert str(error) == field, f"{name}: {error}, not {field}"
        else:
            raise AssertionError(f"{name} is good")
    return entry | {"field": field, "says": [words for words in says if words]}


# The formatter would split each case into eight lines.
# fmt: off


def values() -> list[Entry]:
    bad_rates = ["", "abc", "10/fortnight", "-1/s", "0/s", "100/s/s", "1000000001/s", "1/101 years"]
    made = [
        case(f"rate {text!r}", "rate", [text, RATE_SAYS], f'rate = "{text}" #!\n', {"rate": text})
        for text in bad_rates
    ]
    made += [
        case(f"rate {number}", "rate", [str(number), RATE_SAYS],
             f"\n# too odd\nrate = {number} #!\n", {"rate": number})
        for number in (0, -1, -0.5, 1000000001)
    ]
    made += [
        case(f"rate {word}", "rate", [RATE_SAYS], f"rate = {word} #!\n", None)
        for word in ("nan", "inf", "-inf", "2026-01-01")
    ]
    made += [
        case(f"burst {number}", "burst", [str(number), BURST_SAYS],
             f'rate = "1/s"\nburst = {number} #!\n', {"rate": "1/s", "burst": number})
        for number in (0, -1, 1.5, 2**40 + 1)
    ]
    made += [
        case(f"burst {text!r}", "burst", [text, BURST_SAYS],
             f'burst = "{text}" #!\nrate = "1/s"\n', {"rate": "1/s", "burst": text})
        for text in ("", "abc", "0.1ms", "-1s", "10/s")
    ]
    made += [
        case("burst is a number as text", "burst",
             ['or a duration such as "10s", got the text "10"'],
             'rate = "1/s"\nburst = "10" #!\n', {"rate": "1/s", "burst": "10"}),
        case("burst of a rule is a number as text", "rules[0].burst", ['got the text " 10 "'],
             'rules = [{ rate = 1, burst = " 10 " }] #!\n',
             {"rules": [{"rate": 1, "burst": " 10 "}]}),
    ]
    made += [
        case("rate in a domain", "domains.api.rate", ["10/fortnight", RATE_SAYS],
             'rate = "1/s"\n\n[domains.api]\nburst = 3\nrate = "10/fortnight" #!\n',
             {"rate": "1/s", "domains": {"api": {"burst": 3, "rate": "10/fortnight"}}}),
        case("rate in a list of rules", "rules[1].rate", ["x/s", RATE_SAYS],
             'rules = [\n  { rate = "1/s" },\n  { name = "b", rate = "x/s" }, #!\n]\n',
             {"rules": [{"rate": "1/s"}, {"name": "b", "rate": "x/s"}]}),
        case("rate in a rule of a domain", "domains.api.rules[0].rate", ["0", RATE_SAYS],
             "[domains.web]\nrate = 1\n[[domains.api.rules]]\nname = 'a'\nrate = 0 #!\n",
             {"domains": {"web": {"rate": 1}, "api": {"rules": [{"name": "a", "rate": 0}]}}}),
        case("burst in a rule of a domain", "domains.api.rules[2].burst", ["-7", BURST_SAYS],
             "[domains.api]\nrules = [\n  {rate=1},\n  {rate=1},\n  {rate=1, burst=-7}, #!\n]\n",
             {"domains": {"api": {"rules": [{"rate": 1}, {"rate": 1}, {"rate": 1, "burst": -7}]}}}),
        case("CRLF lines are counted", "burst", ["0", BURST_SAYS],
             "# one\r\n# two\r\nrate = 1\r\nburst = 0 #!\n", {"rate": 1, "burst": 0}),
    ]
    return made


def types() -> list[Entry]:
    return [
        case("rate is a bool", "rate", [RATE_SAYS], "rate = true #!\n", {"rate": True}),
        case("rate is a list", "rate", [RATE_SAYS], "rate = [] #!\n", {"rate": []}),
        case("rate is a table", "rate", [RATE_SAYS], "rate = {} #!\n", {"rate": {}}),
        case("burst is a bool", "burst", [BURST_SAYS], "rate = 1\nburst = false #!\n",
             {"rate": 1, "burst": False}),
        case("burst is a list", "burst", [BURST_SAYS], "rate = 1\nburst = [5] #!\n",
             {"rate": 1, "burst": [5]}),
        case("dry_run is text", "dry_run", ["yes", BOOL_SAYS], 'rate = 1\ndry_run = "yes" #!\n',
             {"rate": 1, "dry_run": "yes"}),
        case("dry_run is a number", "dry_run", ["1", BOOL_SAYS], "dry_run = 1 #!\n",
             {"dry_run": 1}),
        case("dry_run of a domain", "domains.api.dry_run", ["on", BOOL_SAYS],
             '[domains.api]\ndry_run = "on" #!\n', {"domains": {"api": {"dry_run": "on"}}}),
        case("charge_refused is a number", "charge_refused", ["0", BOOL_SAYS],
             "rate = 1\ncharge_refused = 0 #!\n", {"rate": 1, "charge_refused": 0}),
        case("charge_refused of a rule", "rules[0].charge_refused", ["no", BOOL_SAYS],
             'rules = [{ rate = 1, charge_refused = "no" }] #!\n',
             {"rules": [{"rate": 1, "charge_refused": "no"}]}),
        case("rules is a number", "rules", [], "rules = 3 #!\n", {"rules": 3}),
        case("rules is text", "rules", [], 'rules = "100/s" #!\n', {"rules": "100/s"}),
        case("rules is a table", "rules", [], "rules = { rate = 1 } #!\n", {"rules": {"rate": 1}}),
        case("a rule is a number", "rules[0]", [], "rules = [3] #!\n", {"rules": [3]}),
        case("a rule is text", "domains.api.rules[1]", [],
             '[domains.api]\nrules = [\n  { rate = 1 },\n  "100/s", #!\n]\n',
             {"domains": {"api": {"rules": [{"rate": 1}, "100/s"]}}}),
        case("a rule's name is a number", "rules[0].name", [],
             "rules = [{ name = 3, rate = 1 }] #!\n", {"rules": [{"name": 3, "rate": 1}]}),
        case("domains is a list", "domains", [], "domains = [] #!\n", {"domains": []}),
        case("domains is text", "domains", [], 'domains = "api" #!\n', {"domains": "api"}),
        case("a domain is a number", "domains.api", [], "rate = 1\n[domains]\napi = 3 #!\n",
             {"rate": 1, "domains": {"api": 3}}),
        case("a domain is a list", "domains.api", [], "domains.api = [{ rate = 1 }] #!\n",
             {"domains": {"api": [{"rate": 1}]}}),
    ]


def nulls() -> list[Entry]:
    return [
        case("rate is null", "rate", [RATE_SAYS], None, {"rate": None}),
        case("burst is null", "burst", [BURST_SAYS], None, {"rate": 1, "burst": None}),
        case("dry_run is null", "dry_run", [BOOL_SAYS], None, {"dry_run": None}),
        case("charge_refused is null", "charge_refused", [BOOL_SAYS], None,
             {"rate": 1, "charge_refused": None}),
        case("rules is null", "rules", [], None, {"rules": None}),
        case("a rule is null", "rules[0]", [], None, {"rules": [None]}),
        case("a rule's name is null", "rules[0].name", [], None,
             {"rules": [{"name": None, "rate": 1}]}),
        case("domains is null", "domains", [], None, {"domains": None}),
        case("a domain is null", "domains.api", [], None, {"domains": {"api": None}}),
    ]


def shapes() -> list[Entry]:
    seventeen = ", ".join(["{ rate = 1 }"] * 17)
    too_many = many_rules([16] * 62 + [9])
    return [
        case("burst without rate", "burst", ["rate"], "burst = 5 #!\n", {"burst": 5}),
        case("charge_refused without rate", "charge_refused", ["rate"],
             "dry_run = true\ncharge_refused = true #!\n",
             {"dry_run": True, "charge_refused": True}),
        case("burst without rate in a domain", "domains.api.burst", ["rate"],
             "rate = 1\n[domains.api]\nburst = 5 #!\n",
             {"rate": 1, "domains": {"api": {"burst": 5}}}),
        case("burst beside rules", "burst", ["rate"],
             "burst = 5 #!\nrules = [{ rate = 1 }]\n", {"burst": 5, "rules": [{"rate": 1}]}),
        case("rate and rules", "rate", ["rate", "rules"],
             "rate = 1 #!\nrules = [{ rate = 2 }]\n", {"rate": 1, "rules": [{"rate": 2}]}),
        case("rate and rules in a domain", "domains.api.rate", ["rate", "rules"],
             "[domains.api]\nrate = 1 #!\nrules = [{ rate = 2 }]\n",
             {"domains": {"api": {"rate": 1, "rules": [{"rate": 2}]}}}),
        case("a rule without rate", "rules[1].rate", ["rate"],
             'rules = [\n  { rate = 1 },\n  { name = "b" }, #!\n]\n',
             {"rules": [{"rate": 1}, {"name": "b"}]}),
        case("an empty rule", "domains.api.rules[0].rate", ["rate"],
             "[domains.api]\nrules = [{}] #!\n", {"domains": {"api": {"rules": [{}]}}}),
        case("seventeen rules", "rules", ["16"], f"rules = [{seventeen}] #!\n",
             {"rules": [{"rate": 1}] * 17}),
        case("seventeen rules in a domain", "domains.api.rules", ["16"],
             f"[domains.api]\nrules = [{seventeen}] #!\n",
             {"domains": {"api": {"rules": [{"rate": 1}] * 17}}}),
        case("a thousand and one rules", "domains", ["1000"], too_many[0].replace("[domains]", "[domains]" + MARK), too_many[1]),
        case("the first of two mistakes", "zebra", ["unknown key"],
             "zebra = 1 #!\napple = 2\n", None),
        case("two definitions of the default domain", "domains.default", ["default"],
             "rate = 1\n[domains.default] #!\nrate = 2\n",
             {"rate": 1, "domains": {"default": {"rate": 2}}}),
        case("two definitions of the default domain, with rules", "domains.default", ["default"],
             "rules = [{ rate = 1 }]\n[domains.api]\nrate = 1\n[domains.default] #!\nrate = 2\n",
             {"rules": [{"rate": 1}], "domains": {"api": {"rate": 1}, "default": {"rate": 2}}}),
    ]


def no_rules() -> list[Entry]:
    """Return configurations without a limit that are not declared unlimited."""
    says = ["rate", 'rate = "unlimited"']
    alone = ['"unlimited"', RATE_SAYS]
    return [
        case("an empty configuration", "rate", says, "", {}),
        case("only a comment", "rate", says, "# nothing yet\n", None),
        case("only dry_run", "rate", says, "dry_run = false\n", {"dry_run": False}),
        case("only a table", "rate", says, "table = { size = 5 }\n", {"table": {"size": 5}}),
        case("no domains and no rules", "rate", says, "domains = {}\n", {"domains": {}}),
        case("a domain without rules", "rate", says, "[domains.free]\n", {"domains": {"free": {}}}),
        case("domains without rules", "rate", says,
             "[domains.free]\n[domains.default]\ndry_run = true\n",
             {"domains": {"free": {}, "default": {"dry_run": True}}}),
        case("unlimited with a burst", "rate", alone, 'rate = "unlimited" #!\nburst = 5\n',
             {"rate": "unlimited", "burst": 5}),
        case("unlimited with charge_refused", "domains.api.rate", alone,
             "[domains.api]\nrate = 'unlimited' #!\ncharge_refused = true\n",
             {"domains": {"api": {"rate": "unlimited", "charge_refused": True}}}),
        case("unlimited in capitals", "rate", ["Unlimited", RATE_SAYS], 'rate = "Unlimited" #!\n',
             {"rate": "Unlimited"}),
        case("an unlimited rule", "rules[1].rate", alone,
             "rules = [\n  { rate = 1 },\n  { rate = 'unlimited', name = 'all' }, #!\n]\n",
             {"rules": [{"rate": 1}, {"rate": "unlimited", "name": "all"}]}),
        case("an unlimited rule alone", "rules[0].rate", alone,
             "rules = [{ rate = 'unlimited' }] #!\n", {"rules": [{"rate": "unlimited"}]}),
        case("unlimited and a rate for the default domain", "domains.default", ["default"],
             "rate = 'unlimited'\n[domains.default] #!\nrate = 2\n",
             {"rate": "unlimited", "domains": {"default": {"rate": 2}}}),
    ]


def names() -> list[Entry]:
    wide = "é" * 128
    return [
        case("two rules with the same name", "rules[1].name", ["a"],
             'rules = [\n  { name = "a", rate = 1 },\n  { name = "a", rate = 2 }, #!\n]\n',
             {"rules": [{"name": "a", "rate": 1}, {"name": "a", "rate": 2}]}),
        case("two rules with the same name in a domain", "domains.api.rules[2].name", ["twin"],
             "[[domains.api.rules]]\nname = 'twin'\nrate = 1\n[[domains.api.rules]]\nrate = 2\n"
             "[[domains.api.rules]]\nrate = 3\nname = 'twin' #!\n",
             {"domains": {"api": {"rules": [
                 {"name": "twin", "rate": 1}, {"rate": 2}, {"rate": 3, "name": "twin"}]}}}),
        case("a name that is the default of another rule", "rules[1].name", ["rule2"],
             'rules = [\n  { name = "rule2", rate = 1 },\n  { rate = 2 }, #!\n]\n',
             {"rules": [{"name": "rule2", "rate": 1}, {"rate": 2}]}),
        case("an empty rule name", "rules[0].name", ["255"],
             'rules = [{ name = "", rate = 1 }] #!\n', {"rules": [{"name": "", "rate": 1}]}),
        case("a rule name of 256 bytes", "rules[0].name", ["255"],
             f'rules = [{{ name = "{LONG}", rate = 1 }}] #!\n',
             {"rules": [{"name": LONG, "rate": 1}]}),
        case("a rule name of 128 letters and 256 bytes", "rules[0].name", ["255"],
             f'rules = [{{ name = "{wide}", rate = 1 }}] #!\n',
             {"rules": [{"name": wide, "rate": 1}]}),
        case("a control character in a rule name", "rules[0].name", ["control"],
             'rules = [{ name = "a\\u0007b", rate = 1 }] #!\n',
             {"rules": [{"name": "a\u0007b", "rate": 1}]}),
        case("a domain name of 256 bytes", f"domains.{LONG}", ["255"],
             f"[domains.{LONG}] #!\nrate = 1\n", {"domains": {LONG: {"rate": 1}}}),
    ]


def unknown_keys() -> list[Entry]:
    say = "unknown key"
    return [
        case("unknown key, similar to rate", "rat", [say, "rate"], 'rat = "1/s" #!\n', {"rat": "1/s"}),
        case("unknown key, similar to dry_run", "dryrun", [say, "dry_run"],
             "rate = 1\n\n# no limits yet\ndryrun = true #!\n", {"rate": 1, "dryrun": True}),
        case("unknown key, similar to domains", "domain", [say, "domains"],
             "[domain] #!\n", {"domain": {}}),
        case("unknown key, similar to no known key", "zzz", [say, "zzz"], "zzz = 1 #!\n", {"zzz": 1}),
        case("unknown key in a domain", "domains.api.brst", [say, "burst"],
             "[domains.api]\nrate = 1\nbrst = 2 #!\n",
             {"domains": {"api": {"rate": 1, "brst": 2}}}),
        case("domains in a domain", "domains.api.domains", [say, "domains"],
             "[domains.api.domains] #!\n", {"domains": {"api": {"domains": {}}}}),
        case("name in a domain", "domains.api.name", [say, "name"],
             "[domains.api]\nname = 'api' #!\nrate = 1\n",
             {"domains": {"api": {"name": "api", "rate": 1}}}),
        case("name at the top", "name", [say, "name"], "name = 'me' #!\nrate = 1\n",
             {"name": "me", "rate": 1}),
        case("unknown key in a rule", "rules[0].rte", [say, "rate"],
             "rules = [{ rte = 1 }] #!\n", {"rules": [{"rte": 1}]}),
        case("unknown key in a rule of a domain", "domains.api.rules[1].nam", [say, "name"],
             "[domains.api]\nrules = [\n  { rate = 1 },\n  { rate = 2, nam = 'b' }, #!\n]\n",
             {"domains": {"api": {"rules": [{"rate": 1}, {"rate": 2, "nam": "b"}]}}}),
        case("dry_run in a rule", "rules[0].dry_run", [say, "dry_run"],
             "[[rules]]\nrate = 1\ndry_run = true #!\n",
             {"rules": [{"rate": 1, "dry_run": True}]}),
        case("a key in capitals", "Rate", [say, "rate"], "Rate = 1 #!\n", {"Rate": 1}),
    ]


def syntax() -> list[Entry]:
    texts = {
        "no value": "rate = #!\n",
        "no equals sign": 'burst = 3\nrate "1/s" #!\n',
        "an unterminated string": '# a\nrate = "1/s #!\n',
        "an unterminated table header": "rate = 1\n\n[domains.api #!\nburst = 3\n",
        "an unquoted text": "rate = 100/s #!\n",
        "a capital True": "rate = 1\ndry_run = True #!\n",
        "an unknown escape": 'rate = "\\q" #!\n',
        "a repeated key": "rate = 1\nburst = 2\nrate = 3 #!\n",
        "a repeated table": "[domains.api]\nrate = 1\n[domains.web]\n[domains.api] #!\nburst = 2\n",
        "a repeated key in a rule": "rules = [\n  { rate = 1, rate = 2 }, #!\n]\n",
        "a control character": "rate = 1\nburst = 2 \u0001 #!\n",
    }
    return [case(f"TOML: {name}", None, [], toml, None) for name, toml in texts.items()]
