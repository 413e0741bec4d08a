"""How far noise in the mean operator moves weights and risks (Patrini et al. 2015, Theorems 6 and 10, repaired).

`federation.mechanisms.moments.bounds.noise_quantile` bounds the norm of a release's noise on the sum of y x; on the
mean it is that over the number of rows.
"""

from __future__ import annotations

import math

from federation.contract.errors import InputError


def weight_shift(slope: float, regularisation: float, moment_distance: float) -> float:
    """Largest Euclidean distance of the minimisers for two mean operators at that distance: |a| / (4 lam) of it.

    For every convex loss with slope a (Theorem 6; its 1/lam holds only for |a| <= 4) and the regulariser lam |w|². The
    linear loss attains it. With the distance from 0 it bounds the norm of the weights. Raises `InputError` unless
    lam > 0 and the distance is at least 0.

    Examples:
        >>> weight_shift(slope=1.0, regularisation=0.1, moment_distance=0.04)
        0.1
    """
    if not 0 < regularisation < math.inf:
        raise InputError(f"regularisation must be > 0 and finite, got {regularisation}: there is no bound without it")
    return abs(slope) / (4 * regularisation) * _at_least_zero("moment_distance", moment_distance)


def risk_shift(slope: float, radius: float, moment_distance: float) -> float:
    """Largest change of the risk of any weights with |w| <= radius between two such mean operators.

    |a|/2 radius |mu - mu~|, for weights that may depend on the noise (Theorem 10). Raises `InputError` for a negative
    radius or distance.

    Examples:
        >>> risk_shift(slope=1.0, radius=2.0, moment_distance=0.04)
        0.04
    """
    distance = _at_least_zero("moment_distance", moment_distance)
    return abs(slope) / 2 * _at_least_zero("radius", radius) * distance


def _at_least_zero(name: str, value: float) -> float:
    if not 0 <= value < math.inf:
        raise InputError(f"{name} must be a finite number of at least 0, got {value}")
    return float(value)
