"""Integer noise on error marginals: one scale for every cell, so that all queries together keep one guarantee.

EXPRIL (Lacombe et al. 2021, Section 3.4) asks for errors in the bins of d features, Q times. This module keeps its
scale d Q / epsilon, on noisy counts of errors and of correct rows. For these the scale protects a row that is added or
removed.

A row lies in one bin of each feature, and there it is an error of the hypothesis or not. So it is in one cell for each
feature: (bin, error or correct). No unit moves a count by more than one, and only the number of moved cells matters.
`moved_cells` counts the cells that one row or one label moves, and `premises` states what this assumes.

`gaussian_delta` and `laplace_delta` give the exact delta of N integers with discrete noise that move by one each: the
cells that one unit moves.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import smallest_scale
from federation.mechanisms.noise import discrete, gaussian
from federation.mechanisms.noise.mechanism import (
    MAX_SCALE,
    NOISE_KEY,
    Parameters,
    promised,
    require_epsilon_from_zero,
    require_wanted,
    require_whole,
)
from federation.numerics.rows import Floats, Integers

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
        return math.sqrt(discrete.variance(self.scale))

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
        sample = discrete.sample_discrete_gaussian if self.delta else discrete.sample_discrete_laplace
        return given.astype(np.int64) + sample(bits, self.scale, given.size).reshape(given.shape)

    def of(self, queries: int) -> "MarginalNoise":
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

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """The log likelihood ratio of noisy cells (n, K), exact cells `there` over `here` (1, K), up to scale; (n,)."""
        power = 2 if self.delta else 1
        far, near = ((np.abs(released - cells) ** power).sum(axis=1) for cells in (here, there))
        return np.asarray(far - near)

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


SMOOTH_SIGMA = 2.5
MOST_EPSILON = 1e6  # noise for this one serves larger ones: its draws are 0 in all likelihood
_MAX_SUM_TAU = 4096.0  # beyond, the bound for one integer is within 1e-6 of exact
_REACH = 9  # in standard deviations: what a sum leaves out is below e^-40 of its first terms
_WRAP = 12  # the same, for the circle on which the law of S is computed


def gaussian_delta(epsilon: float, cells: int, sigma: float) -> float:
    """The smallest delta at `epsilon` >= 0 of `cells` = N noisy integers of scale `sigma` that move by one each.

    The log likelihood ratio of the noisy integers is (N - 2 S)/(2 sigma²). S is the sum of the noise, signed as the
    integers move. So S is sufficient: the N cells tell as much as one integer S that moves by N, whatever the other
    cells are. A sequence of adaptively chosen queries tells what the sum over all queries tells.

    The law of S is e^{-s²/(2 N sigma²)} theta(s) up to a factor. Here theta(s) is the sum of e^{-|w|²/(2 sigma²)} over
    the offsets w of integer vectors of sum s from their mean. By Poisson summation theta is constant up to relative
    zeta, the sum of e^{-2 pi² sigma² |y|²} over the projections y != 0 of integer vectors k on the sum zero. Of all k
    with one projection take one with median 0. Each entry but 0 then differs from N/2 entries or more by at least its
    size, opposite signs adding up. So |y|² = sum over pairs of (k_i - k_j)²/N >= |k|²/2, and zeta <= (1 + 2.1 e^{-pi²
    sigma²})^N - 1. From sigma = 2.5 on that is below N 10^-26, and S is the discrete Gaussian of scale sqrt(N) sigma.

    From sqrt(N) sigma = 4096 on it is the bound `discrete.delta_bound` in one dimension: larger by 1e-4 of
    itself or so, as a millionth of epsilon would make it. Above `MOST_EPSILON` it is that of `MOST_EPSILON`, which is
    no smaller.

    Examples:
        >>> gaussian_delta(1.0, cells=10, sigma=5.0)
        0.02438
    """
    epsilon = min(epsilon, MOST_EPSILON)
    tau = math.sqrt(cells) * sigma
    if tau > _MAX_SUM_TAU:
        return discrete.delta_bound(epsilon, cells / tau, 1, grid_scale(cells, sigma))
    last = math.ceil(cells / 2 - epsilon * sigma**2) - 1  # the largest S whose loss exceeds epsilon
    s, mass = _smooth_law(last, tau) if sigma >= SMOOTH_SIGMA else _law(last, cells, sigma)
    loss = (cells - 2 * s) / (2 * sigma**2)
    return min(1.0, float(mass @ -np.expm1(np.minimum(epsilon - loss, 0.0))))


def laplace_delta(epsilon: float, cells: int, scale: Fraction) -> float:
    """The smallest delta at `epsilon` >= 0 of `cells` = N noisy integers of parameter t = `scale`; 0 from N/t on.

    The loss of one integer is +1/t or -1/t, as the noise lies on one side of the step or on the other. With
    q = e^{-1/t} it is the former with probability 1/(1 + q). So N integers lose as N randomised responses do (Kairouz,
    Oh, Viswanath 2015).

    With B binomial (N, 1/(1 + q)) the loss is (2 B - N)/t, and delta the mean of (1 - e^{epsilon - loss})+. Relative
    error below 1e-8.

    Examples:
        >>> laplace_delta(1.0, cells=10, scale=Fraction(5)), laplace_delta(2.0, cells=10, scale=Fraction(5))
        (0.02473, 0.0)
    """
    from scipy.special import gammaln

    t = float(scale)
    least = int((cells + Fraction(epsilon) * scale) // 2) + 1  # the fewest gains whose loss exceeds epsilon
    plus = np.arange(min(least, cells + 1), cells + 1)
    log_mass = gammaln(cells + 1) - gammaln(plus + 1) - gammaln(cells - plus + 1)
    log_mass -= (cells - plus) / t + cells * np.log1p(np.exp(-1 / t))
    return float(np.exp(log_mass) @ -np.expm1(np.minimum(epsilon - (2 * plus - cells) / t, 0.0)))


def grid_scale(cells: int, sigma: float) -> int:
    """The largest integer that the scale of S reaches, at most 2^40: the bounds for one integer hold with it.

    Examples:
        >>> grid_scale(cells=10, sigma=5.0)
        15
    """
    return min(math.floor(math.sqrt(cells) * sigma), MAX_SCALE)


def deviation(sigma: float) -> float:
    """The standard deviation of one noisy integer, which is sigma but for e^{-2 pi² sigma²}.

    Examples:
        >>> deviation(0.3), deviation(3.0)
        (0.08759, 3.0)
    """
    if sigma >= SMOOTH_SIGMA:
        return sigma
    k = np.arange(-math.ceil(27 * sigma) - 3, math.ceil(27 * sigma) + 4)
    return math.sqrt(float(np.square(k) @ _tilted(k, 0.0, sigma)[0]))


def _smooth_law(last: int, tau: float) -> tuple[Integers, Floats]:
    """s up to `last` and P[S = s], without what is negligible."""
    s = np.arange(min(last, 0) - math.ceil(_REACH * tau), last + 1)
    return s, np.exp(-0.5 * np.square(s / tau)) / (tau * math.sqrt(2 * math.pi))


def _law(last: int, cells: int, sigma: float) -> tuple[Integers, Floats]:
    """The same for any sigma, from the Fourier transform of the noise.

    The noise is tilted so that the mean of the sum is `last` where that is below 0: its law is then precise in relation
    to its own size there, and the tilt is taken back: P[S = s] = E[e^{theta Z}]^N e^{-theta s} P_theta[S = s].
    """
    mean = min(last, 0) / cells
    k = np.arange(math.floor(mean) - math.ceil(27 * sigma) - 3, math.ceil(mean) + math.ceil(27 * sigma) + 4)
    centre = _centre(k, mean, sigma)
    mass, log_total = _tilted(k, centre, sigma)
    _, log_plain = _tilted(np.arange(-math.ceil(27 * sigma) - 3, math.ceil(27 * sigma) + 4), 0.0, sigma)
    width = math.ceil(_WRAP * math.sqrt(cells) * max(sigma, 1.0)) + len(k)
    circle = 2 ** math.ceil(math.log2(2 * width))
    law = np.zeros(circle)
    law[k % circle] = mass
    summed = np.fft.irfft(np.fft.rfft(law) ** cells, circle)
    expected = min(last, 0)
    s = np.arange(expected - width, min(last, expected + width) + 1)
    log_tilt = cells * (centre**2 / (2 * sigma**2) + log_total - log_plain) - centre / sigma**2 * s
    return s, np.maximum(summed[s % circle], 0.0) * np.exp(log_tilt)


def _centre(k: Integers, mean: float, sigma: float) -> float:
    """c such that the law ∝ e^{-(k - c)²/(2 sigma²)} has this mean."""
    from scipy.optimize import brentq

    if mean == 0:
        return 0.0
    return float(brentq(lambda centre: float(k @ _tilted(k, centre, sigma)[0]) - mean, mean - 1, mean + 1))


def _tilted(k: Integers, centre: float, sigma: float) -> tuple[Floats, float]:
    """The law ∝ e^{-(k - c)²/(2 sigma²)}, and the log of the sum of these terms."""
    exponent = -0.5 * np.square((k - centre) / sigma)
    largest = float(exponent.max())
    mass = np.exp(exponent - largest)
    return mass / mass.sum(), largest + math.log(mass.sum())


MAX_CELLS = 2**20  # that move in all queries together

_MOVED = {
    (Unit.ROW, Adjacency.ADD_REMOVE): 1,
    (Unit.ROW, Adjacency.REPLACE): 2,  # one cell loses a row, another gains one
    (Unit.LABEL, Adjacency.REPLACE): 1,  # counts of errors only
}

_ONE_BIN = Assumption(
    "every row is in exactly one bin of every feature, values outside all edges in the end bins: one cell a feature",
    Check.ENFORCED,
)
_PUBLIC_BINS = Assumption(
    "bins and hypotheses come from public rows and from answers of this exchange, never from private rows",
    Check.DECLARED,
    Keeper.COORDINATOR,
)
_ALL_CELLS = Assumption("every cell is answered with noise, whether it holds rows or not", Check.ENFORCED)
_PREMISES = {
    (Unit.ROW, Adjacency.ADD_REMOVE): (
        _ALL_CELLS,
        Assumption("how many rows there are is not published", Check.DECLARED, Keeper.HOLDER),
    ),
    (Unit.ROW, Adjacency.REPLACE): (
        _ALL_CELLS,
        Assumption("how many rows there are is public", Check.DECLARED, Keeper.HOLDER),
    ),
    (Unit.LABEL, Adjacency.REPLACE): (
        Assumption(
            "features, and so how many rows are in each bin, are public: only labels are protected",
            Check.DECLARED,
            Keeper.HOLDER,
        ),
        Assumption(
            "of what depends on labels, only the counts of errors are answered, each with noise", Check.ENFORCED
        ),
    ),
}


def moved_cells(unit: Unit, adjacency: Adjacency) -> int:
    """Counts per feature that one unit moves, each by one: the L1 sensitivity of an answer over its d features.

    1 for an added or removed row and for a changed label (whose rows are counted exactly, and errors with noise), 2 for
    a replaced row. Raises `InputError` for any other unit or adjacency.

    Examples:
        >>> moved_cells(Unit.ROW, Adjacency.REPLACE), moved_cells(Unit.LABEL, Adjacency.REPLACE)
        (2, 1)
    """
    if (unit, adjacency) not in _MOVED:
        known = ", ".join(f"{one} by {change}" for one, change in _MOVED)
        raise InputError(f"unit and adjacency must be one of {known} for error marginals, got {unit} by {adjacency}")
    return _MOVED[unit, adjacency]


def premises(unit: Unit, adjacency: Adjacency, queries: int) -> tuple[Assumption, ...]:
    """What a guarantee for `queries` answers rests on, but for the noise. Raises `InputError` as `moved_cells`."""
    moved_cells(unit, adjacency)
    what = "one query is answered" if queries == 1 else f"{queries} queries, agreed on before the first, are answered"
    limit = Assumption(f"{what} and no further one; each may depend on the answers before", Check.ENFORCED)
    return (_ONE_BIN, *_PREMISES[unit, adjacency], _PUBLIC_BINS, limit)
