"""Laplace noise on the signed label sum of every bag: pure epsilon, and no choice of noisy labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from federation.contract.guarantee import Assumption, Check, Keeper, require_epsilon
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import accounting, label_sums
from federation.mechanisms.bag_sums.design import Weights, require_bags
from federation.mechanisms.bag_sums.sum_mechanism import AlikeBags, public_numbers
from federation.mechanisms.noise import discrete_laplace
from federation.mechanisms.noise.checks import require_epsilon_from_zero
from federation.mechanisms.noise.mechanism import Parameters
from federation.mechanisms.noise.scales import require_scale
from federation.numerics.arrays import Floats

_PUBLIC_ROWS = Assumption(
    "features, bags and weights are public: only labels are protected", Check.DECLARED, Keeper.HOLDER
)


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

    @property
    def scale(self) -> float:
        """Parameter of the Laplace noise on each sum, in units of labels."""
        return self.grid_scale * accounting.width(self.label_range) / label_sums.LABEL_STEPS

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

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0: 0 from the claimed one on."""
        epsilon = require_epsilon_from_zero(epsilon)
        return self.inclusion * discrete_laplace.delta(epsilon, label_sums.LABEL_STEPS, self.grid_scale)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, and how each premise is kept."""
        return label_sums.DISJOINT_BAGS, _PUBLIC_ROWS, label_sums.SIGN_WEIGHTS, *label_sums.COMMON


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
    accounting.width(label_range)
    require_epsilon(epsilon)
    grid_scale = discrete_laplace.calibrate(label_sums.LABEL_STEPS, epsilon)
    require_scale("scale", grid_scale)
    return LaplaceBagSums(records, bags, size, label_range, epsilon, grid_scale)
