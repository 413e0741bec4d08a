"""Adds up the answers of all parties to one query of an exchange, and refuses what no honest party can say."""

from __future__ import annotations

import numpy as np

from aggregator.answers.local_answers import SummedAnswers
from federation.contract.guarantee import Guarantee, Unit
from federation.contract.question import OFF
from federation.questions.marginals import PUBLISHED, MarginalsQuestion

_REACH = 40.0  # standard deviations: Laplace noise goes further with a probability below e^-56
_GRID = 2.0**20  # published rates times rows are whole multiples of its inverse: their sum is the same in any order


class MarginalAnswers(SummedAnswers):
    """Numbers of errors and of rows per bin, summed over parties of at most `most` rows each.

    Noise takes a number of errors, or of correct rows, 40 standard deviations further than an honest one at most.
    Numbers of rows without noise are those of the same rows in the bins of every feature.
    """

    question: MarginalsQuestion

    def __init__(self, question: MarginalsQuestion, parties: int, most: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        noise = question.noise.kind
        self._published = noise == PUBLISHED
        self._most = most
        self._reach = 0.0 if noise == OFF else _REACH * question.mechanism().deviation
        self._exact_rows = noise == OFF or question.protect == Unit.LABEL.value

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

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        if "rates" in arrays:
            arrays = {**arrays, "rates": np.rint(arrays["rates"] * arrays["rows"] * _GRID) / _GRID}
        super()._keep(parties, arrays)

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        rows, errors = arrays["rows"], arrays.get("errors")
        fine = np.ones(len(rows), dtype=bool)
        if self._exact_rows:
            totals = np.add.reduceat(rows, self.question.bins.starts, axis=1)
            fine &= ((totals == totals[:, :1]) & (totals <= self._most)).all(axis=1) & self._possible(rows, 0.0)
        elif errors is None:
            fine &= self._possible(rows, self._reach)
        if errors is not None:
            fine &= self._possible(errors, self._reach) & self._possible(rows - errors, self._reach)
        return fine

    def _possible(self, counts: np.ndarray, reach: float) -> np.ndarray:
        """Which parties' whole numbers (P, K) lie within `reach` of numbers of rows, (P,)."""
        whole = counts == np.floor(counts)
        return np.asarray((whole & (counts >= -reach) & (counts <= self._most + reach)).all(axis=1))
