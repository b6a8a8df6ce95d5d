"""Cases for calls.json: the names of services in URLs, and the values of Retry-After.

The author states the expected result of each row. The JavaScript tests compare the names with the
class URL. The dates must agree with the standard library of Python.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

Entry = dict[str, object]

YEAR = 86_400 * 365
NOW = datetime(2031, 1, 3, 10, 0, 0, tzinfo=timezone.utc)
FORMATS = ("%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y")


def calls() -> dict[str, list[Entry]]:
    return {
        "services": [*names(), *addresses(), *letters(), *none()],
        "retry_after": [*seconds(), *dates(), *no_dates()],
    }


# Rows of a table.
# fmt: off


def service(url: str, name: str) -> Entry:
    return {"url": url, "service": name}


def names() -> list[Entry]:
    rows = {
        "https://API.example.com/x?y#z": "api.example.com",
        "https://api.example.com:443/": "api.example.com",
        "HTTP://api.example.com:80": "api.example.com",
        "http://api.example.com:443/": "api.example.com:443",
        "http://api.example.com:/": "api.example.com",
        "http://api.example.com:0080/": "api.example.com",
        "http://api.example.com:008080/": "api.example.com:8080",
        "http://api.example.com:0/": "api.example.com:0",
        "http://api.example.com:00/": "api.example.com:0",
        "http://api.example.com:65535/": "api.example.com:65535",
        "http://api.example.com?x=http://other/": "api.example.com",
        "http://api.example.com#@other": "api.example.com",
        "http://user:secret@host:8080/": "host:8080",
        "http://user@mail@host/": "host",
        "http://host/@other": "host",
        "http://api.example.com./": "api.example.com.",
        "http://a..b/": "a..b",
        "http://under_score.example/": "under_score.example",
        "http://ex%61mple.COM/": "example.com",
        "  http://host/ \n": "host",
        "ht\ntp://ho\tst/": "host",
        "http:\\\\host\\path": "host",
        "http:host/path": "host",
        "http:///host/path": "host",
        "wss://host:443/": "host",
        "http+unix://%2Frun%2FApp.sock/x": "%2Frun%2FApp.sock",
        "http+unix://Socket:80/x": "Socket:80",
    }
    return [service(url, name) for url, name in rows.items()]


def addresses() -> list[Entry]:
    hosts = {
        "127.0.0.1": "127.0.0.1", "127.1": "127.0.0.1", "127.0.1": "127.0.0.1",
        "2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1", "0X7F.1": "127.0.0.1",
        "0177.0.0.01": "127.0.0.1", "127.0.0.1.": "127.0.0.1", "1.2.3.4.5": "", "256.1.1.1": "",
        "1.2.3.256": "", "1.256": "1.0.1.0", "1.2.65536": "", "4294967295": "255.255.255.255",
        "4294967296": "", "1.2.3.08": "", "1..2": "", "a.1": "", "1.a": "1.a", "0x": "0.0.0.0",
        "a.0x": "", "1_0.1": "", "%31%32%37.1": "127.0.0.1", "1" * 5000: "",
        "[::1]": "[::1]", "[2001:DB8::1]": "[2001:db8::1]", "[2001:db8:0:0::1]": "[2001:db8::1]",
        "[2001:0db8:0000:0000:0000:0000:0000:0001]": "[2001:db8::1]",
        "[::ffff:1.2.3.4]": "[::ffff:102:304]", "[::FFFF:102:304]": "[::ffff:102:304]",
        "[::1.2.3.4]": "[::102:304]", "[64:ff9b::192.0.2.1]": "[64:ff9b::c000:201]",
        "[1:0:0:2:0:0:0:3]": "[1:0:0:2::3]", "[1:0:0:2:0:0:3:4]": "[1::2:0:0:3:4]",
        "[1:0:2:0:3:0:4:0]": "[1:0:2:0:3:0:4:0]", "[1:2:3:4:5:6:7::]": "[1:2:3:4:5:6:7:0]",
        "[1:2:3:4:5:6::]": "[1:2:3:4:5:6::]", "[0:0:1:10:100:0:0:0]": "[0:0:1:10:100::]",
        "[::]": "[::]", "[]": "", "[1.2.3.4]": "", "[1::2::3]": "", "[12345::]": "",
        "[::1": "", "[::1%eth0": "", "::1": "", "[::1]x": "", "x[::1]": "",
    }
    rows = [service(f"http://{host}/", name) for host, name in hosts.items()]
    return [*rows, service("http://[2001:db8:0:0::1]:8080/", "[2001:db8::1]:8080"),
            service("https://[::1]:443/", "[::1]"), service("http://127.1:81/", "127.0.0.1:81")]


def letters() -> list[Entry]:
    hosts = {
        "b\u00fccher.example": "xn--bcher-kva.example",
        "B\u00dcCHER.example": "xn--bcher-kva.example",
        "bu\u0308cher.example": "xn--bcher-kva.example",
        "b%C3%BCcher.example": "xn--bcher-kva.example",
        "XN--BCHER-KVA.example": "xn--bcher-kva.example",
        "stra\u00dfe.example": "xn--strae-oqa.example",
        "\u03b2\u03cc\u03bb\u03bf\u03c2.example": "xn--nxasmm1c.example",
        "\u4f8b\u3048\u3002\u30c6\u30b9\u30c8": "xn--r8jz45g.xn--zckzah",
        "\u043f\u0440\u0438\u043c\u0435\u0440.example": "xn--e1afmkfd.example",
        "\u05d3\u05d5\u05d2\u05de\u05d4.example": "xn--6dbbec0c.example",
        "\uff21\uff22\uff43.example": "abc.example",
        "\uff11\uff12\uff17\uff0e\uff11": "127.0.0.1",
        "\u2615.example": "xn--53h.example",
        "\U0001f980.example": "xn--zs9h.example",
        "a\u00adb.example": "ab.example",
    }
    return [service(f"http://{host}/", name) for host, name in hosts.items()]


def none() -> list[Entry]:
    urls = ["", " ", "host", "host/path", "//host/", "/path", "host:8080", "localhost:8080/x",
            "http://", "http:///", "http://:80/", "http://user@/", "http://h:99999/", "http://h:65536/",
            "http://h:x/", "http://h:-1/", "http://h:8 0/", "http://h:1:2/", f"http://h:{'9' * 5000}/",
            "http://a b/", "http://a<b/", "http://a|b/", "http://a^b/", "http://a%b/", "http://a%20b/",
            "http://a%2Fb/", "http://%ff/", "mailto:me@host", "x:", "1http://host/"]
    return [service(url, "") for url in urls]


def after(why: str, value: str | None, expect: int | None, now: datetime = NOW) -> Entry:
    return {"why": why, "value": value, "now": int(now.timestamp()), "seconds": expect}


def seconds() -> list[Entry]:
    return [
        after("a number of seconds", "120", 120),
        after("zero seconds", "0", 0),
        after("blanks around the seconds", " \t7 ", 7),
        after("leading zeros", "0" * 24 + "5", 5),
        after("500 zeros", "0" * 500, 0),
        after("a year", str(YEAR), YEAR),
        after("more than a year counts as a year", str(YEAR + 1), YEAR),
        after("a number of 5000 digits", "9" * 5000, YEAR),
        *[after("not a number of seconds", value, None)
          for value in (None, "", " ", "-1", "+1", "1.5", "1e9", "0x10", "1_0", "5s", "5, 5", "soon",
                        "\u0665", "\u00b2", "\u00a05", "5\n", "Infinity", "NaN")],
    ]


def dates() -> list[Entry]:
    return [
        date("IMF-fixdate", "Fri, 03 Jan 2031 10:00:05 GMT", 5),
        date("RFC 850", "Friday, 03-Jan-31 10:00:05 GMT", 5),
        date("asctime", "Fri Jan  3 10:00:05 2031", 5),
        date("asctime, a day with a leading zero", "Fri Jan 03 10:00:05 2031", 5),
        date("asctime, a later day", "Mon Jan 13 10:00:00 2031", 10 * 86_400),
        date("the end of a day", "Fri, 03 Jan 2031 23:59:59 GMT", 14 * 3600 - 1),
        after("a leap second", "Fri, 03 Jan 2031 10:00:60 GMT", 60),
        date("a leap day", "Sun, 29 Feb 2032 00:00:00 GMT", YEAR),
        date("the last second of the year 9999", "Fri, 31 Dec 9999 23:59:59 GMT", YEAR),
        after("the wrong day of the week", "Mon, 03 Jan 2031 10:00:05 GMT", 5),
        date("blanks around the date", "Fri, 03 Jan 2031 10:00:05 GMT", 5, around=" "),
        date("the current time", "Fri, 03 Jan 2031 10:00:00 GMT", None),
        date("a second ago", "Fri, 03 Jan 2031 09:59:59 GMT", None),
        date("long ago", "Sun, 06 Nov 1994 08:49:37 GMT", None),
        date("long ago, RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", None),
        date("long ago, asctime", "Sun Nov  6 08:49:37 1994", None),
        after("a year of two digits, at most 50 years ahead", "Friday, 01-Jan-81 00:00:00 GMT", YEAR),
        after("a year of two digits is not 51 years ahead", "Friday, 01-Jan-82 00:00:00 GMT", None),
        after("a year of two digits in the next century", "Friday, 01-Jan-00 00:00:04 GMT", 5,
              datetime(2100, 1, 1, tzinfo=timezone.utc) - timedelta(seconds=1)),
    ]


def date(why: str, value: str, expect: int | None, *, around: str = "") -> Entry:
    """Return a case for a date that the standard library can also parse."""
    for form in FORMATS:
        try:
            then = datetime.strptime(value, form).replace(tzinfo=timezone.utc)
        except ValueError:
            continue
        left = int((then - NOW).total_seconds())
        model = min(left, YEAR) if left > 0 else None
        assert model == expect, f"{value}: the model says {model}, the author {expect}"
        return after(why, f"{around}{value}{around}", expect)
    raise AssertionError(value)


def no_dates() -> list[Entry]:
    values = {
        "a day of one digit": "Fri, 3 Jan 2031 10:00:05 GMT",
        "no day of the week": "03 Jan 2031 10:00:05 GMT",
        "no seconds": "Fri, 03 Jan 2031 10:00 GMT",
        "day and hour": "5 Jan 2035 10:00",
        "no zone": "Fri, 03 Jan 2031 10:00:05",
        "an offset instead of GMT": "Fri, 03 Jan 2031 10:00:05 +0000",
        "UTC instead of GMT": "Fri, 03 Jan 2031 10:00:05 UTC",
        "a zone in asctime": "Fri Jan  3 10:00:05 2031 GMT",
        "asctime, one digit without a blank": "Fri Jan 3 10:00:05 2031",
        "lower case": "fri, 03 jan 2031 10:00:05 gmt",
        "a long name of the day": "Friday, 03 Jan 2031 10:00:05 GMT",
        "a short name of the day in RFC 850": "Fri, 03-Jan-31 10:00:05 GMT",
        "a year of four digits in RFC 850": "Friday, 03-Jan-2031 10:00:05 GMT",
        "a long name of the month": "Fri, 03 January 2031 10:00:05 GMT",
        "an unknown name of the day": "Foo, 03 Jan 2031 10:00:05 GMT",
        "an unknown name of the month": "Fri, 03 Foo 2031 10:00:05 GMT",
        "a day that does not exist": "Mon, 31 Feb 2031 10:00:05 GMT",
        "a leap day in a year without one": "Sat, 29 Feb 2031 10:00:05 GMT",
        "day 0": "Fri, 00 Jan 2031 10:00:05 GMT",
        "day 32": "Fri, 32 Jan 2031 10:00:05 GMT",
        "hour 24": "Fri, 03 Jan 2031 24:00:00 GMT",
        "minute 60": "Fri, 03 Jan 2031 10:60:00 GMT",
        "second 61": "Fri, 03 Jan 2031 10:00:61 GMT",
        "year 0": "Fri, 03 Jan 0000 10:00:05 GMT",
        "a year of five digits": "Fri, 03 Jan 12031 10:00:05 GMT",
        "two blanks": "Fri,  03 Jan 2031 10:00:05 GMT",
        "a digit that is not ASCII": "Fri, 0\u0663 Jan 2031 10:00:05 GMT",
        "text after the date": "Fri, 03 Jan 2031 10:00:05 GMT; x",
        "a newline after the date": "Fri, 03 Jan 2031 10:00:05 GMT\n",
        "ISO 8601": "2031-01-03T10:00:05Z",
        "a word and a year": "foo 2099",
        "a day and a number": "Mon 12345",
        "a date in American notation": "1/4/2031",
        "a number of 20 digits": "21 Oct Wed, 23:59:59 +99999999999999999999 Jan",
    }
    return [after(why, value, None) for why, value in values.items()]
