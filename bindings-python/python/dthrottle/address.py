"""The address of a client as a tag that the client cannot choose.

>>> from dthrottle.address import client_address
>>> client_address("203.0.113.7").hex()
'cb007107'
>>> client_address("10.0.0.1", "6.6.6.6, 203.0.113.7", trusted_proxies=["10.0.0.0/8"]).hex()
'cb007107'

docs/http.md has the rules, tests/vectors/addresses.json the cases. Wrong options are errors; no
content of a request is an error.
"""

from dthrottle._dthrottle import ClientAddress, client_address, parse_address

__all__ = ["ClientAddress", "client_address", "parse_address"]
