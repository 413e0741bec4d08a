"""The least noise, the smallest bags and the fewest noisy labels that give noisy-wtd-LLP a wanted (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.accounting import delta, require_epsilon_from_zero, width
from federation.mechanisms.bag_sums.composition import composed_delta
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.weight_ratio import mean_delta_chi

_SAFE = 1e-9  # relative step to the safe side of a root
_ROUGH = 5e-4  # the same where delta is a bound that takes a tenth of a second
_WIDEST = 1e9  # largest ratio of the label range and a noise scale, either way
_MAX_SIZE = 2**30


def smallest_sigma(
    epsilon: float, target: float, design: BagDesign, *, label_range: tuple[float, float], charge: float = 0.0
) -> float:
    """The smallest standard deviation of the noise on a label with delta(epsilon) <= target, within 1e-9.

    Raises `InputError` for arguments out of range, and when no noise is enough because too many bags have none.
    """
    require_target(epsilon, target)
    if design.noise_free >= target:
        raise InputError(
            f"delta {target:g} is out of reach of any noise: with probability {design.noise_free:.3g} a label lies in "
            "a bag without noise; use larger bags, more noisy labels, or a number of them in every bag"
        )
    span = width(label_range)
    return span * _smallest_scale(
        lambda scale: delta(epsilon, design, sigma=scale, label_range=(0.0, 1.0), charge=charge), target
    )


def smallest_tau(epsilon: float, target: float, *, label_range: tuple[float, float], charge: float = 0.0) -> float:
    """The smallest standard deviation of noise on a weighted label sum with N(0, 1) weights, within 1e-9.

    With it, E_u delta_G(epsilon, |u| Delta/tau) <= target. Raises `InputError` for arguments out of range.
    """
    require_target(epsilon, target)
    return width(label_range) * _smallest_scale(lambda scale: mean_delta_chi(epsilon, 1 / scale, charge=charge), target)


def smallest_size(
    epsilon: float,
    target: float,
    *,
    bags: int,
    share: float,
    sigma: float,
    label_range: tuple[float, float],
) -> int:
    """The smallest k so that m = `bags` bags of k out of m k records, a `share` of them noisy, reach the target.

    Gaussian weights and a fixed noisy set of round(share m k) records. k - 1 is not enough. Raises `InputError` for
    arguments out of range or when 2^30 records in a bag are not enough.
    """
    require_target(epsilon, target)
    if not 0 < share <= 1:
        raise InputError(f"rho, the share of labels that get noise, must lie in (0, 1], got {share}")

    def enough(size: int) -> bool:
        design = BagDesign(bags * size, bags, size, noisy=max(1, round(share * bags * size)))
        return delta(epsilon, design, sigma=sigma, label_range=label_range) <= target

    return _first(enough, _MAX_SIZE, "records in a bag")


def fewest_noisy(
    epsilon: float, target: float, design: BagDesign, *, sigma: float, label_range: tuple[float, float]
) -> BagDesign:
    """The design with the fewest noisy labels that reaches the target: its `noisy`, or its `per_bag`, is replaced.

    Raises `InputError` when noise on all labels is not enough.
    """
    require_target(epsilon, target)
    most = design.size if design.noisy is None else design.records

    def with_count(count: int) -> BagDesign:
        return replace(design, per_bag=count) if design.noisy is None else replace(design, noisy=count)

    def enough(count: int) -> bool:
        return delta(epsilon, with_count(count), sigma=sigma, label_range=label_range) <= target

    return with_count(_first(enough, most, "noisy labels"))


def smallest_sigma_composed(
    epsilon: float, target: float, design: BagDesign, *, label_range: tuple[float, float], releases: int
) -> float:
    """As `smallest_sigma`, for several releases together; within 1e-3."""
    require_target(epsilon, target)
    from scipy.optimize import brentq

    alone = smallest_sigma(epsilon, target, design, label_range=label_range)
    goal = math.log(target)

    def excess(log_factor: float) -> float:
        sigma = math.exp(log_factor) * alone
        return math.log(composed_delta(epsilon, design, sigma=sigma, label_range=label_range, releases=releases)) - goal

    if releases == 1:
        return alone
    if -math.expm1(releases * math.log1p(-design.noise_free)) >= target:
        raise InputError(
            f"delta {target:g} is out of reach of any noise over {releases} releases, as some bag with a label may be "
            "without noise; make fewer releases, or put noise on a number of labels in every bag"
        )
    low, high = 0.0, 0.5 * math.log(releases)
    while excess(high) > 0:
        low, high = high, high + 0.5
        _require_fit(high)
    root = brentq(excess, low, high, xtol=_ROUGH) + _ROUGH
    return alone * math.exp(root if excess(root) <= 0 else high)


def _smallest_scale(delta_at: Callable[[float], float], target: float) -> float:
    """The smallest scale with delta_at(scale) <= target, for a range of 1; delta falls as the scale grows."""
    from scipy.optimize import brentq

    goal = math.log(target)

    def excess(log_scale: float) -> float:
        return math.log(max(delta_at(math.exp(log_scale)), 1e-300)) - goal

    low = high = 0.0
    while excess(high) > 0:
        high += 1.0
        _require_fit(high)
    while excess(low) < 0:
        low -= 1.0
        if low < -math.log(_WIDEST):
            return 1 / _WIDEST
    root = brentq(excess, low, high, xtol=1e-10, rtol=1e-14)
    return math.exp(root + _SAFE)


def _require_fit(log_scale: float) -> None:
    if log_scale > math.log(_WIDEST):
        raise InputError("the noise would exceed the label range a billion times; choose a larger epsilon or delta")


def _first(enough: Callable[[int], bool], most: int, what: str) -> int:
    """The smallest count from 1 to `most` that is enough while the one before is not."""
    low, high = 0, 1
    while not enough(high):
        if high == most:
            raise InputError(f"{most} {what} are not enough for this epsilon and delta; use more noise")
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def require_target(epsilon: float, target: float) -> None:
    """Raises `InputError` unless epsilon is finite and at least 0, and the delta strictly between 0 and 1."""
    require_epsilon_from_zero(epsilon)
    if not 0 < target < 1:
        raise InputError(f"delta must lie strictly between 0 and 1, got {target}")
