"""The published guarantee of noisy-wtd-LLP as a number, with the best explicit constants its proof allows.

Brahmbhatt et al. 2023, Theorem D.1: delta = exp(-Omega(sqrt(rho k))) up to a factor of the number of bags, with
constants that the paper leaves open. It is far above the exact delta; see `accounting.delta`.
"""

from __future__ import annotations

import math

import numpy as np

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.accounting import width
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.checks import require_epsilon_from_zero, require_positive


def theorem_delta(epsilon: float, design: BagDesign, *, sigma: float, label_range: tuple[float, float]) -> float:
    """What the proof of Theorem D.1 gives, at most 1; each step at its strongest, so generous to the theorem.

    With rho = |N|/n, but for events of these probabilities a bag has noise of variance sigma² rho k/4 or more and no
    weight is above l:
    1. some of m bags has fewer than rho k/2 noisy labels: m exp(-rho² k/2) (Hoeffding 1963, without replacement);
    2. in some bag the sum of rho k/2 squared weights is below half its mean: m exp(-rho k/32) (Laurent, Massart 2000);
    3. some of m k weights is above l: 2 m k Φ(-l).
    Then what is left is the exact delta of Gaussian noise at l Delta/(sigma sqrt(rho k/4)), and l is the best one.

    Raises `InputError` for arguments out of range, and unless the design is the published one: a fixed noisy set and
    Gaussian weights.

    Examples:
        >>> from federation.mechanisms.bag_sums.accounting import delta
        >>> design = BagDesign(records=409_600, bags=100, size=4096, noisy=204_800)
        >>> theorem_delta(1.0, design, sigma=1.0, label_range=(0.0, 1.0))
        5.314e-05
        >>> delta(1.0, design, sigma=1.0, label_range=(0.0, 1.0))  # exactly
        6.589e-23
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr

    require_epsilon_from_zero(epsilon)
    if design.noisy is None or design.weights != "gaussian":
        raise InputError("the theorem covers Gaussian weights and a fixed noisy set; give noisy and no per_bag")
    share = design.noisy / design.records
    noise = require_positive("sigma", sigma) * math.sqrt(share * design.size / 4)
    few = math.exp(-(share**2) * design.size / 2) + math.exp(-share * design.size / 32)

    def log_rest(largest: float) -> float:
        beyond = 2 * design.bags * design.size * float(ndtr(-largest))
        seen = float(gaussian.delta(epsilon, largest * width(label_range) / noise))
        return math.log(max(beyond + seen, 1e-300))

    grid = np.linspace(0.05, 37.0, 200)
    near = min(grid, key=log_rest)
    best = minimize_scalar(log_rest, bounds=(max(near - 0.4, 0.01), near + 0.4), method="bounded")
    return min(1.0, design.bags * few + math.exp(min(float(best.fun), log_rest(near))))
