"""Laplace noise on the signed label sum of every bag: pure epsilon, and no choice of noisy labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.errors import InputError
from federation.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.privacy import discrete_laplace
from federation.privacy.bag_sums import accounting, label_sums
from federation.privacy.bag_sums.design import require_bags
from federation.privacy.bag_sums.noisy_labels import require_replaced_label
from federation.privacy.mechanism import promised
from federation.randomness import NoiseBits

_PUBLIC_ROWS = Assumption("features, bags and weights are public: only labels are protected", Check.DECLARED)


@dataclass(frozen=True)
class LaplaceBagSums:
    """Releases of m sums of k labels with weights -1 and 1, each with discrete Laplace noise of scale range/epsilon.

    `grid_scale` is the scale in 2^-20 parts of the label range; one release has delta 0. Made by `laplace_bag_sums`.
    """

    records: int
    bags: int
    size: int
    label_range: tuple[float, float]
    epsilon: float
    grid_scale: int

    name: ClassVar[str] = "laplace_bag_sums"
    delta: ClassVar[float] = 0.0

    @property
    def scale(self) -> float:
        """Of the noise, in units of labels."""
        return self.grid_scale * accounting.width(self.label_range) / label_sums.LABEL_STEPS

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers."""
        return {
            "records": self.records,
            "bags": self.bags,
            "size": self.size,
            "weights": "signs",
            "scale": self.scale,
            "lowest_label": self.label_range[0],
            "highest_label": self.label_range[1],
        }

    def release(self, labels: np.ndarray, weights: np.ndarray, bits: NoiseBits) -> np.ndarray:
        """Noisy sums of every bag, (m,) float64, in units of labels.

        `labels`, `weights`: (m, k) of the records in each bag, in the same order. Raises `InputError` for other shapes,
        for labels outside the range, and for weights other than -1 and 1.
        """
        if np.shape(labels) != (self.bags, self.size):
            raise InputError(f"labels must be {(self.bags, self.size)}, bags by size, got {np.shape(labels)}")
        return label_sums.laplace_sums(labels, weights, self.label_range, self.grid_scale, bits)

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: 0 from the claimed one on."""
        inclusion = self.bags * self.size / self.records
        return inclusion * discrete_laplace.delta(epsilon, label_sums.LABEL_STEPS, self.grid_scale)

    def guarantee(
        self, unit: Unit = Unit.LABEL, adjacency: Adjacency = Adjacency.REPLACE, further: tuple[Assumption, ...] = ()
    ) -> Guarantee:
        """What one release promises; `further` assumptions come before its own.

        Raises `InputError` unless labels are replaced.
        """
        require_replaced_label(unit, adjacency)
        own = (label_sums.DISJOINT_BAGS, _PUBLIC_ROWS, label_sums.SIGN_WEIGHTS)
        return promised(self, unit, adjacency, (*further, *own, *label_sums.COMMON))


def laplace_bag_sums(
    records: int, bags: int, size: int, *, label_range: tuple[float, float], epsilon: float
) -> LaplaceBagSums:
    """The least noise that makes one release of m bags of k out of n records epsilon-private.

    Raises `InputError` for arguments out of range.
    """
    require_bags(records, bags, size)
    accounting.width(label_range)
    accounting.positive("epsilon", epsilon)
    grid_scale = discrete_laplace.calibrate(label_sums.LABEL_STEPS, epsilon)
    discrete_laplace.check_scale(grid_scale)
    return LaplaceBagSums(records, bags, size, label_range, epsilon, grid_scale)
