"""Concentrated differential privacy: what integer noise of discrete Gaussian law promises, however coarse its grid."""

from __future__ import annotations

import math

from federation.contract.errors import InputError


def epsilon(delta: float, rho: float) -> float:
    """An epsilon for which rho-zCDP implies (epsilon, delta)-privacy, the best of all Renyi orders.

    delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1) for every alpha > 1 (Canonne,
    Kamath, Steinke 2020, Corollary 13). Discrete Gaussians of scales sigma_i on integers of sensitivities s_i are
    together (sum s_i²/sigma_i²)/2-zCDP (Theorem 14). Raises `InputError` unless rho > 0 and 0 < delta < 1.
    """
    if not (0 < rho < math.inf and 0 < delta < 1):
        raise InputError(f"rho must be positive and delta in (0, 1), got {rho} and {delta}")
    # imported here because optimisers load slowly
    from scipy.optimize import minimize_scalar

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        alpha = 1 + excess
        # A sum of logarithms, and 1 - 1/alpha as excess/alpha: products and quotients of extreme numbers underflow.
        return alpha * rho - (math.log(delta) + log_excess + alpha * math.log1p(1 / excess)) / excess

    # With alpha - 1 = sqrt(ln(1/delta)/rho) the classic conversion is met; the best order is not far from that.
    near = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    found = minimize_scalar(at, bounds=(near - 8, near + 8), method="bounded")
    return max(0.0, min(float(found.fun), at(near)))
