"""Protocols and questions by name, this project's own and those that other packages add by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from federation.errors import InputError, nearest_name


def _entries(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}


def protocol_names() -> list[str]:
    """Names of the installed protocols, sorted; loads none of them."""
    return sorted(_entries("federation.protocols"))


def protocol(name: str) -> Any:
    """The protocol's options class (a frozen dataclass that also fits and releases). `InputError` if unknown."""
    entries = _entries("federation.protocols")
    if name not in entries:
        raise InputError(
            f"protocol '{name}' is not known; allowed: {', '.join(sorted(entries))}" + nearest_name(name, entries)
        )
    return entries[name].load()


def questions() -> dict[str, EntryPoint]:
    """Entry points of the functions with which a party answers, by question name."""
    return _entries("federation.questions")
