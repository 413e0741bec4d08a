"""What a side's own configuration says about its data and roster, against what a question takes for granted."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import eq, ge, le

from federation.contract.errors import InputError


@dataclass(frozen=True)
class Declared:
    """Public facts; None where nothing is said.

    most_rows: rows of a party at most. A question about at most fewer is refused where the party may hold more.
    label_range: [lo, hi] of real labels.
    classes, bags, rows_per_person: as in `federation.questions.bags.Bags`; a question may count on more bags.
    honest: so many parties add their shares of a noise that none hides by itself, colluders not counted; a question
        whose shares are sized for more of them would leave too little noise.

    Examples:
        >>> site = Declared(label_range=(0.0, 5.0), most_rows=40)
        >>> site.require(Declared(most_rows=100))
        >>> site.require(Declared(label_range=(0.0, 1.0)))
        Traceback (most recent call last):
        federation.contract.errors.InputError: the question takes label_range to be (0.0, 1.0), this side declares
        (0.0, 5.0); whoever asks and this site must agree on it before anything is paid
    """

    most_rows: int | None = None
    label_range: tuple[float, float] | None = None
    classes: int | None = None
    bags: int | None = None
    rows_per_person: int | None = None
    honest: int | None = None

    def require(self, assumed: Declared) -> None:
        """Refuse what contradicts this. Raises `InputError` that names both sides' numbers."""
        for field in fields(self):
            own, theirs = getattr(self, field.name), getattr(assumed, field.name)
            if own is not None and theirs is not None and not _AGREES.get(field.name, eq)(theirs, own):
                raise InputError(
                    f"the question takes {field.name} to be {theirs}, this side declares {own}; whoever asks and this "
                    "site must agree on it before anything is paid"
                )


# How what a question assumes must stand to what a side declares; where nothing is said, it must be equal.
_AGREES = {"most_rows": ge, "bags": ge, "honest": le}

NOTHING = Declared()
