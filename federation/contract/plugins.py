"""Extension points: entry points of installed packages, names of code for other processes, and lazy public names.

`Installed` is one entry point, of this project or another package. `Reference` names code that another process loads.
`PublicNames` imports the public names of a package when they are first used.
"""

import importlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from federation.contract.errors import InputError, nearest_name, refusing

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Reference:
    """`module:attribute` and the keyword arguments to call it with (JSON values only).

    Raises `InputError` for a target that is no text, or arguments without names.

    Examples:
        >>> Reference("math:prod", {"iterable": [2, 3, 7]}).target
        'math:prod'
        >>> Reference("fractions:Fraction", {"numerator": 6, "denominator": 4}).call()
        Fraction(3, 2)
    """

    target: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.target, str) or not isinstance(self.arguments, dict):
            raise InputError(
                "a reference must have a target, the text module:attribute, and arguments, values by name; got "
                f"{self.target!r:.100} and {self.arguments!r:.100}"
            )

    def load(self) -> Any:
        """The attribute itself. Raises `InputError` when the module or the attribute does not exist."""
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except InputError:
            raise
        except (ImportError, AttributeError, ValueError, TypeError) as error:  # TypeError: a relative name
            raise InputError(f"cannot load '{self.target}' (expected module:attribute): {error}") from error

    def call(self) -> Any:
        """The attribute called with the arguments. Raises `InputError` as `load`, and where it takes others."""
        found = self.load()
        try:
            signature(found).bind(**self.arguments)
        except TypeError as error:
            raise InputError(f"cannot call '{self.target}' with the arguments {[*self.arguments]}: {error}") from error
        except ValueError:  # what is built in may not say what it takes
            pass
        return found(**self.arguments)

    def to_json(self) -> str:
        """One line of JSON, for a node's configuration."""
        return json.dumps({"target": self.target, "arguments": self.arguments}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Reference":
        """Inverse of `to_json`. Raises `InputError` for anything else."""
        with refusing(f"a reference must be JSON with target and arguments, got {text!r:.100}"):
            record = json.loads(text)
            return cls(record["target"], record["arguments"])


class PublicNames:
    """What users import from a package, by the modules where it lies.

    `homes` maps a module below the package to names in it; `NAME=OTHER` offers its OTHER as NAME, as for the many
    functions `calibrate`. A package's `__getattr__` is `load`.

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


@dataclass(frozen=True)
class Installed:
    """What a package has installed under a name; imported when it is used, so that a broken one harms nobody else."""

    entry: "EntryPoint"

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


_FORMER = {"federation.queries": "federation.questions"}  # groups that packages may still use


@cache
def _scanned(group: str, path: tuple[str, ...]) -> dict[str, Installed]:
    from importlib.metadata import entry_points  # slow to import, and `federation --help` needs no plug-in

    groups = [group] if group not in _FORMER else [_FORMER[group], group]
    found = {entry.name: Installed(entry) for one in groups for entry in entry_points(group=one)}
    return dict(sorted(found.items()))
