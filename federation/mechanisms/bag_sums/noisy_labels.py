"""Mechanisms for label sums of disjoint bags: noisy-wtd-LLP, and Laplace noise on every sum (pure epsilon).

The noise g_j of a bag's labels enters its sum only as sum w_j g_j, a normal variable of variance sigma² sum w_j². So
the mechanism draws this variable alone. Rows, bags, weights and the set of noisy labels are published beside the sums.

`theorem_delta` gives the published guarantee of noisy-wtd-LLP as a number.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper, require_epsilon
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import calibration
from federation.mechanisms.bag_sums import exact_sums as label_sums
from federation.mechanisms.bag_sums.calibration import width
from federation.mechanisms.bag_sums.design import BagDesign, Weights, require_bags
from federation.mechanisms.bag_sums.exact_sums import CHARGE
from federation.mechanisms.noise import discrete as discrete_laplace
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.mechanism import (
    Parameters,
    Replacement,
    require_epsilon_from_zero,
    require_positive,
    require_scale,
)
from federation.numerics.rows import Booleans, Floats

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

    def log_ratio(self, released: Floats, here: Floats, there: Floats, variances: Floats) -> Floats:
        """As `LaplaceBagSums.log_ratio`; `variances` (n, m) or (m,) of the noise on each sum, up to scale."""
        return np.asarray(((there - here) * (released - (here + there) / 2) / variances).sum(axis=1))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0, its discretisation charged (about 1e-6 of it)."""
        return self.composed_delta(epsilon, 1)

    def composed_delta(self, epsilon: float, releases: int) -> float:
        """An upper bound on the delta of so many releases with fresh bags, weights and noise."""

        def exact(at: float) -> float:
            return calibration.composed_delta(
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


def theorem_delta(epsilon: float, design: BagDesign, *, sigma: float, label_range: tuple[float, float]) -> float:
    """Return the delta that the proof of Theorem D.1 gives, at most 1, with each step at its strongest.

    Brahmbhatt et al. 2023, Theorem D.1, states delta = exp(-Omega(sqrt(rho k))) up to a factor of the number of bags,
    and leaves the constants open. This function takes the best explicit constants that the proof allows. The value is
    far above the exact delta (`federation.mechanisms.bag_sums.calibration.delta`).

    With rho = |N|/n, but for events of these probabilities a bag has noise of variance sigma² rho k/4 or more and no
    weight is above l:
    1. some of m bags has fewer than rho k/2 noisy labels: m exp(-rho² k/2) (Hoeffding 1963, without replacement);
    2. in some bag the sum of rho k/2 squared weights is below half its mean: m exp(-rho k/32) (Laurent, Massart 2000);
    3. some of m k weights is above l: 2 m k Φ(-l).

    Then what is left is the exact delta of Gaussian noise at l Delta/(sigma sqrt(rho k/4)), and l is the best one.

    Raises `InputError` for arguments out of range, and unless the design is the published one: a fixed noisy set and
    Gaussian weights.

    Examples:
        >>> from federation.mechanisms.bag_sums.calibration import delta
        >>> design = BagDesign(records=409_600, bags=100, size=4096, noisy=204_800)
        >>> theorem_delta(1.0, design, sigma=1.0, label_range=(0.0, 1.0))
        5.314e-05
        >>> delta(1.0, design, sigma=1.0, label_range=(0.0, 1.0))  # exactly
        6.589e-23
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr

    require_epsilon_from_zero(epsilon)
    if design.noisy is None or design.weights != "gaussian":
        raise InputError("the theorem covers Gaussian weights and a fixed noisy set; give noisy and no per_bag")
    share = design.noisy / design.records
    noise = require_positive("sigma", sigma) * math.sqrt(share * design.size / 4)
    few = math.exp(-(share**2) * design.size / 2) + math.exp(-share * design.size / 32)

    def log_rest(largest: float) -> float:
        beyond = 2 * design.bags * design.size * float(ndtr(-largest))
        seen = float(gaussian.delta(epsilon, largest * width(label_range) / noise))
        return math.log(max(beyond + seen, 1e-300))

    grid = np.linspace(0.05, 37.0, 200)
    near = min(grid, key=log_rest)
    best = minimize_scalar(log_rest, bounds=(max(near - 0.4, 0.01), near + 0.4), method="bounded")
    return min(1.0, design.bags * few + math.exp(min(float(best.fun), log_rest(near))))


_PUBLIC_FEATURES = Assumption(
    "features, bags and weights are public: only labels are protected", Check.DECLARED, Keeper.HOLDER
)


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


@dataclass(frozen=True)
class LaplaceBagSums(AlikeBags):
    """Releases of m sums of k labels with weights -1 and 1, each with discrete Laplace noise of scale range/epsilon.

    `grid_scale` is the scale in 2^-20 parts of the label range; one release has delta 0. Made by `laplace_bag_sums`.
    """

    epsilon: float
    grid_scale: int

    name: ClassVar[str] = "laplace_bag_sums"
    weights: ClassVar[Weights] = "signs"
    delta: ClassVar[float] = 0.0
    assumptions = (label_sums.DISJOINT_BAGS, _PUBLIC_FEATURES, label_sums.SIGN_WEIGHTS, *label_sums.COMMON)

    @property
    def scale(self) -> float:
        """Parameter of the Laplace noise on each sum, in units of labels."""
        return self.grid_scale * calibration.width(self.label_range) / label_sums.LABEL_STEPS

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        return public_numbers(self, self.label_range, scale=self.scale)

    def release(self, labels: Floats, weights: Floats, bits: NoiseBits) -> Floats:
        """Noisy sums of every bag, (m,) float64, in units of labels.

        `labels`, `weights`: (m, k) of the records in each bag, in the same order; of several releases one after another
        (..., m, k), which gives (..., m). Raises `InputError` for other shapes, for labels outside the range, and for
        weights other than -1 and 1.
        """
        self._require_shape(labels)
        return label_sums.laplace_sums(labels, weights, self.label_range, self.grid_scale, bits)

    def log_ratio(self, released: Floats, here: Floats, there: Floats, variances: Floats | None = None) -> Floats:
        """The log likelihood ratio of sums (n, m), exact sums `there` over `here`, (n, m) too, up to scale; (n,).

        The noise of all sums is alike, whatever the `variances`.
        """
        return np.asarray((np.abs(released - here) - np.abs(released - there)).sum(axis=1))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: 0 from the claimed one on."""
        epsilon = require_epsilon_from_zero(epsilon)
        return self.inclusion * discrete_laplace.delta(epsilon, label_sums.LABEL_STEPS, self.grid_scale)


def laplace_bag_sums(
    records: int, bags: int, size: int, *, label_range: tuple[float, float], epsilon: float
) -> LaplaceBagSums:
    """The least noise that makes one release of m bags of k out of n records epsilon-private.

    Raises `InputError` for arguments out of range.

    Examples:
        >>> mechanism = laplace_bag_sums(100, 5, 20, label_range=(0.0, 1.0), epsilon=0.5)
        >>> mechanism.scale, mechanism.delta_at(0.25)
        (2.0, 0.1175)
    """
    require_bags(records, bags, size)
    calibration.width(label_range)
    require_epsilon(epsilon)
    grid_scale = discrete_laplace.calibrate_discrete_laplace(label_sums.LABEL_STEPS, epsilon)
    require_scale("scale", grid_scale)
    return LaplaceBagSums(records, bags, size, label_range, epsilon, grid_scale)


def public_numbers(bags: BagDesign | AlikeBags, label_range: tuple[float, float], **noise: float) -> Parameters:
    """The parameters of a guarantee for label sums; those of the noise stand between bags and labels."""
    of_bags = {"records": bags.records, "bags": bags.bags, "size": bags.size, "weights": bags.weights}
    return {**of_bags, **noise, "lowest_label": label_range[0], "highest_label": label_range[1]}
