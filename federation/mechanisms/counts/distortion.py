"""How far released class proportions lie from the true ones, for public what-if counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import AdditiveCounts, checked_counts
from federation.mechanisms.counts.count_mechanism import CountMechanism
from federation.mechanisms.counts.lattice_laplace import LatticeLaplace
from federation.mechanisms.noise.checks import require_whole
from federation.numerics.arrays import Floats, Integers
from federation.numerics.simplex import project

DRAWS = 20_000
_NEGLIGIBLE = 1e-9  # probability that the projection moves anything
_MOST_NUMBERS = 2_000_000  # that all draws together may take
_OF_A_SHARE = 8.0  # such numbers are as much work as a Dirichlet share


@dataclass(frozen=True)
class Distortion:
    """E sum_i |released proportion_i - true proportion_i|, in [0, 2], after projection onto the simplex.

    `standard_error` is that of the mean of seeded draws, 0 where the expectation is computed exactly.
    """

    mean: float
    standard_error: float


def affordable(draws: int, classes: int, each: float = _OF_A_SHARE) -> int:
    """So many draws, or fewer for many classes, each of which takes `each` numbers; at least 2.

    The mean error of many classes is as exact with few draws as that of few classes is with many.
    """
    return int(max(2, min(draws, _MOST_NUMBERS / (classes * each))))


def distortion(mechanism: CountMechanism, counts: Integers, draws: int = DRAWS, seed: int = 1) -> Distortion:
    """The expected L1 distortion if a bag had these counts, shape (C,); they must be invented or public.

    Exact where the projection is needed with probability below 1e-9, otherwise by `draws` releases (see
    `affordable`), of which integer noise needs to say only what the projection changes. Raises `InputError` for
    counts that are none.

    Examples:
        >>> from federation.mechanisms.counts.lattice_laplace import calibrate
        >>> distortion(calibrate(3, epsilon=1.0, delta=0.0), np.array([500, 300, 200]))
        Distortion(mean=0.003665, standard_error=0.0)
    """
    counts = checked_counts(counts, mechanism.classes)
    require_whole("draws", draws, 1)
    size = int(counts.sum())
    additive = mechanism if isinstance(mechanism, AdditiveCounts) else None
    if additive and sum(map(additive.escape, counts)) < _NEGLIGIBLE:
        return Distortion(additive.expected_l1() / size, 0.0)
    bits = NoiseBits(seed, f"distortion of {mechanism.name}")
    if isinstance(mechanism, LatticeLaplace):
        each = math.sqrt(math.pi * mechanism.classes)  # proposals for a draw
    else:
        each = _OF_A_SHARE if additive is None else 1.0
    released = mechanism.release(counts, bits, affordable(draws, len(counts), each))
    return sampled(released, counts, additive.expected_l1() / size if additive else None)


def sampled(released: Floats, counts: Integers, unprojected: float | None = None) -> Distortion:
    """The mean distortion of released counts (draws, C), draws >= 2, and its standard error.

    `unprojected` is the expected distortion before projection, where known: a control variate, which counts as much as
    the draws show it to matter, hence not at all for noise far above the counts.
    """
    size = int(np.sum(counts))
    errors = np.abs(project(released / size) - counts / size).sum(axis=1)
    if unprojected is not None:
        known = np.abs(released - counts).sum(axis=1) / size
        about = known - known.mean()
        spread = float(about @ about)
        if spread > 0:
            errors += about @ errors / spread * (unprojected - known)
    return Distortion(float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(len(errors))))
