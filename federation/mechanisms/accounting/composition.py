"""What several releases to the same units promise together, adaptively chosen ones included."""

from __future__ import annotations

import math
from collections.abc import Sequence

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, require_delta
from federation.mechanisms.accounting.gaussian_curve import GaussianCurve
from federation.mechanisms.noise.checks import require_delta_above_zero, require_positive


def compose(guarantees: Sequence[Guarantee], delta: float) -> tuple[float, float]:
    """The total (epsilon, delta) of releases that protect the same unit under the same adjacency.

    Pure epsilons add. Releases with a `gaussian_mu` compose exactly, at what the others leave of the target
    `delta` (theirs add up, like their epsilons); at their own summed (epsilon, delta) when that is smaller at
    no more delta, or when nothing of the target is left. The returned delta may exceed the target only in
    that last case and when the others alone exceed it. No releases: (0, 0).

    Raises `InputError` when units or adjacencies differ, or `delta` is outside [0, 1).

    Examples:
        >>> from federation.contract.guarantee import Adjacency, Unit
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> noise = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=1.0, delta=1e-6)
        >>> once = noise.guarantee(Unit.PARTY, Adjacency.REPLACE)
        >>> compose([once] * 4, delta=1e-6)
        (2.123, 1e-06)
    """
    require_delta(delta)
    kinds = {(g.unit, g.adjacency) for g in guarantees}
    if len(kinds) > 1:
        names = ", ".join(sorted(f"{unit}/{adjacency}" for unit, adjacency in kinds))
        raise InputError(f"guarantees must share one unit and adjacency to compose, got {names}; total them apart")
    normal = [g for g in guarantees if g.gaussian_mu is not None]
    others = [g for g in guarantees if g.gaussian_mu is None]
    epsilon, spent = _sum(others)
    if normal:
        normal_epsilon, normal_delta = _compose_gaussian(normal, delta - spent)
        epsilon, spent = epsilon + normal_epsilon, spent + normal_delta
    return epsilon, min(spent, 1.0)


def concentrated_epsilon(delta: float, rho: float) -> float:
    """An epsilon for which rho-zCDP implies (epsilon, delta)-privacy, the best of all Renyi orders.

    delta = exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1) for every alpha > 1 (Canonne,
    Kamath, Steinke 2020, Corollary 13). Discrete Gaussians of scales sigma_i on integers of sensitivities s_i are
    together (sum s_i²/sigma_i²)/2-zCDP (Theorem 14). Raises `InputError` unless rho > 0 and 0 < delta < 1.

    Examples:
        >>> concentrated_epsilon(1e-6, rho=0.1)
        2.142
    """
    require_positive("rho", rho)
    require_delta_above_zero(delta)
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


def _sum(guarantees: Sequence[Guarantee]) -> tuple[float, float]:
    """Basic composition (Dwork, Roth 2014, Theorem 3.16)."""
    return math.fsum(g.epsilon for g in guarantees), math.fsum(g.delta for g in guarantees)


def _compose_gaussian(guarantees: Sequence[Guarantee], target: float) -> tuple[float, float]:
    """(epsilon, delta) of Gaussian releases; discrete ones pay the slack of `delta_bound`, or of zCDP if smaller."""
    summed = _sum(guarantees)
    if target <= 0:
        return summed
    curve = GaussianCurve.of(guarantees)
    assert curve is not None
    exact = curve.epsilon(target)
    if curve.grid is not None:
        exact = min(exact, concentrated_epsilon(target, curve.mu**2 / 2))
    return summed if summed[1] <= target and summed[0] < exact else (exact, target)
