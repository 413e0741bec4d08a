"""Randomised response on bins with a prior estimated from the same labels, for a part of epsilon (Ghazi et al. 2022).

The labels' histogram is released first, by the K-norm mechanism for label counts, and what it says decides on the bins;
both releases compose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.guarantee import Assumption, Check
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import lattice_laplace
from federation.mechanisms.labels import binned_response, response
from federation.mechanisms.labels.binned_response import BinnedResponse
from federation.mechanisms.labels.bins import MAX_POINTS
from federation.mechanisms.labels.label_mechanism import LabelReplacement
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.noise.checks import require_epsilon_from_zero, require_share, require_whole
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats
from federation.numerics.simplex import project

DEFAULT_POINTS = 32
DEFAULT_SHARE = 0.2
_UNSEEN = 0.01  # of the prior goes to all points alike


@dataclass(frozen=True)
class EstimatedBins(LabelReplacement):
    """`share` of epsilon for the histogram on `points` evenly spaced points of the range, the rest for the answers.

    Examples:
        >>> noise = EstimatedBins(LabelRange(0.0, 10.0), epsilon=2.0, points=6)
        >>> labels = np.random.default_rng(1).normal(5.0, 1.0, 300).clip(0, 10)
        >>> noise.prior(labels, NoiseBits(1, "example")).round(2)
        array([0.04, 0.01, 0.48, 0.45, 0.01, 0.01])
        >>> noise.delta_at(2.0), noise.delta_at(1.0)
        (0.0, 0.3754)
    """

    labels: LabelRange
    epsilon: float
    points: int = DEFAULT_POINTS
    share: float = DEFAULT_SHARE
    debiased: bool = False

    name: ClassVar[str] = "label_estimated_bins"
    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        require_whole("points", self.points, 2, MAX_POINTS)
        require_share("share", self.share)

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        spent = {"histogram_epsilon": self._histogram.epsilon, "answer_epsilon": self._answer_epsilon}
        grid = {"points": self.points, "histogram_scale": float(self._histogram.scale)}
        return {"low": self.labels.low, "high": self.labels.high, **grid, **spent}

    def prior(self, labels: Floats, bits: NoiseBits) -> Floats:
        """The private histogram as weights (points,), none of them 0. Raises `InputError` as `LabelRange.checked`."""
        counts = np.bincount(self.labels.positions(labels, self.points - 1), minlength=self.points)
        seen: Floats = project(self._histogram.release(counts, bits) / len(labels))[0]
        return (1 - _UNSEEN) * seen + _UNSEEN / self.points

    def answers(self, prior: Floats) -> BinnedResponse:
        """The second step, given what the first released."""
        return binned_response.calibrate(self.labels, self._answer_epsilon, prior, self.debiased)

    def release(self, labels: Floats, bits: NoiseBits) -> Floats:
        """Values of bins, (n,) float64. Raises `InputError` as `LabelRange.checked`."""
        return self.answers(self.prior(labels, bits)).release(labels, bits)

    def variance(self, labels: Floats | None = None) -> Floats | float:
        """A bound for every prior: of answers in the range a quarter of its squared width; none if debiased."""
        bound = math.inf if self.debiased else self.labels.width**2 / 4
        return bound if labels is None else np.full(len(self.labels.checked(labels)), bound)

    def bias(self, labels: Floats | None = None) -> Floats | float:
        """A bound on its size for every prior, for each given label (n,), infinite where debiased."""
        if self.debiased:
            return math.inf if labels is None else np.full(len(self.labels.checked(labels)), math.inf)
        if labels is None:
            return self.labels.width
        given = self.labels.checked(labels)
        return np.maximum(given - self.labels.low, self.labels.high - given)

    def delta_at(self, epsilon: float) -> float:
        """The delta of both releases at another epsilon >= 0, exact for answers of two bins, which lose most.

        The histogram's loss is 2/s or -2/s, or 0, whatever the counts, and independent of that of the answers.
        """
        epsilon = require_epsilon_from_zero(epsilon)
        loss = 2 / float(self._histogram.scale)
        likely = 1 / lattice_laplace.ratio(self.points - 1, float(self._histogram.scale))
        losses = ((loss, likely), (-loss, likely * math.exp(-loss)), (0.0, 1 - likely * (1 + math.exp(-loss))))
        redraw = response.calibrate(2, self._answer_epsilon)
        return sum(mass * response.delta(epsilon - spent, 2, redraw) for spent, mass in losses)

    @property
    def _own_assumptions(self) -> tuple[Assumption, ...]:
        return (
            Assumption("bins come from a private histogram of the same labels; both are charged", Check.ENFORCED),
            Assumption("noise and answers are drawn exactly, in integer arithmetic", Check.ENFORCED),
        )

    @property
    def _histogram(self) -> lattice_laplace.LatticeLaplace:
        return lattice_laplace.calibrate(self.points, self.epsilon * self.share, 0.0)

    @property
    def _answer_epsilon(self) -> float:
        """What the histogram, at its own scale, leaves of epsilon."""
        return (self.epsilon - 2 / float(self._histogram.scale)) * (1 - 1e-15)
