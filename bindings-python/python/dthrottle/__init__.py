"""dthrottle holds every client to a rate, without a server to ask.

>>> from dthrottle import Throttle
>>> throttle = Throttle("100/s", burst=200)
>>> decision = throttle.check("203.0.113.7")
>>> bool(decision), decision.remaining
(True, 199)
"""

from dthrottle._dthrottle import (
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
    tables,
)
from dthrottle.config import ClusterConfig, DomainConfig, RuleConfig, TableConfig
from dthrottle.errors import (
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
    "tables",
]
