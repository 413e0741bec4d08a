"""Integer noise on error marginals: one scale for every cell, such that all queries together keep one promise.

EXPRIL (Lacombe et al. 2021, Section 3.4) asks for errors in the bins of d features, Q times. Its scale d Q / epsilon is
kept here, on noisy counts of errors and of correct rows, for which it protects a row that is added or removed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.grid import smallest_scale
from federation.mechanisms.marginals import gaussian_cells, laplace_cells
from federation.mechanisms.marginals.neighbours import MAX_CELLS, moved_cells, premises
from federation.mechanisms.noise import discrete_gaussian, discrete_laplace, gaussian
from federation.mechanisms.noise.mechanism import NOISE_KEY, promised, require_wanted

MarginalKind = Literal["auto", "pure", "gaussian"]

_FREE = 1.001  # at so little more deviation than with delta, a pure guarantee is preferred
_SAFE = 2e-9  # relative distance to the safe side of delta: covers the rounding of its computation
_LARGEST_COUNT = 2**52


@dataclass(frozen=True)
class MarginalNoise(ABC):
    """Exact integer noise on each cell of the answers to Q = `queries` queries about d = `features` features.

    A cell is a count of errors, or of correct rows, in one bin of one feature. `epsilon` and `delta` are what all Q
    answers together claim for one `unit` under `adjacency`; `scale` is that of the noise on one cell, in rows.
    """

    features: int
    queries: int
    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float
    scale: Fraction

    name: ClassVar[str]
    law: ClassVar[str]  # of the noise, as a guarantee puts it

    @property
    def cells(self) -> int:
        """N, how many cells one unit moves by one each, over all queries."""
        return moved_cells(self.unit, self.adjacency) * self.features * self.queries

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers; sensitivities are those of one answer. The scale is dyadic, so its double is exact."""
        moved = self.cells // self.queries
        return {
            "features": self.features,
            "queries": self.queries,
            "scale": float(self.scale),
            "l1_sensitivity": moved,
            "l2_sensitivity": math.sqrt(moved),
        }

    @property
    def gaussian_mu(self) -> float | None:
        """Sensitivity over standard deviation where the loss is that of a Gaussian, else None."""
        return None

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Standard deviation of the noise on one cell, in rows."""

    def release(self, cells: np.ndarray, bits: NoiseBits) -> np.ndarray:
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
        return given.astype(np.int64) + self._noise(bits, given.size).reshape(given.shape)

    def of(self, queries: int) -> MarginalNoise:
        """The same noise on as many queries: what the first so many answers claim, at the same delta.

        Raises `InputError` unless 1 <= queries <= Q.
        """
        if isinstance(queries, bool) or not isinstance(queries, int) or not 1 <= queries <= self.queries:
            raise InputError(f"queries must be a whole number from 1 to the {self.queries} agreed on, got {queries!r}")
        return self if queries == self.queries else replace(self, queries=queries, epsilon=self._epsilon_of(queries))

    def guarantee(self, further: tuple[Assumption, ...] = ()) -> Guarantee:
        """What all Q answers promise together; `further` assumptions come before its own."""
        noise = Assumption(
            f"the noise is {self.law}, independent for each cell and drawn exactly in integer arithmetic",
            Check.ENFORCED,
        )
        own = (*premises(self.unit, self.adjacency, self.queries), noise, NOISE_KEY)
        return promised(self, self.unit, self.adjacency, (*further, *own), self.gaussian_mu)

    def per_query(self, further: tuple[Assumption, ...] = ()) -> Guarantee:
        """What one answer promises by itself; those of all Q compose to that of all, or to slightly more.

        Pure ones add up to it. The composition of Gaussian ones knows the scale of each answer only; at epsilon 1 its
        epsilon is larger by about 0.6/N of itself, for the N cells of all queries. `of` is exact.
        """
        return self.of(1).guarantee(further)

    @abstractmethod
    def delta_at(self, epsilon: float) -> float:
        """The exact delta of all Q answers together at another epsilon >= 0."""

    @abstractmethod
    def _epsilon_of(self, queries: int) -> float:
        """Of fewer queries, at the same delta."""

    @abstractmethod
    def _noise(self, bits: NoiseBits, size: int) -> np.ndarray:
        """Integer noise, (size,) int64."""


@dataclass(frozen=True)
class LaplaceMarginals(MarginalNoise):
    """Noise with P[k] ∝ exp(-|k|/scale): pure."""

    name: ClassVar[str] = "marginal_laplace"
    law: ClassVar[str] = "the discrete Laplace of parameter `scale`"

    @property
    def deviation(self) -> float:
        """sqrt(2 q)/(1 - q), q = e^{-1/scale}: about sqrt 2 times the scale."""
        return math.sqrt(discrete_laplace.variance(self.scale))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of all Q answers together at another epsilon >= 0."""
        return laplace_cells.delta(epsilon, self.cells, self.scale)

    def _epsilon_of(self, queries: int) -> float:
        return self.epsilon * queries / self.queries

    def _noise(self, bits: NoiseBits, size: int) -> np.ndarray:
        return discrete_laplace.sample(bits, self.scale, size)


@dataclass(frozen=True)
class GaussianMarginals(MarginalNoise):
    """Noise with P[k] ∝ exp(-k²/(2 scale²)): all answers are one Gaussian release, however queries are chosen."""

    name: ClassVar[str] = "marginal_gaussian"
    law: ClassVar[str] = "the discrete Gaussian of parameter `scale`"

    @property
    def gaussian_mu(self) -> float | None:
        """sqrt(N)/scale, for composition; None below scale 1, where the comparison has no proof."""
        return math.sqrt(self.cells) / float(self.scale) if self.scale >= 1 else None

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers; composition reads `dimension` and `grid_scale`.

        They are those of the one integer that tells all (`gaussian_cells`), and of all cells that move where the scale
        is too small for its law to be that of a discrete Gaussian.
        """
        if self.gaussian_mu is None:
            return super().parameters
        sigma = float(self.scale)
        one = sigma >= gaussian_cells.SMOOTH_SIGMA
        grid = {"dimension": 1, "grid_scale": gaussian_cells.grid_scale(self.cells, sigma)}
        return super().parameters | (grid if one else {"dimension": self.cells, "grid_scale": math.floor(sigma)})

    @property
    def deviation(self) -> float:
        """The scale, but for what the grid changes where the scale is small."""
        return gaussian_cells.deviation(float(self.scale))

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of all Q answers together at another epsilon >= 0; as `gaussian_cells.delta`."""
        return gaussian_cells.delta(epsilon, self.cells, float(self.scale))

    def _epsilon_of(self, queries: int) -> float:
        return _least_epsilon(self.cells // self.queries * queries, float(self.scale), self.delta, self.epsilon)

    def _noise(self, bits: NoiseBits, size: int) -> np.ndarray:
        return discrete_gaussian.sample(bits, self.scale, size)


def calibrate(
    noise: MarginalKind,
    *,
    features: int,
    queries: int,
    epsilon: float,
    delta: float,
    unit: Unit,
    adjacency: Adjacency,
) -> MarginalNoise:
    """The least noise of a kind that makes all `queries` answers together (epsilon, delta)-private.

    `noise`: "pure" (discrete Laplace of scale N/epsilon, with N cells moved by one unit over all queries; its delta is
    0), "gaussian" (discrete Gaussian, by the exact delta) or "auto" (the smaller standard deviation of a cell; within
    0.1 % pure). Queries may be chosen by the answers before; how many is fixed beforehand. `unit` and `adjacency` as
    `moved_cells`; `delta` in [0, 1), above 0 for gaussian. All arguments are public numbers. Raises `InputError` for
    arguments out of range.
    """
    require_wanted(noise, epsilon, delta, known=get_args(MarginalKind), with_delta=("gaussian",), pure="pure")
    for name, value in (("features", features), ("queries", queries)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")
    cells = moved_cells(unit, adjacency) * features * queries
    if cells > MAX_CELLS:
        raise InputError(f"features times queries must move at most 2^20 cells, got {cells}; choose fewer")
    known_of_all = (features, queries, Unit(unit), Adjacency(adjacency), epsilon)
    pure = LaplaceMarginals(*known_of_all, 0.0, _laplace_scale(cells, epsilon))
    if noise == "pure" or delta == 0:
        return pure
    normal = GaussianMarginals(*known_of_all, delta, _gaussian_scale(cells, epsilon, delta))
    return pure if noise == "auto" and pure.deviation <= _FREE * normal.deviation else normal


@lru_cache
def _laplace_scale(cells: int, epsilon: float) -> Fraction:
    return smallest_scale(lambda scale: cells / scale <= Fraction(epsilon), cells / epsilon)


@lru_cache
def _gaussian_scale(cells: int, epsilon: float, delta: float) -> Fraction:
    limit = delta * (1 - _SAFE)
    near = math.sqrt(cells) / gaussian.mu(min(epsilon, gaussian_cells.MOST_EPSILON), delta)
    return smallest_scale(lambda scale: gaussian_cells.delta(epsilon, cells, float(scale)) <= limit, near)


@lru_cache
def _least_epsilon(cells: int, sigma: float, delta: float, enough: float) -> float:
    """Within 1e-12 of the smallest epsilon > 0 for this delta, at most `enough`, by bisection."""
    limit = delta * (1 - _SAFE)
    low, high = 0.0, enough
    while high - low > 1e-12 * enough:
        middle = (low + high) / 2
        if gaussian_cells.delta(middle, cells, sigma) <= limit:
            high = middle
        else:
            low = middle
    return high
