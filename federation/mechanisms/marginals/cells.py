"""The exact delta of N integers with discrete noise that move by one each: the cells that one unit moves.

Gaussian noise: the log likelihood ratio of the noisy integers is (N - 2 S)/(2 sigma²) with S the sum of the noise,
signed as they move. So S is sufficient: the N cells tell as much as one integer S that moves by N, whatever the other
cells are, and a sequence of adaptively chosen queries tells what the sum over all queries tells.

The law of S is e^{-s²/(2 N sigma²)} theta(s) up to a factor, theta(s) the sum of e^{-|w|²/(2 sigma²)} over the offsets
w of integer vectors of sum s from their mean. By Poisson summation theta is constant up to relative zeta, the sum of
e^{-2 pi² sigma² |y|²} over the projections y != 0 of integer vectors k on the sum zero. Of all k with one projection
take one with median 0: each entry but 0 then differs from N/2 entries or more by at least its size, opposite signs
adding up, so |y|² = sum over pairs of (k_i - k_j)²/N >= |k|²/2, and zeta <= (1 + 2.1 e^{-pi² sigma²})^N - 1. From
sigma = 2.5 on that is below N 10^-26, and S is the discrete Gaussian of scale sqrt(N) sigma.

Laplace noise: the loss of one is +1/t or -1/t, as the noise lies on one side of the step or on the other: with
q = e^{-1/t} it is the former with probability 1/(1 + q), so N of them lose as N randomised responses do (Kairouz, Oh,
Viswanath 2015).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from federation.mechanisms.noise import discrete_gaussian
from federation.mechanisms.noise.scales import MAX_SCALE
from federation.numerics.arrays import Floats, Integers

SMOOTH_SIGMA = 2.5
MOST_EPSILON = 1e6  # noise for this one serves larger ones: its draws are 0 in all likelihood
_MAX_SUM_TAU = 4096.0  # beyond, the bound for one integer is within 1e-6 of exact
_REACH = 9  # in standard deviations: what a sum leaves out is below e^-40 of its first terms
_WRAP = 12  # the same, for the circle on which the law of S is computed


def gaussian_delta(epsilon: float, cells: int, sigma: float) -> float:
    """The smallest delta at `epsilon` >= 0 of `cells` = N noisy integers of scale `sigma` that move by one each.

    From sqrt(N) sigma = 4096 on it is the bound `discrete_gaussian.delta_bound` in one dimension: larger by 1e-4 of
    itself or so, as a millionth of epsilon would make it. Above `MOST_EPSILON` it is that of `MOST_EPSILON`, which is
    no smaller.

    Examples:
        >>> gaussian_delta(1.0, cells=10, sigma=5.0)
        0.02438
    """
    epsilon = min(epsilon, MOST_EPSILON)
    tau = math.sqrt(cells) * sigma
    if tau > _MAX_SUM_TAU:
        return discrete_gaussian.delta_bound(epsilon, cells / tau, 1, grid_scale(cells, sigma))
    last = math.ceil(cells / 2 - epsilon * sigma**2) - 1  # the largest S whose loss exceeds epsilon
    s, mass = _smooth_law(last, tau) if sigma >= SMOOTH_SIGMA else _law(last, cells, sigma)
    loss = (cells - 2 * s) / (2 * sigma**2)
    return min(1.0, float(mass @ -np.expm1(np.minimum(epsilon - loss, 0.0))))


def laplace_delta(epsilon: float, cells: int, scale: Fraction) -> float:
    """The smallest delta at `epsilon` >= 0 of `cells` = N noisy integers of parameter t = `scale`; 0 from N/t on.

    With B binomial (N, 1/(1 + q)) the loss is (2 B - N)/t, and delta the mean of (1 - e^{epsilon - loss})+. Relative
    error below 1e-8.

    Examples:
        >>> laplace_delta(1.0, cells=10, scale=Fraction(5)), laplace_delta(2.0, cells=10, scale=Fraction(5))
        (0.02473, 0.0)
    """
    from scipy.special import gammaln

    t = float(scale)
    least = int((cells + Fraction(epsilon) * scale) // 2) + 1  # the fewest gains whose loss exceeds epsilon
    plus = np.arange(min(least, cells + 1), cells + 1)
    log_mass = gammaln(cells + 1) - gammaln(plus + 1) - gammaln(cells - plus + 1)
    log_mass -= (cells - plus) / t + cells * np.log1p(np.exp(-1 / t))
    return float(np.exp(log_mass) @ -np.expm1(np.minimum(epsilon - (2 * plus - cells) / t, 0.0)))


def grid_scale(cells: int, sigma: float) -> int:
    """The largest integer that the scale of S reaches, at most 2^40: the bounds for one integer hold with it.

    Examples:
        >>> grid_scale(cells=10, sigma=5.0)
        15
    """
    return min(math.floor(math.sqrt(cells) * sigma), MAX_SCALE)


def deviation(sigma: float) -> float:
    """The standard deviation of one noisy integer, which is sigma but for e^{-2 pi² sigma²}.

    Examples:
        >>> deviation(0.3), deviation(3.0)
        (0.08759, 3.0)
    """
    if sigma >= SMOOTH_SIGMA:
        return sigma
    k = np.arange(-math.ceil(27 * sigma) - 3, math.ceil(27 * sigma) + 4)
    return math.sqrt(float(np.square(k) @ _tilted(k, 0.0, sigma)[0]))


def _smooth_law(last: int, tau: float) -> tuple[Integers, Floats]:
    """s up to `last` and P[S = s], without what is negligible."""
    s = np.arange(min(last, 0) - math.ceil(_REACH * tau), last + 1)
    return s, np.exp(-0.5 * np.square(s / tau)) / (tau * math.sqrt(2 * math.pi))


def _law(last: int, cells: int, sigma: float) -> tuple[Integers, Floats]:
    """The same for any sigma, from the Fourier transform of the noise.

    The noise is tilted so that the mean of the sum is `last` where that is below 0: its law is then precise in relation
    to its own size there, and the tilt is taken back: P[S = s] = E[e^{theta Z}]^N e^{-theta s} P_theta[S = s].
    """
    mean = min(last, 0) / cells
    k = np.arange(math.floor(mean) - math.ceil(27 * sigma) - 3, math.ceil(mean) + math.ceil(27 * sigma) + 4)
    centre = _centre(k, mean, sigma)
    mass, log_total = _tilted(k, centre, sigma)
    _, log_plain = _tilted(np.arange(-math.ceil(27 * sigma) - 3, math.ceil(27 * sigma) + 4), 0.0, sigma)
    width = math.ceil(_WRAP * math.sqrt(cells) * max(sigma, 1.0)) + len(k)
    circle = 2 ** math.ceil(math.log2(2 * width))
    law = np.zeros(circle)
    law[k % circle] = mass
    summed = np.fft.irfft(np.fft.rfft(law) ** cells, circle)
    expected = min(last, 0)
    s = np.arange(expected - width, min(last, expected + width) + 1)
    log_tilt = cells * (centre**2 / (2 * sigma**2) + log_total - log_plain) - centre / sigma**2 * s
    return s, np.maximum(summed[s % circle], 0.0) * np.exp(log_tilt)


def _centre(k: Integers, mean: float, sigma: float) -> float:
    """c such that the law ∝ e^{-(k - c)²/(2 sigma²)} has this mean."""
    from scipy.optimize import brentq

    if mean == 0:
        return 0.0
    return float(brentq(lambda centre: float(k @ _tilted(k, centre, sigma)[0]) - mean, mean - 1, mean + 1))


def _tilted(k: Integers, centre: float, sigma: float) -> tuple[Floats, float]:
    """The law ∝ e^{-(k - c)²/(2 sigma²)}, and the log of the sum of these terms."""
    exponent = -0.5 * np.square((k - centre) / sigma)
    largest = float(exponent.max())
    mass = np.exp(exponent - largest)
    return mass / mass.sum(), largest + math.log(mass.sum())
