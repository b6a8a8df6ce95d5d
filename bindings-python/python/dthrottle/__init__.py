"""dthrottle limits the rate of every client, without a central server.

>>> from dthrottle import Throttle
>>> throttle = Throttle("100/s", burst=200)
>>> decision = throttle.check("203.0.113.7")
>>> bool(decision), decision.remaining
(True, 199)
"""

from dthrottle import _load

_load.load()

from dthrottle._dthrottle import (  # noqa: E402
    UNLIMITED,
    ClusterEvent,
    ClusterStats,
    Decision,
    Domain,
    ManualClock,
    PeerStats,
    Rule,
    Stats,
    TableInfo,
    Throttle,
    __version__,
    remove_table,
    tables,
)
from dthrottle.config import ClusterConfig, DomainConfig, RuleConfig, TableConfig  # noqa: E402
from dthrottle.errors import (  # noqa: E402
    ArgumentError,
    ClosedError,
    ConfigError,
    CostError,
    DomainError,
    DthrottleError,
    FileError,
    InternalError,
)

__all__ = [
    "UNLIMITED",
    "ArgumentError",
    "ClosedError",
    "ClusterConfig",
    "ClusterEvent",
    "ClusterStats",
    "ConfigError",
    "CostError",
    "Decision",
    "Domain",
    "DomainConfig",
    "DomainError",
    "DthrottleError",
    "FileError",
    "InternalError",
    "ManualClock",
    "PeerStats",
    "Rule",
    "RuleConfig",
    "Stats",
    "TableConfig",
    "TableInfo",
    "Throttle",
    "__version__",
    "remove_table",
    "tables",
]
