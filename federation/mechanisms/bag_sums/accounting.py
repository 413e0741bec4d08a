"""The exact delta of one release of noisy-wtd-LLP.

Bags, weights and the noisy set are published and do not depend on labels, so the hockey-stick divergence of the
release is the mean of the conditional ones, not a bound: no union over bags, and no amplification of epsilon either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.weight_ratio import mean_delta
from federation.mechanisms.labels.label_range import LabelRange


def delta(
    epsilon: float, design: BagDesign, *, sigma: float, label_range: tuple[float, float], charge: float = 0.0
) -> float:
    """The smallest delta for which one release is (epsilon, delta)-private for one replaced label.

    `sigma` > 0: standard deviation of the noise on a label; `label_range`: the public (lowest, highest) label; `charge`
    is added to every sensitivity-to-noise ratio. It is the worse of a record with noise of its own and one without.
    Raises `InputError` for arguments out of range.
    """
    require_epsilon_from_zero(epsilon)
    ratio = width(label_range) / positive("sigma", sigma)
    if not 1e-9 <= ratio <= 1e9:
        raise InputError(f"sigma must be within a factor 1e9 of the label range, got their ratio {ratio:g}")
    worst = max(
        math.fsum(mean_delta(epsilon, ratio, part, design.weights, charge) for part in parts)
        for parts in design.exposures()
    )
    return min(worst, 1.0)


def delta_of_parties(
    epsilon: float, designs: Iterable[BagDesign], *, sigma: float, label_range: tuple[float, float]
) -> float:
    """The delta of all parties together: that of the worst, as long as no record is at two (parallel composition).

    Parties of equal design are computed once. Raises `InputError` without a party, and as `delta`.
    """
    distinct = set(designs)
    if not distinct:
        raise InputError("there must be at least one party, got none")
    return max(delta(epsilon, design, sigma=sigma, label_range=label_range) for design in distinct)


def width(label_range: tuple[float, float]) -> float:
    """Delta = highest - lowest label. Raises `InputError` as `LabelRange`."""
    low, high = label_range
    return LabelRange(low, high).width


def positive(name: str, value: float) -> float:
    """The value. Raises `InputError` unless it is positive and finite."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be a positive finite number, got {value}")
    return value


def require_epsilon_from_zero(epsilon: float) -> None:
    """Raises `InputError` unless epsilon is finite and at least 0."""
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon must be a finite number of at least 0, got {epsilon}")


def require_releases(releases: int) -> None:
    """Raises `InputError` unless the number of releases is an integer of at least 1."""
    if isinstance(releases, bool) or releases != int(releases) or releases < 1:
        raise InputError(f"releases must be an integer of at least 1, got {releases!r}")
