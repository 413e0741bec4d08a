"""Public names of a package, imported when they are asked for: a package of many rooms costs what is used of it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


class PublicNames:
    """What users import from a package, by the modules where it lies.

    `homes` maps a module below the package to names in it; `NAME=OTHER` offers its OTHER as NAME, as for the many
    functions `calibrate`. A package's `__getattr__` calls `load`.

    Examples:
        >>> names = PublicNames("federation", {"contract.guarantee": "Guarantee Protected=Unit"})
        >>> names.all, names.load("Protected").PARTY
        (['Guarantee', 'Protected'], <Unit.PARTY: 'party'>)
    """

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self._package = package
        self._homes = {
            name: (module, inner or name)
            for module, names in homes.items()
            for name, _, inner in (entry.partition("=") for entry in names.split())
        }

    @property
    def all(self) -> list[str]:
        """The names, sorted; a package's `__all__`."""
        return sorted(self._homes)

    def load(self, name: str) -> Any:
        """What has the name. Raises `AttributeError` for a name that is not public."""
        if name not in self._homes:
            raise AttributeError(f"module '{self._package}' has no attribute '{name}'")
        module, inner = self._homes[name]
        return getattr(import_module(f"{self._package}.{module}"), inner)
