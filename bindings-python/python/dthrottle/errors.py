"""The exceptions of dthrottle, one for each kind of error.

A refused check is an answer, not an exception. ``tests/vectors/errors.json`` lists the kinds, which
all languages share.
"""

from __future__ import annotations

from typing import ClassVar


class DthrottleError(Exception):
    """The base of all exceptions of dthrottle."""

    kind: ClassVar[str]
    """The name of the kind, equal in every language."""

    field: str | None
    """The field of the configuration that is wrong, such as ``domains.api.rules[0].rate``."""

    line: int | None
    """The line of the configuration text, from 1."""

    def __init__(self, message: str, field: str | None = None, line: int | None = None) -> None:
        # Only the message is in args, because str() of an OSError with several args is not the
        # message.
        super().__init__(message)
        self.field = field
        self.line = line


# xtask: classes
class ConfigError(DthrottleError, ValueError):
    """An invalid configuration: unknown key, invalid rate, value out of range, duplicate name."""

    kind = "config"


class CostError(DthrottleError, ValueError):
    """An invalid cost: negative, not whole, too large, or above the burst of a rule."""

    kind = "cost"


class DomainError(DthrottleError, LookupError):
    """A domain that does not exist."""

    kind = "domain"


class ClosedError(DthrottleError, RuntimeError):
    """A call after ``close``."""

    kind = "closed"


class ArgumentError(DthrottleError, TypeError):
    """Another invalid argument."""

    kind = "argument"


class FileError(DthrottleError, OSError):
    """A file that cannot be used: a configuration, a secret, or a table."""

    kind = "file"


class InternalError(DthrottleError, RuntimeError):
    """A bug in dthrottle, caught at the border between languages. Please report it."""

    kind = "internal"


# xtask: end

BY_KIND: dict[str, type[DthrottleError]] = {
    error.kind: error
    for error in (
        # xtask: names
        ConfigError,
        CostError,
        DomainError,
        ClosedError,
        ArgumentError,
        FileError,
        InternalError,
        # xtask: end
    )
}
"""The class of each kind. The native module finds the classes here."""
