"""The address of a client, as a tag that it cannot choose for itself.

>>> from dthrottle.address import client_address
>>> client_address("203.0.113.7").hex()
'cb007107'
>>> client_address("10.0.0.1", "6.6.6.6, 203.0.113.7", trusted_proxies=["10.0.0.0/8"]).hex()
'cb007107'

The rules are in docs/http.md, and case by case in tests/vectors/addresses.json. Mistakes in what an
application says are errors at once; nothing that a request says is an error.
"""

from dthrottle._dthrottle import ClientAddress, client_address, parse_address

__all__ = ["ClientAddress", "client_address", "parse_address"]
