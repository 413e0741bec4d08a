"""What packages install by entry points, this project's own and others'; scanned once a process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from federation.contract.errors import InputError, nearest_name


@dataclass(frozen=True)
class Installed:
    """What a package has installed under a name; imported when it is used, so that a broken one harms nobody else."""

    entry: EntryPoint

    @property
    def described(self) -> str:
        """The entry point and its package, in words."""
        package = "an unknown package" if self.entry.dist is None else f"the package '{self.entry.dist.name}'"
        return f"the entry point '{self.entry.name}' of {package} ({self.entry.group}: {self.entry.value})"

    def load(self) -> Any:
        """The class, function or value. Raises `InputError` that names the package where it cannot be imported."""
        try:
            return self.entry.load()
        except Exception as error:  # the code of other packages may raise anything
            raise InputError(
                f"{self.described} cannot be imported: {type(error).__name__}: {error}; repair or remove that package"
            ) from error


def installed(group: str) -> dict[str, Installed]:
    """Everything in a group of entry points by name, sorted; loads none of it.

    Packages are looked for once a process, and again only where the places to import from have changed.
    """
    return _scanned(group, tuple(sys.path))


def find(group: str, what: str, name: str) -> Installed:
    """One of a group by name; `what` says in a word what it is. Raises `InputError` if it is unknown."""
    known = installed(group)
    if name not in known:
        allowed = f"allowed: {', '.join(known)}" if known else "none is installed"
        raise InputError(f"{what} '{name}' is not known; {allowed}{nearest_name(name, known)}")
    return known[name]


@cache
def _scanned(group: str, path: tuple[str, ...]) -> dict[str, Installed]:
    return {entry.name: Installed(entry) for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}
