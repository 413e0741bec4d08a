"""What the literature uses for label counts: loosely calibrated noise and a Dirichlet around noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import independent_laplace
from federation.mechanisms.counts.additive import equal_counts, exchangeable
from federation.mechanisms.counts.count_mechanism import CountReplacement
from federation.mechanisms.counts.dirichlet_sampler import log_gamma
from federation.mechanisms.counts.discrete_gaussian import CountGaussian, exact_delta
from federation.mechanisms.counts.grid import smallest_scale
from federation.mechanisms.counts.independent_laplace import IndependentLaplace
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats, Integers

_TINY = 1e-3  # in records: what a noisy count that is not positive is replaced by
_VARIANCE_ENTRIES = 100_000  # draws times classes of the covariance


def published_laplace(classes: int, epsilon: float) -> IndependentLaplace:
    """Discrete Laplace noise of scale 2/epsilon on every count: pure, by an L1 sensitivity of 2 (Dwork et al. 2006).

    Raises `InputError` where the scale exceeds 2^39 counts.

    Examples:
        >>> published_laplace(classes=3, epsilon=0.5).scale
        Fraction(4, 1)
    """
    return independent_laplace.calibrate(classes, epsilon, 0.0)


def published_gaussian(classes: int, epsilon: float, delta: float) -> CountGaussian:
    """Noise of the classic sigma = sqrt(2 ln(1.25/delta)) sqrt(2)/epsilon (Dwork, Roth 2014, Theorem A.1).

    It claims what this sigma really gives: the exact delta at `epsilon`, far below the given one for small
    epsilon, and above it where the theorem does not hold (epsilon > 1). Raises `InputError` where that is 1.

    Examples:
        >>> made = published_gaussian(classes=3, epsilon=0.5, delta=1e-5)
        >>> float(made.scale), made.delta
        (13.7, 1.604e-08)
    """
    wanted = math.sqrt(2 * math.log(1.25 / delta)) * math.sqrt(2) / epsilon
    sigma = smallest_scale(lambda scale: scale >= wanted, wanted)
    true = exact_delta(epsilon, float(sigma))
    if true >= 1:
        raise InputError(
            f"noise published_gaussian hides nothing at epsilon {epsilon:g}, far beyond its theorem, which ends at 1; "
            "choose gaussian"
        )
    return CountGaussian(classes, epsilon, true, sigma)


@dataclass(frozen=True)
class LaplacePrior(CountReplacement):
    """A draw from the Dirichlet law whose parameters are counts with Laplace noise 2/epsilon, kept positive.

    The draw is post-processing of the noisy counts, so it is as private as they are: `noise` says how much.

    Examples:
        >>> prior = LaplacePrior(published_laplace(3, epsilon=1.0))
        >>> prior.release(np.array([50, 30, 20]), NoiseBits(1, "example")).round(1)
        array([[48.4, 28.4, 23.3]])
    """

    noise: IndependentLaplace

    name: ClassVar[str] = "laplace_prior"

    @property
    def classes(self) -> int:
        """C, how many classes there are."""
        return self.noise.classes

    @property
    def epsilon(self) -> float:
        """The epsilon that one release claims."""
        return self.noise.epsilon

    @property
    def delta(self) -> float:
        """The delta that one release claims: 0, as the noise is pure."""
        return self.noise.delta

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        return self.noise.parameters | {"least": _TINY}

    def release(self, counts: Integers, bits: NoiseBits, draws: int = 1) -> Floats:
        """Size times Dirichlet draws, shape (draws, C) float64, every entry >= 0.

        Raises `InputError` for counts that are no counts of the classes.
        """
        noisy = np.maximum(self.noise.noisy(counts, bits, draws), _TINY)
        log = log_gamma(bits, noisy.ravel(), 1).reshape(noisy.shape)
        shares: Floats = np.exp(log - log.max(axis=1, keepdims=True))
        total: Floats = shares.sum(axis=1, keepdims=True)
        return int(np.sum(counts)) * shares / total

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of the noisy counts at another epsilon >= 0; the draw can only lower it."""
        return self.noise.delta_at(epsilon)

    def covariance(self, size: int) -> Floats:
        """Covariance (C, C) of the released counts at equal ones, from seeded draws: within about 1 %."""
        counts = equal_counts(self.classes, size)
        released = self.release(
            counts, NoiseBits(1, "variance of laplace_prior"), max(100, _VARIANCE_ENTRIES // self.classes)
        )
        return exchangeable(float(released.var(axis=0).mean()), self.classes)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on: that of the noisy counts."""
        return self.noise.assumptions
