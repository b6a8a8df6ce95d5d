"""Errors about a name that is unknown, with the one that was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dthrottle.errors import ConfigError

__all__ = ["known", "meant"]


def known(
    where: str, given: Iterable[str], names: Iterable[str], others: Mapping[str, str] | None = None
) -> None:
    """Check that all names are known. ``others``: what users of other libraries may be used to."""
    names = list(names)
    for name in given:
        if name not in names:
            near = (others or {}).get(name) or meant(name, names)
            hint = f"did you mean {near}?" if near else "known are: " + ", ".join(names)
            raise ConfigError(f"{where}: unknown option {name!r}; {hint}", field=str(name))


def meant(name: object, names: Iterable[str]) -> str | None:
    """Give the name that is nearest."""
    from difflib import get_close_matches

    near = get_close_matches(str(name).lower(), list(names), 1)
    return near[0] if near else None
