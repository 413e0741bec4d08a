"""Noisy-wtd-LLP as a mechanism: weighted label sums of disjoint bags under noise on some of the labels.

The noise of a bag's labels enters its sum only as sum w_j g_j, a normal variable of variance sigma² sum w_j², so that
is what is drawn. Rows, bags, weights and which labels are noisy are published beside the sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import calibrated_sums as calibration
from federation.mechanisms.bag_sums import composition, label_sums
from federation.mechanisms.bag_sums.accounting import width
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.label_sums import CHARGE
from federation.mechanisms.bag_sums.sum_mechanism import public_numbers
from federation.mechanisms.noise.mechanism import Parameters, Replacement
from federation.numerics.arrays import Booleans, Floats

_PUBLIC_ROWS = Assumption(
    "features, bags, weights and which labels are noisy are public: only labels are protected",
    Check.DECLARED,
    Keeper.HOLDER,
)
_FIXED_SET = Assumption(
    "which records get noise on their labels is fixed without looking at labels", Check.DECLARED, Keeper.SITE
)
_ONE_DRAW = Assumption(
    "the noise of all noisy labels of a bag is drawn at once, as a discrete Gaussian of the variance of their weighted "
    "sum, exactly in integer arithmetic",
    Check.ENFORCED,
)
_DRAWN_SET = Assumption(
    "which labels of a bag get noise is drawn uniformly, and as many as declared do in every bag", Check.CHECKED
)


@dataclass(frozen=True)
class NoisyBagSums(Replacement):
    """Releases of the m weighted label sums of a design, with noise of standard deviation `sigma` on noisy labels.

    `epsilon` and `delta` are what one release claims; `label_range` is the public (lowest, highest) label. Made by
    `noisy_bag_sums` or `calibrate`.
    """

    design: BagDesign
    label_range: tuple[float, float]
    sigma: float
    epsilon: float
    delta: float

    name: ClassVar[str] = "noisy_weighted_llp"

    @property
    def parameters(self) -> Parameters:
        """Public numbers; composition reads `dimension` (one bag changes) and `grid_scale` beside a `gaussian_mu`."""
        record = public_numbers(self.design, self.label_range, sigma=self.sigma)
        counts = {"noisy": self.design.noisy, "per_bag": self.design.per_bag}
        record |= {name: count for name, count in counts.items() if count is not None}
        return record if self.gaussian_mu is None else record | {"dimension": 1, "grid_scale": label_sums.NOISE_STEPS}

    @property
    def gaussian_mu(self) -> float | None:
        """Sensitivity over standard deviation of a bag for stratified signs, where it is a number; else None."""
        if self.design.weights != "signs" or self.design.per_bag is None:
            return None
        return width(self.label_range) / self.sigma / math.sqrt(self.design.per_bag) + CHARGE

    def release(self, labels: Floats, weights: Floats, noisy: Booleans, bits: NoiseBits) -> Floats:
        """Noisy sums of every bag, (m,) float64, in units of labels.

        `labels`, `weights`: (m, k) of the records in each bag, in the same order; of several releases one after another
        (..., m, k), which gives (..., m). `noisy`: (m, k) bool. A bag without a noisy label is released as it is:
        `delta` counts how likely that is. Raises `InputError` for other shapes, for
        labels outside the range, and for weights or noisy labels of another design.
        """
        weights, noisy = np.asarray(weights, dtype=np.float64), np.asarray(noisy)
        shape = (self.design.bags, self.design.size)
        alike = labels.shape == weights.shape and labels.shape[-2:] == noisy.shape == shape
        if not alike or noisy.dtype != bool:
            raise InputError(
                f"labels, weights and the mask of noisy labels must be {shape} each, the mask of type bool, "
                f"got {labels.shape}, {weights.shape} and {noisy.shape} of {noisy.dtype}"
            )
        counts = noisy.sum(axis=1)
        if self.design.per_bag is not None and np.any(counts != self.design.per_bag):
            raise InputError(f"every bag must have {self.design.per_bag} noisy labels, got {counts.min()} in one")
        if self.design.noisy is not None and counts.sum() > self.design.noisy:
            raise InputError(f"at most {self.design.noisy} labels are noisy in this design, got {counts.sum()}")
        if self.design.weights == "signs":
            label_sums.require_signs(weights)
        scales = self.sigma * np.sqrt((weights**2 * noisy).sum(axis=-1))
        return label_sums.gaussian_sums(labels, weights, self.label_range, scales, bits)

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0, its discretisation charged (about 1e-6 of it)."""
        return self.composed_delta(epsilon, 1)

    def composed_delta(self, epsilon: float, releases: int) -> float:
        """An upper bound on the delta of so many releases with fresh bags, weights and noise."""

        def exact(at: float) -> float:
            return composition.composed_delta(
                at, self.design, sigma=self.sigma, label_range=self.label_range, releases=releases, charge=CHARGE
            )

        return label_sums.charged(exact, epsilon)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, and how each premise is kept."""
        law = label_sums.NORMAL_WEIGHTS if self.design.weights == "gaussian" else label_sums.SIGN_WEIGHTS
        chosen = _FIXED_SET if self.design.per_bag is None else _DRAWN_SET
        return label_sums.DISJOINT_BAGS, _PUBLIC_ROWS, chosen, _ONE_DRAW, law, *label_sums.COMMON


def noisy_bag_sums(
    design: BagDesign, *, sigma: float, label_range: tuple[float, float], epsilon: float
) -> NoisyBagSums:
    """The mechanism with a given noise scale; it claims the exact delta at `epsilon`, which may be near 1.

    Raises `InputError` for arguments out of range.

    Examples:
        >>> design = BagDesign(records=6400, bags=100, size=64, per_bag=16)
        >>> noisy_bag_sums(design, sigma=1.0, label_range=(0.0, 1.0), epsilon=1.0).delta
        0.001743
    """
    claimed = NoisyBagSums(design, label_range, sigma, epsilon, 0.0).delta_at(epsilon)
    return NoisyBagSums(design, label_range, sigma, epsilon, claimed)


def calibrate(design: BagDesign, *, label_range: tuple[float, float], epsilon: float, delta: float) -> NoisyBagSums:
    """The mechanism with the least noise that makes one release (epsilon, delta)-private.

    Raises `InputError` for arguments out of range, and when no noise is enough because too many bags have none.

    Examples:
        >>> design = BagDesign(records=6400, bags=100, size=64, per_bag=16)
        >>> calibrate(design, label_range=(0.0, 1.0), epsilon=1.0, delta=1e-5).sigma
        2.291
    """
    sigma = calibration.smallest_sigma(epsilon, delta * (1 - 1e-8), design, label_range=label_range, charge=CHARGE)
    return NoisyBagSums(design, label_range, sigma, epsilon, delta)
