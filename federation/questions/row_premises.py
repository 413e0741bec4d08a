"""What protects single rows or labels at their parties, and what every guarantee of that kind rests on."""

from __future__ import annotations

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper, Unit

HELD_ONCE = Assumption(
    "a row lies at one party, which answers about it in one place only", Check.DECLARED, Keeper.HOLDER
)
DIFFERENT_PEOPLE = Assumption("every row is about another person", Check.DECLARED, Keeper.HOLDER)
UNTIMED = Assumption(
    "nobody observes how long an answer takes or how much memory: both grow with the number of rows, and a feature map "
    "can make one row slower than others, as by subnormal numbers",
    Check.DECLARED,
    Keeper.SITE,
)


def protected(protect: str) -> Unit:
    """The unit that a question protects. Raises `InputError` for anything but "label" and "row".

    Examples:
        >>> protected("row")
        <Unit.ROW: 'row'>
    """
    if protect not in ("label", "row"):
        raise InputError(f"protect must be label or row, got {protect!r}")
    return Unit(protect)


def holding(unit: Unit) -> tuple[Assumption, ...]:
    """What a guarantee for single labels or rows rests on, whatever the mechanism: rows take time, labels take none."""
    return (HELD_ONCE, DIFFERENT_PEOPLE) if unit is Unit.LABEL else (HELD_ONCE, DIFFERENT_PEOPLE, UNTIMED)
