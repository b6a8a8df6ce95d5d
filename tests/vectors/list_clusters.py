"""Cases for the key `cluster` in configs.json.

Every language opens the good cases, some of them several times at once, so these nodes listen on
any free port of this machine. The core's own tests check the defaults and other addresses.
"""

from __future__ import annotations

import json

from list_bad_configs import BOOL_SAYS, case
from list_configs import Entry, limited

HERE = "127.0.0.1:0"
SECRET = "0123456789abcdef"
KEYS = ["the first packet key", "the second packet key"]


def good() -> list[Entry]:
    return [
        limited("a cluster on this machine", f'rate = 1\n[cluster]\nname = "web"\nlisten = "{HERE}"\n',
             {"rate": 1, "cluster": {"name": "web", "listen": HERE}}),
        limited(
            "a cluster with most keys",
            f'[cluster]\nname = "web"\nsecret = "{SECRET}"\npacket_keys = ["{KEYS[0]}", "{KEYS[1]}"]\n'
            f'without_secret = false\nlisten = "{HERE}"\nadvertise = "127.0.0.1:0"\n'
            'peers = ["127.0.0.1", "127.0.0.2:7373", "localhost:7374"]\nperiod = "50ms"\n'
            'reports = "periodic"\ntolerance = "20 ms"\npacing = true\nbusy = true\nretention = "1 minute"\n'
            'retention_bytes = "1 MiB"\n',
            {
                "cluster": {
                    "name": "web", "secret": SECRET, "packet_keys": KEYS, "without_secret": False,
                    "listen": HERE, "advertise": "127.0.0.1:0",
                    "peers": ["127.0.0.1", "127.0.0.2:7373", "localhost:7374"], "period": "50ms",
                    "reports": "periodic", "tolerance": "20 ms", "pacing": True, "busy": True, "retention": "1 minute",
                    "retention_bytes": "1 MiB",
                }
            },
        ),
        limited(
            "a cluster with multicast",
            f'[cluster]\nname = "web"\nsecret = "{SECRET}"\nlisten = "{HERE}"\npeers = []\n'
            'multicast = "239.73.73.73:7373"\ninterface = "127.0.0.1"\nmulticast_ttl = 0\n',
            {
                "cluster": {
                    "name": "web", "secret": SECRET, "listen": HERE, "peers": [],
                    "multicast": "239.73.73.73:7373", "interface": "127.0.0.1", "multicast_ttl": 0,
                }
            },
        ),
        *[one(f"cluster {key} {value!r}", {key: value})
          for key, value in [
              ("name", "Wolke 日 7"), ("name", "n" * 255), ("secret", "ä" * 8), ("secret", "s" * 4096),
              ("without_secret", True), ("listen", "127.0.0.9:0"),
              ("listen", "[::ffff:127.0.0.1]:0"), ("advertise", "127.0.0.1:65535"),
              ("peers", []), ("peers", ["LOCALHOST"]), ("peers", ["[::ffff:127.0.0.1]:1"]),
              ("peers", ["127.0.0.1:1"] * 1000), ("period", "5ms"), ("period", "10 seconds"),
              ("period", "9.5s"), ("reports", "eager"), ("tolerance", "auto"), ("tolerance", "0s"), ("tolerance", "1 min"),
              ("retention", "1s"), ("retention", "10min"), ("retention_bytes", 64000),
              ("retention_bytes", "64 KB"), ("retention_bytes", "1000000000 B"), ("pacing", False), ("busy", False),
          ]],
        *[limited(f"a cluster with a table of size {size}",
               f'cluster = {{ name = "web", listen = "{HERE}" }}\n'
               f"table = {{ private = true, size = {shown} }}\n",
               {"cluster": {"name": "web", "listen": HERE},
                "table": {"private": True, "size": size}})
          for size, shown in ((1, "1"), ("5 MB", '"5 MB"'))],
        limited("a cluster before domains",
             f'[cluster]\nname = "web"\nlisten = "{HERE}"\n[domains.api]\nrate = 5\n',
             {"cluster": {"name": "web", "listen": HERE}, "domains": {"api": {"rate": 5}}}),
    ]  # fmt: skip


def toml_of(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(toml_of(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def lines(keys: Entry) -> str:
    return "".join(f"{key} = {toml_of(value)}\n" for key, value in keys.items())


def one(name: str, keys: Entry) -> Entry:
    cluster = {"name": "web", "listen": HERE} | keys
    return limited(name, "[cluster]\n" + lines(cluster), {"cluster": cluster})


def wrong(
    key: str, value: object, says: list[str], beside: Entry | None = None, at: str = ""
) -> Entry:
    """Return a case with a wrong value. `at` is the position in the value, such as `[1]`."""
    beside = {"name": "web"} | (beside or {})
    beside.pop(key, None)
    toml = None if value is None else f"[cluster]\n{lines(beside)}{key} = {toml_of(value)} #!\n"
    shown = repr(value) if len(repr(value)) < 60 else f"of {len(str(value))} letters"
    name = f"cluster {key}{at} {shown}" + "".join(
        f", {other}" for other in beside if other != "name"
    )
    return case(name, f"cluster.{key}{at}", says, toml, {"cluster": beside | {key: value}})


def bad() -> list[Entry]:
    return [
        *shapes(), *kinds(), *secrets(), *confined(), *addresses(), *peers(), *multicast(),
        *timing(), *tables(), *unknown_keys(),
    ]  # fmt: skip


# Rows of a table, as in list_bad_configs.
# fmt: off


def shapes() -> list[Entry]:
    return [
        case("cluster is text", "cluster", ["name, secret"], 'cluster = "web" #!\n',
             {"cluster": "web"}),
        case("cluster is a list", "cluster", ["name, secret"], "rate = 1\ncluster = [] #!\n",
             {"rate": 1, "cluster": []}),
        case("cluster is null", "cluster", ["name, secret"], None, {"cluster": None}),
        case("a cluster without a name", "cluster.name", ["is missing", "name"],
             "rate = 1\n\n[cluster] #!\nperiod = '1s'\n",
             {"rate": 1, "cluster": {"period": "1s"}}),
        wrong("name", "", ["1 to 255"]),
        wrong("name", "n" * 256, ["256", "1 to 255"]),
        wrong("name", "a\x07b", ["control"]),
        wrong("name", 5, ["5", "text"]),
        wrong("name", None, ["text"]),
    ]


def kinds() -> list[Entry]:
    return [
        *[wrong(key, value, ["text"])
          for key in ("listen", "advertise", "multicast", "interface") for value in (5, ["x"], None)],
        *[wrong(key, value, [BOOL_SAYS])
          for key in ("without_secret", "pacing", "busy") for value in ("yes", 1, None)],
        *[wrong("reports", value, ['"eager" or "periodic"']) for value in ("early", True, None)],
        wrong("peers", "10.0.0.1", ['["10.0.0.1"']),
        wrong("peers", 5, ['["10.0.0.1"']),
        wrong("peers", ["127.0.0.1", 5], ["5", '"host:port"'], at="[1]"),
        wrong("peers", [["127.0.0.1"]], ['"host:port"'], at="[0]"),
        wrong("secret", 1234567890123456789, ["16 bytes", "file ="]),
        wrong("secret", True, ["16 bytes", "file ="]),
        wrong("secret", None, ["16 bytes"]),
        wrong("packet_keys", KEYS[0], ["list", "16 bytes"], {"secret": SECRET}),
        wrong("packet_keys", [KEYS[0], 5], ["16 bytes"], {"secret": SECRET}, "[1]"),
    ]


def secrets() -> list[Entry]:
    secret: Entry = {"secret": SECRET}
    file = "[cluster]\nname = 'web'\n"
    return [
        wrong("secret", SECRET[1:], ["16 to 4096 bytes, got 15"]),
        wrong("secret", "", ["16 to 4096 bytes, got 0"]),
        wrong("secret", "s" * 4097, ["16 to 4096 bytes, got 4097"]),
        case("a secret file without a path", "cluster.secret", ["file ="],
             file + "secret = {} #!\n", {"cluster": {"name": "web", "secret": {}}}),
        case("a secret file with an empty path", "cluster.secret", ["path"],
             file + "secret = { file = '' } #!\n",
             {"cluster": {"name": "web", "secret": {"file": ""}}}),
        case("a secret file that is a number", "cluster.secret.file", ["text"],
             file + "secret = { file = 3 } #!\n",
             {"cluster": {"name": "web", "secret": {"file": 3}}}),
        case("unknown key in secret", "cluster.secret.fiel", ["unknown key", "file"],
             file + "secret.fiel = '/x' #!\n",
             {"cluster": {"name": "web", "secret": {"fiel": "/x"}}}),
        wrong("without_secret", True, ["when `secret` is set"], secret),
        wrong("packet_keys", KEYS, ["needs `secret`"]),
        wrong("packet_keys", KEYS, ["needs `secret`"], {"without_secret": True}),
        wrong("packet_keys", [], ["1 to 4"], secret),
        wrong("packet_keys", [f"packet key number {i}" for i in range(5)], ["1 to 4 keys, got 5"],
              secret),
        wrong("packet_keys", [KEYS[0], SECRET[1:]], ["got 15"], secret, "[1]"),
        wrong("packet_keys", [KEYS[0], KEYS[1], KEYS[0]], ["must differ"], secret, "[2]"),
    ]


def confined() -> list[Entry]:
    """Return cases without a secret, whose addresses are not loopback addresses."""
    says = ["there is no secret", "without_secret = true"]
    return [
        *[wrong("listen", text, says)
          for text in ("0.0.0.0:7373", "10.0.0.1:7373", "[::]:7373", "[fd00::1]:1",
                       "[::ffff:10.0.0.1]:1", "[::127.0.0.1]:1")],
        *[wrong("advertise", text, says) for text in ("10.0.0.1:0", "[::ffff:10.0.0.1]:1")],
        *[wrong("peers", ["127.0.0.1", text], says, at="[1]")
          for text in ("10.0.0.1", "node.example.com", "localhost.example.com:80",
                       "[::ffff:10.0.0.1]:1")],
        wrong("multicast", "239.1.2.3:7373", says),
    ]


def addresses() -> list[Entry]:
    secret: Entry = {"secret": SECRET}
    odd = ["", "7373", ":7373", "10.0.0.1", "localhost:7373", "10.0.0:7373", "10.0.0.256:1",
           "10.0.0.1:65536", "10.0.0.1:-1", "::1:7373", "fd00::1", "[10.0.0.1]:80", "010.0.0.1:80",
           " 10.0.0.1:80"]
    return [
        *[wrong(key, text, [text, '"10.0.0.1:7373"'], secret)
          for key in ("listen", "advertise", "multicast") for text in odd],
        *[wrong("listen", text, ["an address of this node"], secret)
          for text in ("239.1.2.3:1", "255.255.255.255:1", "[ff02::1]:1")],
        *[wrong("advertise", text, ["an address of this node"], secret)
          for text in ("0.0.0.0:1", "[::]:1", "224.0.0.1:1", "255.255.255.255:1",
                       "[::ffff:0.0.0.0]:1")],
    ]


def peers() -> list[Entry]:
    secret: Entry = {"secret": SECRET}
    odd = ["", ":7373", "a:", "a:0", "a:65536", "a:+1", "a b", "a..b", "-a", "a-", "a/b", "grün.de",
           "fd00::1", "::1:7373", "[::1", "[::1]7373", "[::1]:0", "[10.0.0.1]:80", "10.0.0",
           "10.0.0.256", "127.1", "2130706433", "0x7f000001", "http://a", "user@a"]
    here, six = secret | {"listen": HERE}, secret | {"listen": "[fd00::9]:7373"}
    return [
        *[wrong("peers", ["node.example.com", text], [text, '"host:port"'], secret, "[1]")
          for text in odd],
        wrong("peers", ["a" * 64], ['"host:port"'], secret, "[0]"),
        *[wrong("peers", [text], ["the address of one node"], secret, "[0]")
          for text in ("0.0.0.0", "239.1.2.3:7373", "255.255.255.255")],
        wrong("peers", ["[fd00::1]:7373"], ["fd00::1", '"[::]:7373"'], secret, "[0]"),
        wrong("peers", ["10.0.0.1"], ["10.0.0.1", '"[::]:7373"'], six, "[0]"),
        wrong("peers", ["[::1]:7373"], ["::1", '"[::]:7373"'], at="[0]"),
        wrong("peers", ["10.0.0.1"], ["10.0.0.1", "listen"], here, "[0]"),
        wrong("peers", ["localhost"] * 1001, ["1000"]),
    ]


def multicast() -> list[Entry]:
    secret: Entry = {"secret": SECRET}
    group = secret | {"multicast": "239.1.2.3:7373"}
    return [
        *[wrong("multicast", text, [text, '"239.73.73.73:7373"'], secret)
          for text in ("10.0.0.1:7373", "0.0.0.0:7373", "223.255.255.255:1", "240.0.0.1:1")],
        wrong("multicast", "[fd00::1]:1", ['"239.73.73.73:7373"'], secret | {"listen": "[::]:1"}),
        wrong("multicast", "239.1.2.3:0", ["port"], secret),
        wrong("multicast", "[ff02::73]:7373", ['"[::]:7373"'], secret),
        wrong("peers", ["10.0.0.1"], ["multicast"], group),
        wrong("interface", "eth0", ["without `multicast`"]),
        wrong("multicast_ttl", 1, ["without `multicast`"]),
        *[wrong("interface", text, ['"eth0"'], group)
          for text in ("", "an interface", "a/b", "sixteen-letters!", "fd00::1", "0.0.0.0",
                       "239.1.2.3")],
        *[wrong("multicast_ttl", number, ["0 to 255"], group)
          for number in (-1, 256, 1.5, 1e300, "1", True, None)],
    ]


def timing() -> list[Entry]:
    sizes = ["", "MB", "5000 tags", "1.5 MB", "-1", "99999999999999999999"]
    return [
        wrong("period", "9ms", ["10ms to 10s"], {"reports": "periodic"}),
        *[wrong("period", value, ["5ms to 10s"]) for value in ("4ms", "4.999999ms", "0s", "11s", "1h")],
        *[wrong("period", value, [value, '"100ms"']) for value in ("", "100", "fast", "-5ms", "5 apples")],
        *[wrong("period", value, ['"100ms"']) for value in (100, 0.1, True, None)],
        wrong("tolerance", "61s", ["60s"]),
        *[wrong("tolerance", value, [str(value or ""), '"auto"'])
          for value in ("", "Auto", "never", 0, None)],
        *[wrong("retention", value, ["1s to 600s"]) for value in ("999ms", "0s", "11 minutes", "1y")],
        *[wrong("retention", value, ['"15s"']) for value in ("15", "long", 15, "101 years")],
        *[wrong("retention_bytes", value, ['"64 KB" to "1 GB"'])
          for value in (0, 63999, "63 KB", 1000000001, "2 GB", "17179869184 GB", "0 B")],
        *[wrong("retention_bytes", value, ['"16 MB"']) for value in [*sizes, 1.5, -1, True, None]],
        wrong("retention_bytes", "1000000", ['got the text "1000000"', '"16 MB"']),
    ]


def tables() -> list[Entry]:
    return [
        case("a cluster with a table of too few bytes", "table.size", ["1000000 bytes", "at least"],
             'cluster = { name = "web" }\ntable = { private = true, size = "1 MB" } #!\n',
             {"cluster": {"name": "web"}, "table": {"private": True, "size": "1 MB"}}),
    ]


def unknown_keys() -> list[Entry]:
    say = "unknown key"
    return [
        wrong("peer", ["a"], [say, "peers"]),
        wrong("secrets", SECRET, [say, "secret"]),
        wrong("zzzzzzzz", 5, [say, "retention_bytes"]),
        wrong("rate", 5, [say, "name"]),
        case("unknown key, similar to cluster", "clustr", [say, "cluster"], 'clustr.name = "a" #!\n',
             {"clustr": {"name": "a"}}),
        case("cluster in a domain", "domains.api.cluster", [say],
             "[domains.api]\nrate = 1\n[domains.api.cluster] #!\nname = 'a'\n",
             {"domains": {"api": {"rate": 1, "cluster": {"name": "a"}}}}),
    ]
