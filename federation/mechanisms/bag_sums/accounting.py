"""The exact delta of one release of noisy-wtd-LLP.

Bags, weights and the noisy set are published and do not depend on labels, so the hockey-stick divergence of the
release is the mean of the conditional ones, not a bound: no union over bags, and no amplification of epsilon either.
"""

from __future__ import annotations

import math

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.weight_ratio import mean_delta
from federation.mechanisms.labels.label_range import LabelRange
from federation.mechanisms.noise.checks import require_epsilon_from_zero, require_from_zero, require_positive


def delta(
    epsilon: float, design: BagDesign, *, sigma: float, label_range: tuple[float, float], charge: float = 0.0
) -> float:
    """The smallest delta for which one release is (epsilon, delta)-private for one replaced label.

    `sigma` > 0: standard deviation of the noise on a label; `label_range`: the public (lowest, highest) label; `charge`
    is added to every sensitivity-to-noise ratio. It is the worse of a record with noise of its own and one without.
    Raises `InputError` for arguments out of range.

    Examples:
        >>> design = BagDesign(records=12_800, bags=100, size=128, noisy=6400)
        >>> delta(1.0, design, sigma=1.0, label_range=(0.0, 1.0))
        1.432e-05
    """
    require_epsilon_from_zero(epsilon)
    require_from_zero("charge", charge)
    ratio = width(label_range) / require_positive("sigma", sigma)
    if not 1e-9 <= ratio <= 1e9:
        raise InputError(f"sigma must be within a factor 1e9 of the label range, got their ratio {ratio:g}")
    worst = max(
        math.fsum(mean_delta(epsilon, ratio, part, design.weights, charge) for part in parts)
        for parts in design.exposures()
    )
    return min(worst, 1.0)


def width(label_range: tuple[float, float]) -> float:
    """Delta = highest - lowest label. Raises `InputError` as `LabelRange`."""
    return LabelRange.of(label_range).width
