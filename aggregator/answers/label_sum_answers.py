"""Adds up what parties say of their public rows and real labels in one noisy sum, and refuses what none can say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aggregator.answers.exact_total import ExactTotal
from aggregator.answers.honest_range import REACH
from aggregator.answers.label_sum_range import LabelSumRange
from aggregator.answers.local_answers import CheckedAnswers
from aggregator.answers.robust_sums import BOUNDED, Changes, Robustness
from federation.contract.guarantee import Guarantee
from federation.numerics.rows import Booleans, Floats
from federation.queries.labels import LabelSumsQuestion

_ROUNDING = 1e-9  # relative, of sums over the rows of a party
_TRACE = 2.0  # noise in the best shape has at most this multiple of the variance of a ball, and mostly much less

Arrays = Mapping[str, Floats]


class LabelSumAnswers(CheckedAnswers):
    """The sums over K parties of X'X, X'1, X'y with noise and its covariance; no answer is kept by itself.

    Public are the range of labels, X'X, and the law of the noise: X'y can lie 40 standard deviations beyond the largest
    honest value, and no further. Sums within that, but longer than honest ones are by their noise, are scaled to what
    those reach, unless `robustness` says otherwise.
    """

    question: LabelSumsQuestion

    def __init__(
        self, question: LabelSumsQuestion, parties: int, promise: Guarantee | None, robustness: Robustness = BOUNDED
    ) -> None:
        super().__init__(question, parties, promise)
        self.recipe, self._scaled = (robustness,), 0
        self._range = LabelSumRange(question) if question.noise.aims and robustness.bounded else None
        self._largest = max(abs(end) for end in question.rows.label_range)
        self._deviation = 0.0
        if question.noise.aims:  # as for rows in all directions: fewer have no more noise
            self._deviation = question.mechanism(np.eye(question.rows.feature_map.dimension)).variance() ** 0.5
        self._totals = {name: ExactTotal(field.shape) for name, field in self._fields.items()}

    def total(self, name: str) -> Floats:
        """One field, summed over the parties that answered: the same bits in whatever order they did."""
        return self._totals[name].value

    @property
    def changes(self) -> Changes | None:
        """How many answers were scaled; None where they are taken as they come."""
        return None if self._range is None else Changes(self.answered, self._scaled, 0)

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        if self._range is not None:
            moments, scaled = self._range.bounded(arrays)
            arrays = {**arrays, "moment": moments}
            self._scaled += int(np.count_nonzero(scaled))
        for name, total in self._totals.items():
            total.add(arrays[name])

    def _well_formed(self, arrays: Arrays) -> Booleans:
        """X'X that is one, and sums and noise that can come with it: |x'y| <= |x| |y| for every column x."""
        fine = (arrays["size"] == np.floor(arrays["size"])) & _second_moments(arrays["gram"])
        squares = np.diagonal(arrays["gram"], axis1=1, axis2=2).clip(0.0)
        norms, root = np.sqrt(squares), np.sqrt(arrays["size"])[:, None] * (1 + _ROUNDING)
        if self.question.shape == "isotropic":
            longest = np.sqrt(squares.sum(axis=1, keepdims=True))
        else:
            longest = np.sqrt(_TRACE * norms.shape[1]) * norms
        deviation = self._deviation * longest
        reach = root * self._largest * norms + REACH * deviation
        reach += _ROUNDING * reach.max(axis=1, keepdims=True)  # noise comes back in all columns, those of zeros too
        fine &= (np.abs(arrays["moment"]) <= reach[:, None]).all(axis=(1, 2))
        if "covariance" not in arrays:
            return np.asarray(fine)
        deviation = deviation + _ROUNDING * deviation.max(axis=1, keepdims=True)
        fine &= (np.diagonal(arrays["covariance"], axis1=1, axis2=2) <= deviation**2).all(axis=1)
        fine &= (np.abs(arrays["row_sum"]) <= root * norms).all(axis=1)
        return np.asarray(fine & _second_moments(arrays["covariance"]))


def _second_moments(matrices: Floats) -> Booleans:
    """Which of (P, d, d) are symmetric and positive semidefinite but for rounding, in units of their diagonals."""
    squares = np.diagonal(matrices, axis1=1, axis2=2)
    scale = np.sqrt(np.where(squares > 0, squares, 1.0))
    scaled = matrices / scale[:, :, None] / scale[:, None, :]
    rounding = _ROUNDING * scaled.shape[1]
    fine = (squares >= 0).all(axis=1) & (np.abs(scaled - scaled.swapaxes(1, 2)) <= rounding).all(axis=(1, 2))
    fine &= (np.abs(scaled) <= 1 + rounding).all(axis=(1, 2))
    fine[fine] = np.linalg.eigvalsh(scaled[fine])[:, 0] >= -rounding
    return np.asarray(fine)
