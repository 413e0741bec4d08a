"""Class means matched in the energy distance."""

from __future__ import annotations

from typing import ClassVar

from aggregator.learners.class_ratios.class_means import ClassMeans


class EnergyMeans(ClassMeans):
    """`ClassMeans` with the energy kernel -|x - y|, which has no bandwidth, in time that grows with the square of rows.

    The objective is the energy distance of the set and the mixture of classes (Szekely and Rizzo 2013).
    """

    name: ClassVar[str] = "energy"
    kernels: ClassVar[tuple[str, ...]] = ("energy",)
    kernel, bandwidth, features, seed = "energy", 1.0, 1, 0

    def __init__(self, debiased: bool = True, corrected: bool = True) -> None:
        self.debiased = debiased
        self.corrected = corrected
