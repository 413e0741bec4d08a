"""Adds up the answers of all parties to one query of an exchange, and refuses what no honest party can say."""

from __future__ import annotations

import math

import numpy as np

from aggregator.answers.honest_range import REACH
from aggregator.answers.local_answers import SummedAnswers
from aggregator.answers.robust_sums import BOUNDED, Changes, GatedSum, Robustness
from aggregator.protocols.error_marginals.marginal_range import MarginalRange
from federation.contract.guarantee import Guarantee, Unit
from federation.contract.query import OFF
from federation.numerics.binning import Bins
from federation.queries.marginals import PUBLISHED, MarginalsQuestion

_GRID = 2.0**20  # published rates times rows are whole multiples of its inverse: their sum is the same in any order


class MarginalAnswers(SummedAnswers):
    """Numbers of errors and of rows per bin, summed over parties of at most `most` rows each.

    Noise takes a number of errors, or of correct rows, 40 standard deviations further than an honest one at most.
    Numbers of rows without noise are those of the same rows in the bins of every feature. An answer within that, but
    longer than an honest one is by its noise, is scaled to what that reaches (`MarginalRange`), and where answers are
    few enough to be kept, they are clipped along directions in which they spread more than noise. `robustness` says
    otherwise; exact answers and published rates, which are clipped anyway, are summed as they come.
    """

    question: MarginalsQuestion

    def __init__(
        self,
        question: MarginalsQuestion,
        parties: int,
        most: int,
        promise: Guarantee | None,
        robustness: Robustness = BOUNDED,
    ) -> None:
        super().__init__(question, parties, promise)
        noise = question.noise.kind
        self._published = noise == PUBLISHED
        self._most = most
        self._reach = 0.0 if noise == OFF else REACH * question.mechanism().deviation
        self._exact_rows = noise == OFF or question.protect == Unit.LABEL.value
        self.recipe, self._alike, self._scaled = (robustness,), robustness.alike, 0
        bounded = robustness.bounded and noise not in (OFF, PUBLISHED)
        self._range = MarginalRange(question, most) if bounded else None
        parts = () if self._range is None else self._range.parts
        self._gates = {part: GatedSum(parties, 1, question.bins.total) for part in parts}
        self._corrected: tuple[dict[str, np.ndarray], int] | None = None

    @property
    def errors(self) -> np.ndarray | None:
        """Noisy errors per bin (K,); None where only rows were asked for. Published: rates times numbers of rows."""
        if self.question.asks == "rows":
            return None
        return self.total("rates" if self._published else "errors")

    @property
    def rows(self) -> np.ndarray:
        """Rows per bin (K,), noisy where rows are protected."""
        return self.total("rows")

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered, or what is left of their answers."""
        moved, clipped = self._correction
        return super().total(name) + moved[name] if clipped and name in moved else super().total(name)

    @property
    def changes(self) -> Changes | None:
        """How many answers were scaled and clipped; None where they are summed as they come."""
        return None if self._range is None else Changes(self.answered, self._scaled, self._correction[1])

    @property
    def _correction(self) -> tuple[dict[str, np.ndarray], int]:
        """What clipping adds to the totals, and of how many parties something was clipped."""
        if self._range is None:
            return {}, 0
        if self._corrected is None:
            longest = math.sqrt(len(self.question.bins.sizes))  # a row is in one bin of each feature
            moved, clipped = {}, np.zeros(0, dtype=np.int64)
            for part, gate in self._gates.items():
                shift, ids = gate.correction(self._range.variance, longest, alike=self._alike)
                moved[part], clipped = shift[0], np.union1d(clipped, ids)
            self._corrected = self._range.arrays(moved), len(clipped)
        return self._corrected

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        if "rates" in arrays:
            arrays = {**arrays, "rates": np.rint(arrays["rates"] * arrays["rows"] * _GRID) / _GRID}
        if self._range is not None:
            kept, scaled, rows = self._range.bounded(arrays)
            self._scaled += int(np.count_nonzero(scaled))
            for part, gate in self._gates.items():
                gate.keep(parties, kept[part][:, None], rows)
            arrays, self._corrected = {**arrays, **self._range.arrays(kept)}, None
        super()._keep(parties, arrays)

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        rows, errors = arrays["rows"], arrays.get("errors")
        fine = np.ones(len(rows), dtype=bool)
        if self._exact_rows:
            fine &= possible_rows(self.question.bins, rows, self._most)
        elif errors is None:
            fine &= self._possible(rows, self._reach)
        if errors is not None:
            fine &= self._possible(errors, self._reach) & self._possible(rows - errors, self._reach)
        return fine

    def _possible(self, counts: np.ndarray, reach: float) -> np.ndarray:
        """Which parties' whole numbers (P, K) lie within `reach` of numbers of rows, (P,)."""
        return _possible(counts, self._most, reach)


def possible_rows(bins: Bins, rows: np.ndarray, most: int) -> np.ndarray:
    """Which parties' exact numbers of rows per bin (P, K) are of the same rows in every feature, `most` at most."""
    totals = np.add.reduceat(rows, bins.starts, axis=1)
    return np.asarray(((totals == totals[:, :1]) & (totals <= most)).all(axis=1) & _possible(rows, most, 0.0))


def _possible(counts: np.ndarray, most: int, reach: float) -> np.ndarray:
    whole = counts == np.floor(counts)
    return np.asarray((whole & (counts >= -reach) & (counts <= most + reach)).all(axis=1))
