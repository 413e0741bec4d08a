"""Collects what parties say about their real labels, and refuses what no honest party can say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from aggregator.answers.honest_range import REACH
from aggregator.answers.local_answers import LocalAnswers
from federation.contract.guarantee import Guarantee
from federation.mechanisms.bag_sums.noisy_labels import LaplaceBagSums
from federation.mechanisms.labels.randomised_response import BinnedResponse
from federation.queries.labels import BagSumsQuestion, LabelQuestion, PrivateLabelsQuestion, WeightedSumsQuestion

_ROUNDING = 1e-9  # relative, of sums over the rows of a party
_GRID = 1e-5  # of the range, times a bag's weights: noise of a bag is never finer than a small part of it

Arrays = Mapping[str, np.ndarray]


class LabelAnswers(LocalAnswers):
    """Answers of K parties to one question about real labels, of rows or of bags.

    Public are the range of labels, the rows and weights that come with an answer, and the law of the noise: what is
    said of labels can lie 40 standard deviations beyond the largest honest value, and no further. Sums of rows under
    secret weights have no such bound.
    """

    changes: ClassVar[None] = None  # of what was said: all of it is taken as it comes
    question: LabelQuestion

    def __init__(self, question: LabelQuestion, parties: int, promise: Guarantee | None) -> None:
        super().__init__(question, parties, promise)
        low, high = question.rows.label_range
        self._middle, self._half, self._largest = low + (high - low) / 2, (high - low) / 2, max(abs(low), abs(high))
        self._deviation, self._values = self._noise(question) if question.noise.aims else (0.0, (low, high))

    def _well_formed(self, arrays: Arrays) -> np.ndarray:
        """Which parties' answers can be those of honest parties, (P,)."""
        question = self.question
        if isinstance(question, PrivateLabelsQuestion):
            return self._labels(arrays)
        if isinstance(question, WeightedSumsQuestion):
            spread = math.hypot(question.design.size**0.5 * self._largest, self._deviation)
            return _whole(arrays["formed"]) & (np.abs(arrays["label_sums"]) <= REACH * spread).all(axis=(1, 2))
        assert isinstance(question, BagSumsQuestion)
        return self._bags(arrays, question)

    def _noise(self, question: LabelQuestion) -> tuple[float, tuple[float, float]]:
        """The largest standard deviation of noise, on a label where bags are weighted, and where labels can lie."""
        low, high = question.rows.label_range
        if isinstance(question, PrivateLabelsQuestion):
            mechanism = question.mechanism()
            if isinstance(mechanism, BinnedResponse):
                return 0.0, (min(mechanism.values), max(mechanism.values))
            deviation = float(np.max(mechanism.variance())) ** 0.5
            return deviation, (low - REACH * deviation, high + REACH * deviation)
        if isinstance(question, WeightedSumsQuestion):
            return question.mechanism().tau, (low, high)
        assert isinstance(question, BagSumsQuestion)
        bags = question.mechanism()
        return (2**0.5 * bags.scale if isinstance(bags, LaplaceBagSums) else bags.sigma), (low, high)

    def _labels(self, arrays: Arrays) -> np.ndarray:
        """Labels where the mechanism can put them, and zeros where there is no row."""
        low, high = self._values
        slack = _ROUNDING * self._largest
        held = np.arange(arrays["labels"].shape[2]) < arrays["size"][:, None]
        labels = arrays["labels"].swapaxes(0, 1)
        inside = np.where(held, (labels >= low - slack) & (labels <= high + slack), labels == 0)
        empty = (arrays["rows"] == 0).all(axis=2) | held
        return np.asarray(_whole(arrays["size"]) & inside.all(axis=(0, 2)) & empty.all(axis=1))

    def _bags(self, arrays: Arrays, question: BagSumsQuestion) -> np.ndarray:
        """Sums that the published weights can give."""
        weights = arrays["weights"]
        total, sizes = weights.sum(axis=3), np.abs(weights).sum(axis=3)
        if question.noise.kind == "laplace":
            deviation = np.full(total.shape, self._deviation)
        else:
            deviation = self._deviation * np.sqrt(np.square(weights).sum(axis=3))
        slack = (_GRID * self._half + _ROUNDING * self._largest) * sizes
        beyond = np.abs(arrays["sums"] - self._middle * total) - self._half * sizes - slack
        fine = (beyond <= REACH * deviation).all(axis=(1, 2))
        formed = np.arange(weights.shape[2]) < arrays["formed"][:, None]
        if question.design.weights == "signs":
            fine &= (np.abs(weights) == formed[:, None, :, None]).all(axis=(1, 2, 3))
        return np.asarray(fine & _whole(arrays["formed"]))


def _whole(sizes: np.ndarray) -> np.ndarray:
    return np.asarray(sizes == np.floor(sizes))
