"""A mutant, and the reasons for which some survive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

Key = tuple[str, str, str]  # a module, a line of it, and what the line becomes; lines without indentation

SURVIVORS = Path(__file__).with_name("survivors.yaml")


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
