"""A mutant, the modules that mutants are made of, and the reasons for which some survive."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from federation.contract.errors import InputError

Key = tuple[str, str, str]  # a module, a line of it, and what the line becomes; lines without indentation

SURVIVORS = Path(__file__).with_name("survivors.yaml")
PRIVATE = (
    "federation/mechanisms",
    "federation/secure_aggregation",
    "federation/signed_messages",
    "parties/app.py",
    "parties/guard",
    "parties/party_data",
    "parties/responses",
    "parties/secure_aggregation",
    "parties/site",
    "aggregator/secure_aggregation",
)


@dataclass(frozen=True)
class Mutant:
    """A module with one error: `line` (from 1) of the source says `becomes` where it said `was`."""

    path: str
    line: int
    was: str
    becomes: str
    source: str

    @property
    def key(self) -> Key:
        """What it is known by where lines move."""
        return self.path, self.was, self.becomes


def explained() -> dict[Key, str]:
    """The reason for which each may survive, as survivors.yaml keeps it: by module and reason, lines and mutants."""
    kept = yaml.safe_load(SURVIVORS.read_text(encoding="utf-8")) or {}
    return {
        (module, was, becomes): reason
        for module, reasons in kept.items()
        for reason, lines in reasons.items()
        for was, mutants in lines.items()
        for becomes in mutants
    }


def modules(root: Path, paths: Sequence[str]) -> list[str]:
    """The modules at and below paths of the checkout at `root`, without those that only make a folder a package.

    Raises `InputError` where there is none at a path.
    """
    found: set[str] = set()
    for path in paths:
        below = [root / path] if path.endswith(".py") else (root / path).rglob("*.py")
        here = {str(file.relative_to(root)) for file in below if file.is_file() and file.name != "__init__.py"}
        if not here:
            raise InputError(f"{path}: there is no module at this path of {root}")
        found |= here
    return sorted(found)
