"""Cases for web.json: requests to HTTP middleware, with the expected decisions and responses.

Many steps state results that the author expects, and the model must agree. It adds the others.
"""

from __future__ import annotations

from rates import HOUR, MS, S
from web import Answer, Middleware, Request

Entry = dict[str, object]
Step = dict[str, object]

OTHER = "198.51.100.9"
IPV6 = "2001:db8:1:2:3:4:5:6"


class Case:
    """A middleware, and the requests that it receives."""

    def __init__(self, name: str, why: str, /, **options: object) -> None:
        self.name, self.why, self.options = name, why, options
        self.middleware = Middleware(options)
        self.steps: list[Step] = []
        self.answers: list[Answer] = []

    def request(self, at: int, **rest: object) -> None:
        """Send a request, and compare its decision with the arguments `expect_...`."""
        expected = {key[7:]: rest.pop(key) for key in list(rest) if key.startswith("expect_")}
        answer = self.middleware.decide(at, Request(**rest))  # type: ignore[arg-type]
        fields = dict(answer.fields)
        for key, value in expected.items():
            got = fields.get(key.replace("_", "-")) if key[0].isupper() else getattr(answer, key)
            assert got == value, f"{self.name}: {key} is {got!r} at {at}, not {value!r}"
        expect: Step = {"action": answer.action}
        if answer.delay_ns:
            expect["delay_ns"] = answer.delay_ns
        if answer.action == "refuse":
            expect |= {"status": answer.status, "body": answer.body.decode()}
        if answer.action != "none":
            expect |= {"fields": answer.fields, "tag_hex": answer.tag.hex()}
            expect["taken"] = answer.taken
        self.steps.append({"at_ns": at, "request": rest, "expect": expect})
        self.answers.append(answer)

    def end_delay(self, at: int, step: int, *, gone: bool = False) -> None:
        """End the delay of the request of an earlier step."""
        self.middleware.end_delay(at, self.answers[step], gone)
        self.steps.append({"at_ns": at, "end_delay": step, "gone": gone})
        self.answers.append(self.answers[step])

    def finish(self, at: int, step: int, *, success: bool) -> None:
        """End the response to the request of an earlier step."""
        self.middleware.finish(at, self.answers[step], success)
        self.steps.append({"at_ns": at, "finish": step, "success": success})
        self.answers.append(self.answers[step])

    def entry(self) -> Entry:
        return {"name": self.name, "why": self.why, "options": self.options, "steps": self.steps}


def web() -> dict[str, list[Entry]]:
    cases = [*headers(), *refusals(), *clients(), *tags(), *costs(), *delayed(), *labels()]
    assert len({case.name for case in cases}) == len(cases)
    return {"cases": [case.entry() for case in cases], "bad": bad()}


TWO: list[object] = [
    {"name": "burst", "rate": "10/s", "burst": 2},
    {"name": "slow", "rate": "1/minute", "burst": 3},
]


def headers() -> list[Case]:
    cases = []
    for kind in ("standard", "draft-7", "draft-6", "x-ratelimit", "none", True, False, "draft-8"):
        one = Case(f"headers {kind}", "the fields of one rule", rate="2/s", headers=kind)
        for at in (0, 0, 0, 250 * MS, S, HOUR + 1):
            one.request(at)
        several = Case(f"headers {kind}, two rules", "the deciding rule", rules=TWO, headers=kind)
        for at in (0, 0, 0, S, S, 120 * S, 130 * S):
            several.request(at)
        cases += [one, several]
    first = Case(
        "the first response", "one unit is taken from a full bucket", rate="100/s", burst=200
    )
    first.request(
        0,
        expect_RateLimit_Policy='"default";q=200;w=2',
        expect_RateLimit='"default";r=199;t=1',
        expect_action="pass",
    )
    slow = Case("a slow rate", "t is the time of one unit", rate="1/hour", burst=5)
    slow.request(0, expect_RateLimit='"default";r=4;t=3600')
    slow.request(1800 * S, expect_RateLimit='"default";r=3;t=2700')
    slow.request(2 * HOUR, expect_RateLimit='"default";r=4;t=3600')
    fine = Case(
        "a rate that is not whole",
        "times are rounded up, but 1 ns above a second is ignored",
        rate="3/s",
    )
    for at in (0, 333_333_333, 333_333_334, 666_666_667, S):
        fine.request(at)
    named = Case(
        "a rule's name",
        "characters that are not printable ASCII are percent-encoded",
        rules=[{"name": 'gr\u00fc\u00dfe "\\ \U0001f600', "rate": "1/s"}],
    )
    named.request(0, expect_RateLimit='"gr%C3%BC%C3%9Fe \\"\\\\ %F0%9F%98%80";r=0;t=1')
    named.request(0, expect_action="refuse")
    legacy = Case(
        "legacy fields", "legacy fields follow the standard fields", rate="2/s", legacy_headers=True
    )
    legacy.request(1_700_000_000 * S)
    legacy.request(1_700_000_000 * S + 500 * MS, expect_X_RateLimit_Reset="1700000002")
    domain = Case(
        "a domain's name",
        "a single rule has the name of its domain",
        rate="2/s",
        domain="login page",
    )
    domain.request(0, expect_RateLimit='"login page";r=1;t=1')
    large = Case("a large burst", "integers have up to 15 digits", rate="1000000000/s", burst=2**40)
    large.request(0, expect_RateLimit=f'"default";r={2**40 - 1};t=1')
    return [*cases, first, slow, fine, named, legacy, domain, large]


def refusals() -> list[Case]:
    cases = []
    bodies: dict[str, object] = {
        "text": "slow down \u00e9",
        "an object": {"error": "too many", "n": [1, True, None, '\u00e9\n"\\']},
        "a problem": "problem+json",
    }
    for name, body in bodies.items():
        case = Case(f"body: {name}", "the body of a refusal", rate="1/s", body=body, status=503)
        case.request(0)
        case.request(0, expect_action="refuse", expect_status=503, expect_Retry_After="1")
        cases.append(case)
    later = Case(
        "retry after",
        "Retry-After is in whole seconds, rounded up, and at least 1",
        rate="1/minute",
    )
    later.request(0)
    later.request(0, expect_Retry_After="60")
    later.request(S, expect_Retry_After="59")
    later.request(S + 1, expect_Retry_After="59")
    later.request(60 * S - 1, expect_Retry_After="1")
    later.request(60 * S, expect_action="pass")
    silent = Case("no Retry-After", "a refusal has no Retry-After", rate="1/s", retry_after=False)
    silent.request(0, expect_action="pass")
    silent.request(0, expect_action="refuse")
    bare = Case(
        "no field at all",
        "a refusal has neither RateLimit fields nor Retry-After",
        rate="1/s",
        headers="none",
        retry_after=False,
    )
    bare.request(0)
    bare.request(0, expect_action="refuse")
    kept = Case("Retry-After by option", "true is the default", rate="1/s", retry_after=True)
    kept.request(0)
    kept.request(0, expect_Retry_After="1")
    problem = Case(
        "a problem of two rules",
        "the body names the rule that refuses",
        rules=TWO,
        body="problem+json",
    )
    for _ in range(3):
        problem.request(0)
    hammer = Case(
        "charge_refused",
        "the fields include the charge for the refusal",
        rate="1/s",
        charge_refused=True,
    )
    for at in (0, 0, 0, 500 * MS):
        hammer.request(at)
    dry = Case("dry run", "all pass, and fields show refusals", rate="1/s", dry_run=True)
    for at in (0, 0, S):
        dry.request(at, expect_action="pass")
    return [*cases, later, silent, bare, kept, problem, hammer, dry]


def clients() -> list[Case]:
    apart = Case("clients", "each address has its own bucket", rate="1/minute")
    apart.request(0, expect_action="pass")
    apart.request(0, peer="::ffff:203.0.113.7", expect_action="refuse")
    apart.request(0, peer=OTHER, expect_action="pass")
    apart.request(0, peer=IPV6, expect_action="pass")
    apart.request(0, peer="2001:db8:1:2::1", expect_action="refuse")
    apart.request(0, peer="2001:db8:1:3::1", expect_action="pass")
    apart.request(0, forwarded=[OTHER], expect_action="refuse")
    unknown = Case("no address", "requests without an address pass", rate="1/minute")
    for unix in ("", None, "unix", "unix:", "unix:/run/a.sock", "/run/a.sock"):
        unknown.request(0, peer=unix, expect_action="none")
    named = Case("named peers", "a peer that is not an address has a bucket", rate="1/minute")
    named.request(0, peer="testclient", expect_action="pass")
    named.request(0, peer="testclient", expect_action="refuse")
    named.request(0, peer="test", expect_action="pass")
    named.request(0, peer="116.101.115.116", expect_action="pass")  # the bytes of "test"
    behind_name = Case(
        "named proxy",
        "the client behind a proxy that has a name",
        rate="1/minute",
        trusted_proxies=1,
    )
    behind_name.request(0, peer="proxy-1", forwarded=[OTHER], expect_action="pass")
    behind_name.request(0, peer="proxy-1", forwarded=[OTHER], expect_action="refuse")
    behind_name.request(0, peer="proxy-1", expect_action="pass")
    counted = Case(
        "proxies by number",
        "proxies are counted from the right",
        rate="1/minute",
        trusted_proxies=1,
    )
    counted.request(0, peer="10.0.0.1", forwarded=["6.6.6.6, 203.0.113.7"], expect_action="pass")
    counted.request(0, peer="10.0.0.2", forwarded=["203.0.113.7"], expect_action="refuse")
    counted.request(0, peer="10.0.0.2", forwarded=["203.0.113.7", OTHER], expect_action="pass")
    listed = Case(
        "proxies by network",
        "addresses in these networks are proxies",
        rate="1/minute",
        trusted_proxies=["10.0.0.0/8", "unix"],
    )
    listed.request(0, peer="10.0.0.1", forwarded=["6.6.6.6, 203.0.113.7, 10.9.9.9"])
    listed.request(0, peer="", forwarded=["203.0.113.7"], expect_action="refuse")
    listed.request(0, peer=OTHER, forwarded=["203.0.113.7"], expect_action="pass")
    prefix = Case("a prefix", "it determines the bucket", rate="1/minute", ipv6_prefix=48)
    prefix.request(0, peer=IPV6, expect_action="pass")
    prefix.request(0, peer="2001:db8:1:ffff::1", expect_action="refuse")
    exempt = Case(
        "exempt networks",
        "requests from them have no limit",
        rate="1/minute",
        allow=["203.0.113.0/24", "2001:db8::/32"],
    )
    for _ in range(2):
        exempt.request(0, expect_action="none")
        exempt.request(0, peer=IPV6, expect_action="none")
    exempt.request(0, peer=OTHER, expect_action="pass")
    exempt.request(0, peer=OTHER, expect_action="refuse")
    behind = Case(
        "exempt behind a proxy",
        "the client is exempt, not its proxy",
        rate="1/minute",
        allow=["203.0.113.7"],
        trusted_proxies=1,
    )
    behind.request(0, peer="10.0.0.1", forwarded=["203.0.113.7"], expect_action="none")
    behind.request(0, peer="203.0.113.7", forwarded=[OTHER], expect_action="pass")
    scopes = Case("scopes", "each scope has its own buckets", rate="1/minute")
    scopes.request(0, scope="a", expect_action="pass")
    scopes.request(0, scope="b", expect_action="pass")
    scopes.request(0, scope="a", expect_action="refuse")
    return [apart, unknown, named, behind_name, counted, listed, prefix, exempt, behind, scopes]


def tags() -> list[Case]:
    header = Case(
        "a header",
        "the tag is the header, or the address without it",
        rate="1/minute",
        tag="header:X-Api-Key",
    )
    header.request(0, tag="alice", expect_action="pass")
    header.request(0, tag="alice", peer=OTHER, expect_action="refuse")
    header.request(0, tag="bob", expect_action="pass")
    header.request(0, expect_action="pass")
    header.request(0, expect_action="refuse")
    header.request(0, tag="", expect_action="refuse")
    header.request(0, peer="", expect_action="pass")
    header.request(0, peer=None, expect_action="refuse")
    header.request(0, peer="testclient", expect_action="pass")
    header.request(0, peer="testclient", expect_action="refuse")
    exempt = Case(
        "exempt tags",
        "requests with them have no limit",
        rate="1/minute",
        tag="header:X-Api-Key",
        allow=["root", OTHER],
    )
    exempt.request(0, tag="root", expect_action="none")
    exempt.request(0, tag="root", expect_action="none")
    exempt.request(0, tag="alice", peer=OTHER, expect_action="none")
    exempt.request(0, tag="alice", expect_action="pass")
    return [header, exempt]


def costs() -> list[Case]:
    fixed = Case("a fixed cost", "each request has this cost", rate="10/s", cost=4)
    for at in (0, 0, 0, 200 * MS):
        fixed.request(at)
    given = Case("costs of requests", "a cost can be 0", rate="10/s", tag="header:X-Api-Key")
    given.request(0, tag="a", cost=0, expect_action="pass", expect_taken=0)
    given.request(0, tag="a", cost=10, expect_action="pass")
    given.request(0, tag="a", cost=0, expect_action="pass")
    given.request(0, tag="a", cost=1, expect_action="refuse")
    debt = Case("a cost above the burst", "passes and leaves a debt", rate="1/s", burst=5)
    debt.request(0, cost=12, expect_action="pass", expect_taken=12)
    debt.request(0, cost=1, expect_action="refuse", expect_Retry_After="8")
    debt.request(11 * S, cost=12, expect_action="refuse", expect_Retry_After="1")
    debt.request(12 * S, cost=12, expect_action="pass")
    several = Case("debt under two rules", "each rule needs its own burst at most", rules=TWO)
    several.request(0, cost=3, expect_action="pass")
    several.request(200 * MS, cost=1, expect_action="refuse")
    return [fixed, given, debt, several]


def delayed() -> list[Case]:
    waits = Case("delayed requests", "each request waits until its turn", rate="1/s", max_delay=2)
    waits.request(0, expect_action="pass")
    waits.request(0, expect_action="delay", expect_delay_ns=S)
    waits.request(0, expect_action="delay", expect_delay_ns=2 * S)
    waits.request(0, expect_action="refuse", expect_Retry_After="3")
    waits.end_delay(S, 1)
    waits.end_delay(S, 2, gone=True)
    waits.request(S, expect_action="delay", expect_delay_ns=S)
    waits.end_delay(2 * S, 6)
    cannot = Case("a server that cannot wait", "requests are refused", rate="1/s", max_delay=2)
    cannot.request(0, can_delay=False, expect_action="pass")
    cannot.request(0, can_delay=False, expect_action="refuse")
    full = Case(
        "the most delayed requests",
        "requests above max_delayed are refused",
        rate="1/s",
        max_delay=9,
        max_delayed=1,
    )
    full.request(0)
    full.request(0, expect_action="delay")
    full.request(0, peer=OTHER, expect_action="pass")
    full.request(0, expect_action="refuse", expect_Retry_After="2")
    full.end_delay(S, 1)
    full.request(S, expect_action="delay")
    full.end_delay(2 * S, 5)
    slow = Case(
        "delayed refusals",
        "throttle_milliseconds delays a refusal",
        rate="1/minute",
        throttle_milliseconds=500,
    )
    slow.request(0)
    slow.request(0, expect_action="refuse", expect_delay_ns=500 * MS)
    slow.end_delay(500 * MS, 1)
    slow.request(500 * MS, can_delay=False, expect_action="refuse", expect_delay_ns=0)
    failed = Case(
        "failed requests",
        "failed requests are refunded",
        rate="2/minute",
        skip_failed_requests=True,
    )
    failed.request(0)
    failed.finish(0, 0, success=False)
    failed.request(0, expect_RateLimit='"default";r=1;t=30')
    failed.finish(0, 2, success=True)
    failed.request(0, expect_RateLimit='"default";r=0;t=30')
    good = Case(
        "successful requests",
        "successful requests are refunded",
        rate="2/minute",
        skip_successful_requests=True,
    )
    good.request(0)
    good.finish(0, 0, success=True)
    good.request(0, expect_RateLimit='"default";r=1;t=30')
    good.finish(0, 2, success=False)
    good.request(0, expect_RateLimit='"default";r=0;t=30')
    return [waits, cannot, full, slow, failed, good]


def labels() -> list[Case]:
    """Return cases for default names of domains. The requests match the methods and routes."""
    both = Case(
        "methods and routes",
        "methods and routes name the domain",
        rate="2/s",
        methods=["POST"],
        routes=["/login", "/api/.*"],
    )
    both.request(0, expect_RateLimit='"POST /login /api/.*";r=1;t=1')
    gets = Case("GET and HEAD", "GET includes HEAD", rate="2/s", methods=["PUT", "GET"])
    gets.request(0, expect_RateLimit='"GET HEAD PUT";r=1;t=1')
    return [both, gets]


def bad() -> list[Entry]:
    """Return wrong options, each with words that its error message contains."""

    def case(why: str, field: str, options: Entry, *says: str) -> Entry:
        return {"why": why, "field": field, "options": options, "says": list(says)}

    rate: Entry = {"rate": "10/s"}
    return [
        case(
            "a fixed cost that never passes without debt",
            "cost",
            rate | {"cost": 11},
            "at most 10",
            "11",
        ),
        case("a negative cost", "cost", rate | {"cost": -1}, "0 or more", "-1"),
        case("no rate", "rate", {"status": 429}, "missing"),
        case("a status of success", "status", rate | {"status": 200}, "400 to 599", "200"),
        case("a status that is not whole", "status", rate | {"status": 429.5}, "whole"),
        case("methods in small letters", "methods", rate | {"methods": ["get"]}, '"GET"'),
        case("no methods", "methods", rate | {"methods": []}, "empty"),
        case("a method without a list", "methods", rate | {"methods": "GET"}, "list"),
        case("an unknown header format", "headers", rate | {"headers": "draft7"}, "draft-7"),
        case("a name in allow", "allow", rate | {"allow": ["root"]}, "address", "root"),
        case("a network with host bits", "allow", rate | {"allow": ["10.1.2.3/8"]}, "10.0.0.0/8"),
        case("a tag of an unknown kind", "tag", rate | {"tag": "cookie:x"}, "header:X-Api-Key"),
        case("a delay of a day", "max_delay", rate | {"max_delay": 86_400}, "3600"),
        case("a negative delay", "max_delay", rate | {"max_delay": -1}, "0"),
        case("too many delayed requests", "max_delayed", rate | {"max_delayed": 1e9}, "1000000"),
        case("a number as body", "body", rate | {"body": 5}, "text"),
        case("a number for a flag", "retry_after", rate | {"retry_after": 5}, "true or false"),
        case("text for a flag", "dry_run", rate | {"dry_run": "yes"}, "true or false"),
        case("a misspelled option", "max_deleyed", rate | {"max_deleyed": 1}, "max_delayed"),
        case("another library's name", "key_func", rate | {"key_func": "x"}, "tag"),
        case("an empty domain", "domain", rate | {"domain": ""}, "empty"),
        case("a bad rate", "rate", {"rate": "10/fortnight"}, "fortnight"),
        case("a bad burst", "burst", rate | {"burst": 0}, "burst"),
    ]
