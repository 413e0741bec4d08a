"""What a side's own configuration says about its data and roster, against what a question takes for granted."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from operator import eq, ge, le
from typing import Any

from federation.contract.errors import InputError, refusing
from federation.contract.roster import COLLUDING, honest


@dataclass(frozen=True)
class Declared:
    """Public facts; None where nothing is said.

    most_rows: rows of a party at most. A question about at most fewer is refused where the party may hold more.
    label_range: [lo, hi] of real labels.
    classes, bags, rows_per_person: as in `federation.questions.bags.Bags`; a question may count on more bags.
    honest: so many parties add their shares of a noise that none hides by itself, colluders not counted; a question
        whose shares are sized for more of them would leave too little noise. In a site's configuration it may follow
        from the own `roster`: {"parties": 100, "quorum": 0.9, "colluding": 0.1} (of 100 parties 90 answer, 10 collude).

    Examples:
        >>> site = Declared.from_json('{"label_range": [0, 5], "most_rows": 40}')
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

    @classmethod
    def from_json(cls, text: str) -> Declared:
        """From a JSON object with some of the fields. Raises `InputError` for any other."""
        known = ", ".join([*(field.name for field in fields(cls)), "roster"])
        with refusing(f'the node\'s "declared" must be JSON with some of {known}'):
            record: dict[str, Any] = json.loads(text)
            if record.get("label_range") is not None:
                low, high = record["label_range"]
                if not (all(type(end) in (int, float) and math.isfinite(end) for end in (low, high)) and low < high):
                    raise ValueError(f"label_range must be two finite numbers [lo, hi], got {record['label_range']!r}")
                record["label_range"] = (float(low), float(high))
            if (roster := record.pop("roster", None)) is not None:
                if "honest" in record:
                    raise ValueError("honest follows from the roster; leave one of them out")
                record["honest"] = _of_roster(**roster)
            found = cls(**record)
            for field in fields(cls):
                value = getattr(found, field.name)
                if field.name != "label_range" and value is not None and (type(value) is not int or value < 0):
                    raise ValueError(f"{field.name} must be a whole number from 0, got {value!r}")
            return found

    def require(self, assumed: Declared) -> None:
        """Refuse what contradicts this. Raises `InputError` that names both sides' numbers."""
        for field in fields(self):
            own, theirs = getattr(self, field.name), getattr(assumed, field.name)
            if own is not None and theirs is not None and not _AGREES.get(field.name, eq)(theirs, own):
                raise InputError(
                    f"the question takes {field.name} to be {theirs}, this side declares {own}; whoever asks and this "
                    "site must agree on it before anything is paid"
                )


def _of_roster(parties: int, quorum: float, colluding: float = COLLUDING) -> int:
    """How many parties may be counted on. Raises `ValueError` for anything but a roster."""
    if type(parties) is not int or parties < 1 or not (0 < quorum <= 1 and 0 <= colluding < 1):
        raise ValueError(
            "roster must have a whole number of parties from 1, a quorum in (0, 1] and a colluding share in [0, 1), "
            f"got {parties!r}, {quorum!r} and {colluding!r}"
        )
    return honest(parties, quorum, colluding)


# How what a question assumes must stand to what a side declares; where nothing is said, it must be equal.
_AGREES = {"most_rows": ge, "bags": ge, "honest": le}

NOTHING = Declared()
