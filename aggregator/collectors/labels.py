"""Collects what parties say about their real labels, and refuses what no honest party can say.

A sum of arrays that is exact until it is read, hence the same bits in whatever order and groups they come.

What honest sums X'y with a party's own noise reach, in the shape of its rows and of its noise; longer are scaled.

Adds up what parties say of their public rows and real labels in one noisy sum, and refuses what none can say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from aggregator.collectors.collectors import CheckedAnswers, LocalAnswers
from aggregator.collectors.robust_sums import BEYOND, BOUNDED, REACH, ROUNDING, Changes, Robustness
from federation.contract.guarantee import Guarantee
from federation.mechanisms.bag_sums.noisy_labels import LaplaceBagSums
from federation.mechanisms.labels.randomised_response import BinnedResponse
from federation.mechanisms.noise.reach import additive_reaches
from federation.numerics.rows import Booleans, Floats
from federation.queries.labels import (
    BagSumsQuestion,
    LabelQuestion,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
    WeightedSumsQuestion,
)

_BITS = 24  # of a place: 2^(53 - 24) arrays can be added before a place would round
_TOGETHER = 1 << 16  # numbers that are taken apart at once: they stay in cache
_LOWEST = -40  # the last place; what lies below 2^-960 is left out


class ExactTotal:
    """The sum of arrays of one shape, held in a few arrays of whole numbers, whatever the number of arrays.

    Every number is taken apart at fixed places, multiples of 2^24b for whole b, so its parts do not depend on the
    others; whole numbers below 2^53 add without rounding (the bins of Demmel and Nguyen 2013, fixed beforehand). For
    numbers below 2^990 and at most 2^29 arrays.

    Examples:
        >>> total = ExactTotal((2,))
        >>> total.add(np.array([[1e20, 0.5], [1.0, 0.25]]))
        >>> total.add(np.array([[-1e20, 0.125]]))
        >>> total.value
        array([1.   , 0.875])
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._places: dict[int, Floats] = {}

    def add(self, arrays: Floats) -> None:
        """Add arrays (P, *shape), finite."""
        step = max(1, _TOGETHER // max(1, math.prod(self._shape)))
        for start in range(0, len(arrays), step):
            self._add(np.array(arrays[start : start + step], dtype=np.float64))

    def _add(self, rest: Floats) -> None:
        while (place := _place(float(np.abs(rest).max(initial=0.0)))) >= _LOWEST:
            unit = 2.0 ** (_BITS * place)
            whole = np.trunc(rest / unit)
            held = self._places.setdefault(place, np.zeros(self._shape))
            held += whole.sum(axis=0)
            whole *= unit
            rest -= whole

    @property
    def value(self) -> Floats:
        """The sum, rounded where the places are added, the smallest first."""
        found = np.zeros(self._shape)
        for place in sorted(self._places):
            found += self._places[place] * 2.0 ** (_BITS * place)
        return found


def _place(size: float) -> int:
    """The place of the leading bit of a number above 0, one below the last for 0."""
    return int(np.frexp(size)[1] - 1) // _BITS if size else _LOWEST - 1


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


_RIDGE = 1e-9  # of the square of an entry: directions that rows and noise lack have some, or nothing could be in them
_SPLITS = np.geomspace(1e-3, 1e3, 61)  # between what rows and what noise reach

SumArrays = Mapping[str, Floats]


class LabelSumRange:
    """Of sums over public rows X (n, d) with labels in the question's range, and noise of the covariance that is sent.

    X'(y - middle) is from an ellipsoid of shape X'X, as |y - middle|² <= n half², and the noise but for its probability
    from one of the shape of its covariance. A sum of two is in every ellipsoid of shape (1 + 1/t) A + (1 + t) B, t > 0.
    Columns are bounded each by itself, too: by Cauchy and Schwarz, and by the law of one entry of the noise.
    """

    def __init__(self, question: LabelSumsQuestion) -> None:
        low, high = question.rows.label_range
        self._middle, self._half = low + (high - low) / 2, (high - low) / 2
        self._question = question
        self._known: dict[int, tuple[float, float]] = {}

    def _reaches(self, rank: int) -> tuple[float, float]:
        """Of an entry and of the norm of noise of this rank, in standard deviations."""
        if rank not in self._known:
            noise = self._question.mechanism(np.eye(rank))
            entry, norm = additive_reaches(noise.additive, BEYOND)
            self._known[rank] = entry / noise.variance() ** 0.5, norm / noise.variance() ** 0.5
        return self._known[rank]

    def bounded(self, arrays: SumArrays) -> tuple[Floats, Booleans]:
        """The sums X'y (P, draws, d) within the range, and whose were not, (P,)."""
        moments, changed = arrays["moment"].copy(), np.zeros(len(arrays["moment"]), dtype=bool)
        for party in range(len(moments)):
            known = (arrays[name][party] for name in ("gram", "covariance", "size"))
            surplus = moments[party] - self._middle * arrays["row_sum"][party]
            kept = self._kept(surplus, *known)
            own = (kept != surplus).any(axis=1)
            moments[party, own] = (kept + self._middle * arrays["row_sum"][party])[own]
            changed[party] = own.any()
        return moments, changed

    def _kept(self, surplus: Floats, gram: Floats, covariance: Floats, size: Floats) -> Floats:
        """X'(y - middle) and noise (draws, d), no longer than that of honest parties."""
        entry, norm = self._reaches(int(np.linalg.matrix_rank(covariance, hermitian=True)) or 1)
        exact = self._half * np.sqrt(size)
        own = exact * np.sqrt(np.diagonal(gram).clip(0.0)) + entry * np.sqrt(np.diagonal(covariance).clip(0.0))
        reach = own * (1 + ROUNDING) + ROUNDING * own.max()
        cut: Floats = np.clip(surplus, -reach, reach)
        gauges = _gauges(cut, gram * exact**2, covariance * norm**2)
        return np.where(gauges[:, None] > 1 + ROUNDING, cut / np.maximum(gauges, 1.0)[:, None], cut)


def _gauges(vectors: Floats, *shapes: Floats) -> Floats:
    """How far vectors (draws, d) are out in the sum of two ellipsoids of these shapes (d, d): 1 is at its border.

    Of all ellipsoids around the sum the nearest on a grid, so that nothing in the sum is told to be out.
    """
    from scipy.linalg import eigh

    scale = np.sqrt(sum((np.diagonal(shape).clip(0.0) for shape in shapes), np.zeros(vectors.shape[1])))
    scale[scale == 0] = 1.0
    first, second = (shape / scale[:, None] / scale for shape in shapes)
    both = first + second
    # Whoever sends shapes may leave them indefinite by as much as rounding does.
    lengths, axes = eigh((both + both.T) / 2)
    axes = axes / np.sqrt(lengths.clip(0.0) + _RIDGE)
    inner = axes.T @ first @ axes
    values, turned = eigh((inner + inner.T) / 2)
    # In these coordinates the first shape is diag(values), and the second what is left to one.
    values = values.clip(0.0, 1.0)
    squares = np.square((vectors / scale) @ axes @ turned)
    split = _SPLITS[:, None]
    widths = (1 + 1 / split) * values + (1 + split) * (1 - values)
    return np.asarray(np.sqrt((squares @ (1 / widths.T)).max(axis=1)))


# relative, of sums over the rows of a party
_TRACE = 2.0  # noise in the best shape has at most this multiple of the variance of a ball, and mostly much less

LabelSumArrays = Mapping[str, Floats]


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

    def _well_formed(self, arrays: LabelSumArrays) -> Booleans:
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
