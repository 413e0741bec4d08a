"""Randomised response on bins: the label's bin, or any, and for each bin one value (Ghazi et al. 2022).

As published, values and bins lose least in squared error on average over a prior, which pulls every label towards the
prior's mean and shrinks whatever is learned from it. Debiased, the values are spread until the mean answers have slope
1 in the labels, on average over the prior: linear models are not shrunk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import response
from federation.mechanisms.labels.bins import MAX_POINTS, Bins, optimal_bins
from federation.mechanisms.labels.label_mechanism import LabelReplacement
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.noise.checks import require_epsilon_from_zero
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats, Integers

_FLAT = 0.05  # bins whose means have a smaller slope in the labels tell too little of them
_LARGE_EPSILON = 50.0  # from here on nothing is lost by treating answers as true


@dataclass(frozen=True)
class BinnedResponse(LabelReplacement):
    """Bin j holds the points starts[j] .. starts[j+1] - 1 of `points` evenly spaced ones in the range; pure.

    A label belongs to the nearest point, and its bin is kept or, with probability redraw / 2^64, drawn afresh; the
    answer is values[bin].
    """

    labels: LabelRange
    epsilon: float
    points: int
    starts: tuple[int, ...]
    values: tuple[float, ...]
    redraw: int

    name: ClassVar[str] = "label_bins"
    delta: ClassVar[float] = 0.0

    @property
    def parameters(self) -> Parameters:
        """Public numbers; bins begin at `starts` and answer `values`."""
        bins = {"starts": " ".join(map(str, self.starts)), "values": " ".join(map("{:.17g}".format, self.values))}
        sizes = {"points": self.points, "bins": len(self.starts)}
        return {"low": self.labels.low, "high": self.labels.high, **sizes, **bins}

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Values of bins, (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        return np.array(self.values)[response.respond(self._bins(labels), len(self.starts), self.redraw, bits)]

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """Of the answers to each given label (n,); without labels the largest of any label."""
        values = np.array(self.values)
        by_bin = self._mean_answer(np.square(values)) - np.square(self._mean_answer(values))
        return float(by_bin.max()) if labels is None else by_bin[self._bins(labels)]

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """E answer - label for each given label (n,); without labels its largest size, at an end of some bin."""
        means = self._mean_answer(np.array(self.values))
        if labels is not None:
            return means[self._bins(labels)] - self.labels.checked(labels)
        edges = np.array([*self.starts, self.points]) - 0.5
        edges[0], edges[-1] = 0, self.points - 1
        places = self.labels.points(edges, self.points - 1)
        return float(max(np.abs(means - places[:-1]).max(), np.abs(means - places[1:]).max()))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: that of two different bins."""
        epsilon = require_epsilon_from_zero(epsilon)
        return response.delta(epsilon, len(self.starts), self.redraw)

    @property
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        return (
            Assumption("bins and their values come from a prior that is public", Check.DECLARED, Keeper.COORDINATOR),
            Assumption("each label has random words of its own, compared as integers", Check.ENFORCED),
        )

    def _bins(self, labels: Floats) -> Integers:
        return np.searchsorted(self.starts, self.labels.positions(labels, self.points - 1), side="right") - 1

    def _mean_answer(self, values: Floats) -> Floats:
        """E values[answer] by true bin, (k,)."""
        true, other = response.probabilities(len(values), self.redraw)
        return other * float(values.sum()) + (true - other) * values


def calibrate(labels: LabelRange, epsilon: float, prior: Floats, debiased: bool = False) -> BinnedResponse:
    """Epsilon-private randomised response on the bins of least mean squared error under a public prior (B,).

    The prior weighs B evenly spaced points from the low end of the range to its high end. As published, answers are
    biased. `debiased` takes, of the published bins for each number of them above 1, those whose debiased answers have
    the least mean squared error. Raises `InputError` for epsilon below 1e-6 or a prior that is none, of fewer than 2
    or more than 512 points, or to be debiased with all weight on one point.

    Examples:
        >>> prior = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
        >>> noise = calibrate(LabelRange(0.0, 10.0), epsilon=2.0, prior=prior)
        >>> noise.starts, [round(value, 2) for value in noise.values]
        ((0, 2, 3), [2.81, 5.0, 7.19])
        >>> noise.release(np.array([1.0, 5.0, 9.0]), NoiseBits(1, "example")).round(2)
        array([2.81, 5.  , 7.19])
    """
    prior = _checked_prior(prior)
    size = len(prior)
    points = labels.points(np.arange(size), size - 1)
    found = optimal_bins(points, prior, min(epsilon, _LARGE_EPSILON))
    if not debiased:
        best = min(found, key=lambda bins: bins.loss)
        redraw = response.calibrate(len(best.starts), epsilon)
        return BinnedResponse(labels, epsilon, size, best.starts, best.values, redraw)
    steep = [bins for bins in found if _slope(points, prior, bins) > _FLAT]
    candidates = [_debiased(labels, epsilon, points, prior, bins) for bins in steep]
    if not candidates:
        raise InputError("prior must have weight on two points or more, or answers cannot be debiased; choose one_bit")
    return min(candidates, key=lambda mechanism: sum(mean_errors(mechanism, prior)))


def mean_errors(mechanism: BinnedResponse, prior: Floats | None = None) -> tuple[float, float]:
    """Mean variance and mean squared bias of the answers over a prior on the mechanism's points, by default uniform.

    Examples:
        >>> prior = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
        >>> mean_errors(calibrate(LabelRange(0.0, 10.0), 2.0, prior), prior)
        (1.648, 2.871)
        >>> mean_errors(calibrate(LabelRange(0.0, 10.0), 2.0, prior, debiased=True), prior)
        (10.43, 0.9375)
    """
    size = mechanism.points
    weights = np.full(size, 1 / size) if prior is None else prior
    points = mechanism.labels.points(np.arange(size), size - 1)
    return float(weights @ mechanism.variance(points)), float(weights @ np.square(mechanism.bias(points)))


def _debiased(labels: LabelRange, epsilon: float, points: Floats, prior: Floats, bins: Bins) -> BinnedResponse:
    """The same bins, with values whose mean answer to bin j is t_j = mu + (m_j - mu)/slope, m_j the prior's mean there.

    (1 - lambda) v_j + lambda mean(v) = t_j, so v_j = (t_j - lambda mean(t)) / (1 - lambda).
    """
    redraw = response.calibrate(len(bins.starts), epsilon)
    kept = (response.WORDS - redraw) / response.WORDS
    mean = prior @ points
    targets = mean + (_bin_means(points, prior, bins)[1] - mean) / _slope(points, prior, bins)
    values = (targets - (1 - kept) * targets.mean()) / kept
    return BinnedResponse(labels, epsilon, len(points), bins.starts, tuple(map(float, values)), redraw)


def _slope(points: Floats, prior: Floats, bins: Bins) -> float:
    """Of the least squares line through bin means over labels: Var m / Var y, from 0 to 1."""
    weights, means = _bin_means(points, prior, bins)
    variance = prior @ np.square(points - prior @ points)
    return float(weights @ np.square(means - prior @ points) / variance) if variance > 0 else 0.0


def _bin_means(points: Floats, prior: Floats, bins: Bins) -> tuple[Floats, Floats]:
    """Weight and mean of the prior in each bin, (k,); the middle of a bin without weight."""
    weights = np.add.reduceat(prior, bins.starts)
    middles = np.add.reduceat(points, bins.starts) / np.diff([*bins.starts, len(points)])
    moments = np.add.reduceat(prior * points, bins.starts)
    return weights, np.where(weights > 0, moments / np.where(weights > 0, weights, 1.0), middles)


def _checked_prior(prior: Floats) -> Floats:
    """The prior as float64 (B,), of sum 1 exactly. Raises `InputError` as `calibrate`."""
    given = np.asarray(prior, dtype=np.float64)
    if given.ndim != 1 or not 2 <= len(given) <= MAX_POINTS:
        raise InputError(f"prior must have 2 to {MAX_POINTS} weights, one for each point, got shape {given.shape}")
    if not (np.all(given >= 0) and math.isclose(given.sum(), 1.0, rel_tol=1e-6)):
        raise InputError("prior must be weights >= 0 of sum 1; divide counts by their sum")
    return given / float(given.sum())
