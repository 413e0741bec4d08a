"""What protects single rows or labels at their parties, and what every guarantee of that kind rests on."""

from __future__ import annotations

from federation.errors import InputError
from federation.guarantee import Assumption, Check, Unit

HELD_ONCE = Assumption("a row lies at one party, which answers about it in one place only", Check.DECLARED)
DIFFERENT_PEOPLE = Assumption("every row is about another person", Check.DECLARED)


def protected(protect: str) -> Unit:
    """The unit that a question protects. Raises `InputError` for anything but "label" and "row"."""
    if protect not in ("label", "row"):
        raise InputError(f"protect must be label or row, got {protect!r}")
    return Unit(protect)
