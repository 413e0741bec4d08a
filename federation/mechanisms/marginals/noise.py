"""Integer noise on error marginals: one scale for every cell, such that all queries together keep one promise.

EXPRIL (Lacombe et al. 2021, Section 3.4) asks for errors in the bins of d features, Q times. Its scale d Q / epsilon is
kept here, on noisy counts of errors and of correct rows, for which it protects a row that is added or removed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.grid import smallest_scale
from federation.mechanisms.marginals.cells import (
    MOST_EPSILON,
    SMOOTH_SIGMA,
    deviation,
    gaussian_delta,
    grid_scale,
    laplace_delta,
)
from federation.mechanisms.marginals.neighbours import MAX_CELLS, moved_cells, premises
from federation.mechanisms.noise import discrete_gaussian, discrete_laplace, gaussian
from federation.mechanisms.noise.checks import require_epsilon_from_zero, require_wanted, require_whole
from federation.mechanisms.noise.mechanism import NOISE_KEY, Parameters, promised
from federation.numerics.arrays import Integers

MarginalKind = Literal["auto", "pure", "gaussian"]

FREE = 1.001  # at so little more deviation than with delta, a pure guarantee is preferred
_SAFE = 2e-9  # relative distance to the safe side of delta: covers the rounding of its computation
_LARGEST_COUNT = 2**52


@dataclass(frozen=True)
class MarginalNoise:
    """Exact integer noise on each cell of the answers to Q = `queries` queries about d = `features` features.

    A cell is a count of errors, or of correct rows, in one bin of one feature. `epsilon` and `delta` are what all Q
    answers together claim for one `unit` under `adjacency`; `scale` is that of the noise on one cell, in rows. At delta
    0 the noise has P[k] ∝ exp(-|k|/scale), which is pure; else P[k] ∝ exp(-k²/(2 scale²)), and all answers are one
    Gaussian release, however queries are chosen. Made by `calibrate`.
    """

    features: int
    queries: int
    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float
    scale: Fraction

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return "marginal_gaussian" if self.delta else "marginal_laplace"

    @property
    def cells(self) -> int:
        """N, how many cells one unit moves by one each, over all queries."""
        return moved_cells(self.unit, self.adjacency) * self.features * self.queries

    @property
    def parameters(self) -> Parameters:
        """Public numbers; sensitivities are those of one answer. The scale is dyadic, so its double is exact.

        Composition of Gaussian noise reads `dimension` and `grid_scale`: those of the one integer that tells all
        (`cells`), or of all cells that move where the scale is too small for the law of that one.
        """
        sigma, moved = float(self.scale), self.cells // self.queries
        noise: Parameters = {"features": self.features, "queries": self.queries, "scale": sigma}
        noise |= {"l1_sensitivity": moved, "l2_sensitivity": math.sqrt(moved)}
        if self.gaussian_mu is None:
            return noise
        if sigma < SMOOTH_SIGMA:
            return noise | {"dimension": self.cells, "grid_scale": math.floor(sigma)}
        return noise | {"dimension": 1, "grid_scale": grid_scale(self.cells, sigma)}

    @property
    def gaussian_mu(self) -> float | None:
        """sqrt(N)/scale of Gaussian noise, for composition; None below scale 1, where the comparison has no proof."""
        return math.sqrt(self.cells) / float(self.scale) if self.delta and self.scale >= 1 else None

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on one cell, in rows: about the scale, and for Laplace sqrt 2 times it."""
        if self.delta:
            return deviation(float(self.scale))
        return math.sqrt(discrete_laplace.variance(self.scale))

    def release(self, cells: Integers, bits: NoiseBits) -> Integers:
        """Noisy counts in the shape of `cells`, int64; they may be negative.

        `cells`: whole numbers from 0 to 2^52, of any shape; every cell must be given, empty ones too. Raises
        `InputError` for others.
        """
        given = np.asarray(cells)
        if given.dtype.kind not in "iu" or np.any((given < 0) | (given > _LARGEST_COUNT)):
            raise InputError(
                f"cells must be whole numbers of rows from 0 to 2^52, got others among {given.dtype} of shape "
                f"{given.shape}; count each row once, without weights"
            )
        sample = discrete_gaussian.sample if self.delta else discrete_laplace.sample
        return given.astype(np.int64) + sample(bits, self.scale, given.size).reshape(given.shape)

    def of(self, queries: int) -> MarginalNoise:
        """The same noise on as many queries: what the first so many answers claim, at the same delta.

        Raises `InputError` unless 1 <= queries <= Q.
        """
        require_whole("queries", queries, 1, self.queries, "the agreed ")
        if queries == self.queries:
            return self
        epsilon = self.epsilon * queries / self.queries
        if self.delta:
            cells = self.cells // self.queries * queries
            epsilon = _least_epsilon(cells, float(self.scale), self.delta, self.epsilon)
        return replace(self, queries=queries, epsilon=epsilon)

    def guarantee(self, further: tuple[Assumption, ...] = ()) -> Guarantee:
        """What all Q answers promise together; `further` assumptions come before its own."""
        law = "Gaussian" if self.delta else "Laplace"
        noise = Assumption(
            f"the noise is the discrete {law} of parameter `scale`, independent for each cell and drawn exactly in "
            "integer arithmetic",
            Check.ENFORCED,
        )
        own = (*premises(self.unit, self.adjacency, self.queries), noise, NOISE_KEY)
        return promised(self, self.unit, self.adjacency, (*further, *own))

    def per_query(self, further: tuple[Assumption, ...] = ()) -> Guarantee:
        """What one answer promises by itself; those of all Q compose to that of all, or to slightly more.

        Pure ones add up to it. The composition of Gaussian ones knows the scale of each answer only; at epsilon 1 its
        epsilon is larger by about 0.6/N of itself, for the N cells of all queries. `of` is exact.
        """
        return self.of(1).guarantee(further)

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of all Q answers together at another epsilon >= 0; Gaussian: as `gaussian_delta`."""
        epsilon = require_epsilon_from_zero(epsilon)
        if self.delta:
            return gaussian_delta(epsilon, self.cells, float(self.scale))
        return laplace_delta(epsilon, self.cells, self.scale)


def calibrate(
    noise: MarginalKind, *, features: int, queries: int, epsilon: float, delta: float, unit: Unit, adjacency: Adjacency
) -> MarginalNoise:
    """The least noise of a kind that makes all `queries` answers together (epsilon, delta)-private.

    `noise`: "pure" (discrete Laplace of scale N/epsilon, with N cells moved by one unit over all queries; its delta is
    0), "gaussian" (discrete Gaussian, by the exact delta) or "auto" (the smaller standard deviation of a cell; within
    0.1 % pure). Queries may be chosen by the answers before; how many is fixed beforehand. `unit` and `adjacency` as
    `moved_cells`; `delta` in [0, 1), above 0 for gaussian. All arguments are public numbers. Raises `InputError` for
    arguments out of range.

    Examples:
        >>> size = {"features": 4, "queries": 10, "unit": Unit.ROW, "adjacency": Adjacency.ADD_REMOVE}
        >>> noise = calibrate("auto", **size, epsilon=1.0, delta=1e-6)
        >>> noise.name, float(noise.scale), noise.per_query().epsilon
        ('marginal_gaussian', 26.72, 0.2912)
        >>> noise.release(np.array([[3, 0], [12, 7]]), NoiseBits(1, "example"))
        array([[ 38, -50],
               [  4,  -1]])
    """
    require_wanted(noise, epsilon, delta, known=get_args(MarginalKind), with_delta=("gaussian",), pure="pure")
    require_whole("features", features, 1)
    require_whole("queries", queries, 1)
    cells = moved_cells(unit, adjacency) * features * queries
    if cells > MAX_CELLS:
        raise InputError(f"features times queries must move at most 2^20 cells, got {cells}; choose fewer")
    known_of_all = (features, queries, Unit(unit), Adjacency(adjacency), epsilon)
    pure = MarginalNoise(*known_of_all, 0.0, _laplace_scale(cells, epsilon))
    if noise == "pure" or delta == 0:
        return pure
    normal = MarginalNoise(*known_of_all, delta, _gaussian_scale(cells, epsilon, delta))
    return pure if noise == "auto" and pure.deviation <= FREE * normal.deviation else normal


@lru_cache
def _laplace_scale(cells: int, epsilon: float) -> Fraction:
    return smallest_scale(lambda scale: cells / scale <= Fraction(epsilon), cells / epsilon)


@lru_cache
def _gaussian_scale(cells: int, epsilon: float, delta: float) -> Fraction:
    limit = delta * (1 - _SAFE)
    near = math.sqrt(cells) / gaussian.mu(min(epsilon, MOST_EPSILON), delta)
    return smallest_scale(lambda scale: gaussian_delta(epsilon, cells, float(scale)) <= limit, near)


@lru_cache
def _least_epsilon(cells: int, sigma: float, delta: float, enough: float) -> float:
    """Within 1e-12 of the smallest epsilon > 0 for this delta, at most `enough`, by bisection."""
    limit = delta * (1 - _SAFE)
    low, high = 0.0, enough
    while high - low > 1e-12 * enough:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, cells, sigma) <= limit else (middle, high)
    return high
