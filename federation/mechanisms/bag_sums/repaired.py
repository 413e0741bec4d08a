"""Wtd-LBA with noise of standard deviation tau on every label sum, which gives it a guarantee for all data sets.

If an attacker saw bags and weights too, a changed label would be a Gaussian mechanism at |w| Delta/tau, so
delta <= m k/n E_u delta_G(epsilon, |u| Delta/tau), u ~ N(0, 1). In a bag, a record whose features no other one shares
reaches it when the other labels leave no residual: the sums of rows show its weight. Without tau nothing holds for all
data. T releases with fresh weights and noise are at |v| Delta/tau, v ~ N(0, I_T).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import accounting, label_sums
from federation.mechanisms.bag_sums import calibrated_sums as calibration
from federation.mechanisms.bag_sums.design import Weights, binomial, require_bags
from federation.mechanisms.bag_sums.sum_mechanism import AlikeBags, public_numbers
from federation.mechanisms.bag_sums.weight_ratio import mean_delta_chi
from federation.mechanisms.noise.checks import require_positive, require_whole
from federation.mechanisms.noise.mechanism import Parameters
from federation.numerics.arrays import Floats

_UNPROTECTED_ROWS = Assumption(
    "only labels are protected: sums of rows are released without noise and may reveal features",
    Check.DECLARED,
    Keeper.HOLDER,
)


@dataclass(frozen=True)
class RepairedBagSums(AlikeBags):
    """Releases of m sums of k labels with N(0, 1) weights, each with Gaussian noise of standard deviation `tau`.

    `epsilon` and `delta` are what one release claims, the sums of rows with the same weights included. Made by
    `repaired_bag_sums` or `calibrate`.
    """

    tau: float
    epsilon: float
    delta: float

    name: ClassVar[str] = "weighted_lba"
    weights: ClassVar[Weights] = "gaussian"

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        return public_numbers(self, self.label_range, tau=self.tau)

    def release(self, labels: Floats, weights: Floats, bits: NoiseBits) -> Floats:
        """Noisy sums of every bag, (m,) float64, in units of labels.

        `labels`, `weights`: (m, k) of the records in each bag, in the same order; of several releases
        one after another (..., m, k), which gives (..., m). The weights stay secret only for the features' sake; the
        guarantee would hold if they were known. Raises `InputError` for other shapes and for labels
        outside the range.
        """
        self._require_shape(labels)
        scales = np.full(np.shape(labels)[:-1], self.tau)
        return label_sums.gaussian_sums(labels, weights, self.label_range, scales, bits)

    def delta_at(self, epsilon: float) -> float:
        """The delta of one release at another epsilon >= 0 on the worst data, its discretisation charged."""
        return self.composed_delta(epsilon, 1)

    def composed_delta(self, epsilon: float, releases: int) -> float:
        """The same of so many releases with fresh bags, weights and noise, also when chosen adaptively."""
        require_whole("releases", releases, 1)
        ratio = accounting.width(self.label_range) / require_positive("tau", self.tau)
        return label_sums.charged(lambda e: self._mean(e, ratio, releases), epsilon)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, and how each premise is kept."""
        return label_sums.DISJOINT_BAGS, _UNPROTECTED_ROWS, label_sums.NORMAL_WEIGHTS, *label_sums.COMMON

    def _mean(self, epsilon: float, ratio: float, releases: int) -> float:
        """The mean over how many of the releases have the record in a bag."""
        times, probability = binomial(releases, self.inclusion)
        charges = label_sums.CHARGE * np.sqrt(times)
        return math.fsum(
            p * mean_delta_chi(epsilon, ratio, int(t), charge)
            for t, p, charge in zip(times, probability, charges, strict=True)
            if t > 0
        )


def repaired_bag_sums(
    records: int, bags: int, size: int, *, tau: float, label_range: tuple[float, float], epsilon: float
) -> RepairedBagSums:
    """The mechanism with a given noise scale; it claims the delta at `epsilon` that holds for all data.

    Raises `InputError` for arguments out of range.

    Examples:
        >>> repaired_bag_sums(6400, 50, 64, tau=5.0, label_range=(0.0, 1.0), epsilon=1.0).delta
        0.0001622
    """
    require_bags(records, bags, size)
    claimed = RepairedBagSums(records, bags, size, label_range, tau, epsilon, 0.0).delta_at(epsilon)
    return RepairedBagSums(records, bags, size, label_range, tau, epsilon, claimed)


def calibrate(
    records: int, bags: int, size: int, *, label_range: tuple[float, float], epsilon: float, delta: float
) -> RepairedBagSums:
    """The mechanism with the least noise that makes one release (epsilon, delta)-private for all data.

    Raises `InputError` for arguments out of range.

    Examples:
        >>> calibrate(6400, 50, 64, label_range=(0.0, 1.0), epsilon=1.0, delta=1e-5).tau
        7.278
    """
    require_bags(records, bags, size)
    calibration.require_target(epsilon, delta)
    per_bag = min(delta * (1 - 1e-8) * records / (bags * size), 1 - 1e-8)
    tau = calibration.smallest_tau(epsilon, per_bag, label_range=label_range, charge=label_sums.CHARGE)
    return RepairedBagSums(records, bags, size, label_range, tau, epsilon, delta)
