"""Adds up the answers of all parties to one query of an exchange, and refuses what no honest party can say."""

from __future__ import annotations

import numpy as np

from aggregator.local_answers import SummedAnswers
from federation.bag_releases import OFF
from federation.guarantee import Guarantee
from federation.marginal_messages import PUBLISHED, MarginalsQuestion
from federation.marginal_releases import marginal_noise

_REACH = 40.0  # standard deviations: Laplace noise goes further with a probability below e^-56
_GRID = 2.0**20  # published rates times rows are whole multiples of its inverse: their sum is the same in any order


class MarginalAnswers(SummedAnswers):
    """Numbers of errors and of rows per bin, summed over parties of at most `most` rows each.

    Noise takes a number 40 standard deviations further than an honest one at most.
    """

    question: MarginalsQuestion

    def __init__(self, question: MarginalsQuestion, parties: int, most: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        self._published = question.noising.mechanism["noise"] == PUBLISHED
        self._most = most
        self._deviation = 0.0
        if question.noising.mechanism["noise"] != OFF:
            self._deviation = marginal_noise(question).deviation

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
        fine = np.ones(len(arrays["rows"]), dtype=bool)
        for name in arrays.keys() - {"rates"}:
            counts, reach = arrays[name], 2 * _REACH * self._deviation
            fine &= ((counts == np.floor(counts)) & (counts >= -reach) & (counts <= self._most + reach)).all(axis=1)
        return fine
