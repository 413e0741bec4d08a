"""How large the noise of a sum is, from public numbers alone: quantiles of its norm, and what to regularise by."""

from __future__ import annotations

import math

from federation.mechanisms.moments.calibrated_moments import SumNoise
from federation.mechanisms.noise.checks import require_share

_LEAST_REGULARISATION = 1e-4


def noise_quantile(noise: SumNoise, probability: float) -> float:
    """A radius within which the L2 norm of the whole noise on the sum stays with `probability` in (0, 1).

    Patrini et al. (2015, Theorem 10) print sigma log(D/(1 - p)) for Laplace noise of scale sigma, which bounds one
    coordinate: the norm needs sqrt(D) times it, and gets it here. L2-Gamma and Gaussian noise have the quantiles of
    Gamma(D) and of chi with D degrees of freedom (continuous limit). Raises `InputError` for another probability.

    Examples:
        >>> from federation.mechanisms.moments.calibrated_moments import calibrate
        >>> noise = calibrate("pure", dimension=5, epsilon=1.0, rows=1000)
        >>> noise.noise_norm(), noise_quantile(noise, 0.95)
        (10.95, 18.31)
    """
    from scipy.special import chdtri, gammainccinv

    require_share("probability", probability)
    dimension, beyond = noise.additive.dimension, 1 - probability
    if noise.additive.name == "l2_gamma":
        return float(gammainccinv(dimension, beyond)) * math.sqrt(noise.variance() / (dimension + 1))
    if noise.additive.name == "discrete_gaussian":
        return math.sqrt(noise.variance() * float(chdtri(dimension, beyond)))
    scale = noise.additive.grid_scale
    # P[|K| >= m] = 2 q^m / (1 + q) in each coordinate, q = e^{-1/scale}.
    outside = math.ceil(scale * math.log(2 * dimension / (1 + math.exp(-1 / scale)) / beyond))
    return math.sqrt(dimension) * max(outside - 1, 0) * noise.additive.step


def regularisation(noise_variance: float) -> float:
    """lambda = max(1e-4, E|b|²/2) for noise b of expected squared norm `noise_variance` on the mean of y x.

    Made of public numbers: tuning lambda on private rows would cost budget, and 0 leaves losses unbounded below.

    Examples:
        >>> regularisation(0.01), regularisation(0.0)
        (0.005, 0.0001)
    """
    return max(_LEAST_REGULARISATION, noise_variance / 2)
