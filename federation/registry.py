"""Protocols and questions by name, this project's own and those that other packages add by entry points."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from federation.errors import InputError, nearest_name


@dataclass(frozen=True)
class Installed:
    """What a package has installed under a name; imported when it is used, so that a broken one harms nobody else."""

    entry: EntryPoint

    def load(self) -> Any:
        """The class or function. Raises `InputError` that names the package where it cannot be imported."""
        try:
            return self.entry.load()
        except Exception as error:  # the code of other packages may raise anything
            package = "an unknown package" if self.entry.dist is None else f"the package '{self.entry.dist.name}'"
            raise InputError(
                f"the entry point '{self.entry.name}' of {package} ({self.entry.group}: {self.entry.value}) cannot be "
                f"imported: {type(error).__name__}: {error}; repair or remove that package"
            ) from error


def _installed(group: str) -> dict[str, Installed]:
    return {entry.name: Installed(entry) for entry in entry_points(group=group)}


def protocol_names() -> list[str]:
    """Names of the installed protocols, sorted; loads none of them."""
    return sorted(_installed("federation.protocols"))


def protocol(name: str) -> Any:
    """The protocol's options class (a frozen dataclass that also fits and releases).

    Raises `InputError` if it is unknown or cannot be imported.
    """
    known = _installed("federation.protocols")
    if name not in known:
        raise InputError(
            f"protocol '{name}' is not known; allowed: {', '.join(sorted(known))}" + nearest_name(name, known)
        )
    return known[name].load()


def questions() -> dict[str, Installed]:
    """The functions with which a party answers, by question name; loads none of them."""
    return _installed("federation.questions")
