"""The least noise that gives noisy-wtd-LLP, or weighted label sums, a wanted (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable

from federation.contract.errors import InputError
from federation.contract.numbers import apart
from federation.mechanisms.bag_sums.accounting import delta, width
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.weight_ratio import mean_delta_chi
from federation.mechanisms.noise.checks import require_delta_above_zero, require_epsilon_from_zero, require_from_zero

_SAFE = 1e-9  # relative step to the safe side of a root
_WIDEST = 1e9  # largest ratio of the label range and a noise scale, either way


def smallest_sigma(
    epsilon: float, target: float, design: BagDesign, *, label_range: tuple[float, float], charge: float = 0.0
) -> float:
    """The smallest standard deviation of the noise on a label with delta(epsilon) <= target, within 1e-9.

    Raises `InputError` for arguments out of range, and when no noise is enough because too many bags have none.

    Examples:
        >>> design = BagDesign(records=12_800, bags=100, size=128, noisy=6400)
        >>> smallest_sigma(1.0, 1e-5, design, label_range=(0.0, 1.0))
        1.042
    """
    require_target(epsilon, target)
    if design.noise_free >= target:
        wanted, revealed = apart(target, design.noise_free)
        raise InputError(
            f"delta {wanted} is out of reach of any noise: with probability {revealed} a label lies in "
            "a bag without noise; use larger bags, more noisy labels, or a number of them in every bag"
        )
    span = width(label_range)
    return span * _smallest_scale(
        lambda scale: delta(epsilon, design, sigma=scale, label_range=(0.0, 1.0), charge=charge), target
    )


def smallest_tau(epsilon: float, target: float, *, label_range: tuple[float, float], charge: float = 0.0) -> float:
    """The smallest standard deviation of noise on a weighted label sum with N(0, 1) weights, within 1e-9.

    With it, E_u delta_G(epsilon, |u| Delta/tau) <= target. Raises `InputError` for arguments out of range.

    Examples:
        >>> smallest_tau(1.0, 1e-6, label_range=(0.0, 1.0))
        9.854
    """
    require_target(epsilon, target)
    require_from_zero("charge", charge)
    return width(label_range) * _smallest_scale(lambda scale: mean_delta_chi(epsilon, 1 / scale, charge=charge), target)


def _smallest_scale(delta_at: Callable[[float], float], target: float) -> float:
    """The smallest scale with delta_at(scale) <= target, for a range of 1; delta falls as the scale grows."""
    from scipy.optimize import brentq

    goal = math.log(target)

    def excess(log_scale: float) -> float:
        return math.log(max(delta_at(math.exp(log_scale)), 1e-300)) - goal

    low = high = 0.0
    while excess(high) > 0:
        high += 1.0
        if high > math.log(_WIDEST):
            raise InputError("the noise would exceed the label range a billion times; choose a larger epsilon or delta")
    while excess(low) < 0:
        low -= 1.0
        if low < -math.log(_WIDEST):
            return 1 / _WIDEST
    root = brentq(excess, low, high, xtol=1e-10, rtol=1e-14)
    return math.exp(root + _SAFE)


def require_target(epsilon: float, target: float) -> None:
    """Raises `InputError` unless epsilon is finite and at least 0, and the delta strictly between 0 and 1."""
    require_epsilon_from_zero(epsilon)
    require_delta_above_zero(target)
