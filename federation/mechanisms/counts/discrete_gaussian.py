"""Independent discrete Gaussian noise on label counts, with the exact delta of the neighbouring pair.

For counts that differ by +1 in class i and -1 in class j the log likelihood ratio of the noisy counts is
(1 - w)/s², w = z_i - z_j, so w is sufficient: nothing of the loss is in the other classes, and centring, which
keeps w, loses nothing either. Sampler: Canonne, Kamath, Steinke 2020.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import AdditiveCounts, centred_l1
from federation.mechanisms.counts.grid import smallest_scale
from federation.mechanisms.noise import discrete_gaussian, gaussian
from federation.mechanisms.noise.checks import require_epsilon_from_zero
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats, Integers

_MAX_SUM_SIGMA = 100.0  # beyond, the corrected integral is exact to double precision
_MOST_EPSILON = 1e6  # whose delta bounds that of larger ones, where no integer holds the threshold
_REACH = 26  # in sigma: what the sum leaves out is below e^-160 of its first terms
_SAFE = 2e-9  # relative distance to the safe side of delta: covers the rounding of its computation
# B_p(u)/p! for p = 2..7, coefficients of u^p, ..., u^0 (Euler-Maclaurin)
_BERNOULLI = tuple(
    np.poly1d(coefficients) / math.factorial(len(coefficients) - 1)
    for coefficients in (
        (1, -1, 1 / 6),
        (1, -3 / 2, 1 / 2, 0),
        (1, -2, 1, 0, -1 / 30),
        (1, -5 / 2, 5 / 3, 0, -1 / 6, 0),
        (1, -3, 5 / 2, 0, -1 / 2, 0, 1 / 42),
        (1, -7 / 2, 7 / 2, 0, -7 / 6, 0, 1 / 6, 0),
    )
)


@dataclass(frozen=True)
class CountGaussian(AdditiveCounts):
    """Independent noise with P[k] ∝ exp(-k²/(2 scale²)) on every count."""

    name: ClassVar[str] = "count_gaussian"
    law: ClassVar[str] = "the discrete Gaussian of standard deviation `scale`, independent for each class"

    @property
    def gaussian_mu(self) -> float | None:
        """sqrt 2 / sigma, for composition; None below sigma = 1, where the comparison has no proof."""
        return math.sqrt(2) / float(self.scale) if self.scale >= 1 else None

    @property
    def parameters(self) -> Parameters:
        """Public numbers; composition reads `dimension` (the two counts that differ) and `grid_scale` <= sigma."""
        record = super().parameters
        return record if self.gaussian_mu is None else record | {"dimension": 2, "grid_scale": math.floor(self.scale)}

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""
        epsilon = require_epsilon_from_zero(epsilon)
        return exact_delta(epsilon, float(self.scale))

    def variance(self) -> float:
        """Of one released count: scale² (1 - 1/C), with the lattice's correction where it is not negligible."""
        sigma = float(self.scale)
        if sigma > _MAX_SUM_SIGMA:
            return sigma**2 * (1 - 1 / self.classes)
        k, mass = _terms(sigma, 0.0)
        return float(k**2 @ mass / mass.sum()) * (1 - 1 / self.classes)

    def expected_l1(self) -> float:
        """E sum_i |released count_i - count_i|, in records; relative error below 1e-4."""
        return centred_l1(_characteristic, float(self.scale), self.classes, tail=9.0)

    def escape(self, count: float) -> float:
        """exp(-count²/(2 scale² (1 - 1/C))): the discrete Gaussian is subgaussian (Canonne et al. 2020)."""
        return math.exp(-0.5 * (count / float(self.scale)) ** 2 / (1 - 1 / self.classes))

    def _noise(self, bits: NoiseBits, draws: int) -> Integers:
        return discrete_gaussian.sample(bits, self.scale, draws * self.classes).reshape(draws, self.classes)


def calibrate(classes: int, epsilon: float, delta: float) -> CountGaussian:
    """The least noise on the grid whose exact delta at `epsilon` > 0 is at most `delta` in (0, 1).

    Examples:
        >>> noise = calibrate(classes=3, epsilon=1.0, delta=1e-6)
        >>> float(noise.scale), noise.expected_l1()
        (5.977, 11.68)
    """
    limit = delta * (1 - _SAFE)
    near = math.sqrt(2) / gaussian.mu(epsilon, delta)
    scale = smallest_scale(lambda scale: exact_delta(epsilon, float(scale)) <= limit, near)
    return CountGaussian(classes, epsilon, delta, scale)


def exact_delta(epsilon: float, sigma: float) -> float:
    """The exact delta at `epsilon` >= 0 of noise of parameter sigma for the pair (+1, -1).

    P[w] ∝ exp(-w²/4s²) theta(w), with theta(w) the sum of exp(-(z + w/2)²/s²) over integers z, which depends
    on the parity of w only; delta is the sum of P[w] (1 - e^{epsilon - (1-w)/s²}) over w < 1 - epsilon s².
    Where theta is constant to double precision, that sum is the integral, `gaussian.delta(epsilon, sqrt 2/s)`,
    and Euler-Maclaurin terms at the threshold, relative remainder below 1e-13.

    Examples:
        >>> exact_delta(1.0, sigma=4.0), float(gaussian.delta(1.0, math.sqrt(2) / 4))
        (0.000387, 0.0003978)
    """
    epsilon = min(epsilon, _MOST_EPSILON)
    threshold = 1 - epsilon * sigma**2
    last = math.ceil(threshold) - 1
    if sigma > _MAX_SUM_SIGMA:
        return _corrected_integral(epsilon, sigma, threshold, threshold - last)
    w = np.arange(last - math.ceil(_REACH * sigma) - 2, last + 1)
    thetas = [_terms(sigma / math.sqrt(2), offset)[1].sum() for offset in (0.0, 0.5)]
    mass = np.exp(-np.square(w / (2 * sigma))) * np.where(w % 2 == 0, *thetas)
    loss = (1 - w) / sigma**2
    return float(mass @ -np.expm1(epsilon - loss)) / float(_terms(sigma, 0.0)[1].sum() ** 2)


def _corrected_integral(epsilon: float, sigma: float, threshold: float, u: float) -> float:
    """sum over n >= 0 of h(t - u - n) for h(w) = f(w) - e^epsilon f(w-2), f the normal density of variance 2 s².

    The p-th term is -B_p(u)/p! times the (p-1)-th derivative of h at t, mirrored: tau^{1-p} f(t) (He_{p-1}(x) -
    He_{p-1}(y)) with tau = sqrt 2 s, x = t/tau, y = x - 2/tau, because e^epsilon f(t - 2) = f(t).
    """
    tau = math.sqrt(2) * sigma
    x = threshold / tau
    y = x - 2 / tau
    correction, power = 0.0, 1.0
    hermite, gaps = [1.0, y], [0.0, 2 / tau]  # He_n(y) and He_n(x) - He_n(y)
    for n, polynomial in enumerate(_BERNOULLI, 1):
        power /= tau
        correction += float(polynomial(u)) * power * gaps[n]
        hermite.append(y * hermite[n] - n * hermite[n - 1])
        gaps.append(x * gaps[n] + 2 / tau * hermite[n] - n * gaps[n - 1])
    density = math.exp(-0.5 * x * x) / (tau * math.sqrt(2 * math.pi))
    return float(gaussian.delta(epsilon, 2 / tau)) - density * correction


def _terms(sigma: float, offset: float) -> tuple[Floats, Floats]:
    """k + offset for the integers k that matter, and exp(-(k + offset)²/(2 sigma²))."""
    reach = math.ceil(_REACH * sigma) + 1
    k = np.arange(-reach, reach + 1, dtype=np.float64) + offset
    return k, np.exp(-0.5 * np.square(k / sigma))


def _characteristic(t: Floats, sigma: float) -> Floats:
    """E cos(t z): the sum itself for small sigma, else its Poisson sum over t + 2 pi n."""
    if sigma < 1:
        k, mass = _terms(sigma, 0.0)
        return np.cos(np.multiply.outer(t, k)) @ mass / float(mass.sum())
    copies = 2 * math.pi * (np.arange(-2, 3) if sigma < 3 else np.zeros(1))
    nearest = np.remainder(t + math.pi, 2 * math.pi) - math.pi
    terms: Floats = np.exp(-0.5 * np.square(sigma * np.add.outer(nearest, copies))).sum(axis=1)
    return terms / float(np.exp(-0.5 * np.square(sigma * copies)).sum())
