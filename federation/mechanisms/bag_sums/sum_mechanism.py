"""What mechanisms for label sums of disjoint bags have in common: public numbers, and bags that are all alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums.design import BagDesign, Weights
from federation.mechanisms.noise.mechanism import Parameters, Replacement
from federation.numerics.arrays import Floats


@dataclass(frozen=True)
class AlikeBags(Replacement):
    """Sums of m bags of k out of n records with labels in a public range; weights and noise of all have one law."""

    records: int
    bags: int
    size: int
    label_range: tuple[float, float]

    weights: ClassVar[Weights]

    @property
    def inclusion(self) -> float:
        """The probability that a record is in a bag."""
        return self.bags * self.size / self.records

    def _require_shape(self, labels: Floats) -> None:
        if np.shape(labels)[-2:] != (self.bags, self.size):
            raise InputError(f"labels must be {(self.bags, self.size)}, bags by size, got {np.shape(labels)}")


def public_numbers(bags: BagDesign | AlikeBags, label_range: tuple[float, float], **noise: float) -> Parameters:
    """The parameters of a guarantee for label sums; those of the noise stand between bags and labels."""
    of_bags = {"records": bags.records, "bags": bags.bags, "size": bags.size, "weights": bags.weights}
    return {**of_bags, **noise, "lowest_label": label_range[0], "highest_label": label_range[1]}
