"""The exact delta of N integers with discrete Laplace noise that move by one each.

The loss of one is +1/t or -1/t, as the noise lies on one side of the step or on the other: with q = e^{-1/t} it is the
former with probability 1/(1 + q), so N of them lose as N randomised responses do (Kairouz, Oh, Viswanath 2015).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def delta(epsilon: float, cells: int, scale: Fraction) -> float:
    """The smallest delta at `epsilon` >= 0 of `cells` = N noisy integers of parameter t = `scale`; 0 from N/t on.

    With B binomial (N, 1/(1 + q)) the loss is (2 B - N)/t, and delta the mean of (1 - e^{epsilon - loss})+. Relative
    error below 1e-8.
    """
    from scipy.special import gammaln

    t = float(scale)
    least = int((cells + Fraction(epsilon) * scale) // 2) + 1  # the fewest gains whose loss exceeds epsilon
    plus = np.arange(least, cells + 1)
    log_mass = gammaln(cells + 1) - gammaln(plus + 1) - gammaln(cells - plus + 1)
    log_mass -= (cells - plus) / t + cells * np.log1p(np.exp(-1 / t))
    return float(np.exp(log_mass) @ -np.expm1(np.minimum(epsilon - (2 * plus - cells) / t, 0.0)))
