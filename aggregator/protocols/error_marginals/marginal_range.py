"""What honest counts of an exchange with a party's own noise reach: of errors around half the rows, and of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from aggregator.answers.honest_range import BEYOND, Range
from federation.contract.guarantee import Unit
from federation.mechanisms.marginals.noise import MarginalNoise
from federation.mechanisms.noise.reach import (
    entry_reach,
    gaussian_pair_tail,
    gaussian_tail,
    laplace_pair_tail,
    laplace_tail,
    norm_reach,
)
from federation.numerics.rows import Booleans, Floats
from federation.queries.marginals import MarginalsQuestion

_HALVES = 0.5  # what is scaled is rounded to these

Arrays = Mapping[str, Floats]


class MarginalRange:
    """Of answers to one query, by parties of at most `most` rows each.

    Where numbers of rows are public, `parts` is "surplus": errors less half the rows, whose entries lie within half the
    rows of a bin without noise. Elsewhere errors and correct rows have independent noise, and parts are "surplus",
    errors less correct rows, and "rows", both together: in each the noise of an entry is the sum of two. A party's rows
    are in one bin of each feature, so that neither part is longer than `most` times the root of the number of features.
    """

    def __init__(self, question: MarginalsQuestion, most: int) -> None:
        noise = question.mechanism()
        assert isinstance(noise, MarginalNoise), "published rates have no noise beyond their range"
        self._public = question.protect == Unit.LABEL.value
        self._paired = not self._public and question.asks == "errors"
        surplus = ("surplus",) if question.asks == "errors" else ()
        self.parts: tuple[str, ...] = (*surplus, *(() if self._public else ("rows",)))  # rows are public, or have noise
        beyond = BEYOND / 2 / max(len(self.parts), 1)
        self._entry, self._norm = _reaches(noise, question.bins.total, beyond, paired=self._paired)
        self._most, self._spread, self._starts = most, math.sqrt(len(question.bins.sizes)), question.bins.starts
        self.variance = noise.deviation**2 * (2 if self._paired else 1)

    def bounded(self, arrays: Arrays) -> tuple[dict[str, Floats], Booleans, Floats]:
        """The parts of answers (P, K) within the range, whose were not, (P,), and how many rows each party has.

        The latter are public, or else taken to be equal.
        """
        rows, changed = arrays["rows"], np.zeros(len(arrays["rows"]), dtype=bool)
        held = np.full(len(rows), float(self._most))
        honest, found = Range(held + self._entry, held * self._spread + self._norm), {"rows": rows}
        if self._paired:
            found["surplus"] = 2 * arrays["errors"] - rows
        elif self._public and "errors" in arrays:
            held = np.add.reduceat(rows, self._starts, axis=1)[:, 0]
            found["surplus"] = arrays["errors"] - rows / 2
            honest = Range(rows.max(axis=1) / 2 + self._entry, np.linalg.norm(rows, axis=1) / 2 + self._norm)
        for part in self.parts:
            kept, scaled = honest.bounded(found[part][:, None], _HALVES)
            found[part], changed = kept[:, 0], changed | scaled
        return found, changed, np.maximum(held, 1.0)

    def arrays(self, parts: Arrays) -> dict[str, Floats]:
        """The answers' fields of these parts, or what is added to them."""
        if self._public:
            return {} if "surplus" not in parts else {"errors": parts["surplus"] + parts.get("rows", 0.0) / 2}
        if self._paired:
            return {"errors": (parts["surplus"] + parts["rows"]) / 2, "rows": parts["rows"]}
        return {"rows": parts["rows"]}


@lru_cache  # all queries of an exchange have the same
def _reaches(noise: MarginalNoise, cells: int, beyond: float, *, paired: bool) -> tuple[float, float]:
    """How far noise takes one of so many cells, or sums of two, and how far their norm."""
    single, pair = (gaussian_tail, gaussian_pair_tail) if noise.delta else (laplace_tail, laplace_pair_tail)
    tail = (pair if paired else single)(noise.scale)
    return entry_reach(tail, beyond / cells), norm_reach(tail, cells, beyond)
