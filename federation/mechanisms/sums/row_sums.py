"""Noise on sums over a party's rows: the sum of labels times rows, and the second moments of a linear regression.

- `SumNoise` perturbs the sum of y x over rows x of norm at most 1 with labels y = 1 or -1. The caller names the noise
  or lets the calibration choose it.
- `SummedResponse` applies randomised response to every label y and adds up. It is better for parties with few rows
  (`SummedResponse.rows_for`).
- `RowStatistic` and `RowMoments` are what a linear regression needs of private rows: the sum over rows x with labels y
  of (x x', sqrt(2) y x, 2 y^2), with or without noise.
- `noise_quantile` and `regularisation` compute from public numbers alone quantiles of the noise's norm, and how much to
  regularise.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy.special import chdtri, gammainccinv

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import randomised_response
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.randomised_response import OneBitLabels
from federation.mechanisms.noise.additive import AdditiveMechanism, OnAdditive, calibrate_laplace, summation_error
from federation.mechanisms.noise.additive import calibrate as calibrate_additive
from federation.mechanisms.noise.mechanism import (
    Parameters,
    require_positive,
    require_share,
    require_wanted,
    require_whole,
)
from federation.mechanisms.sums import shares
from federation.numerics.rows import Floats

_Kind = Literal["laplace", "pure", "gaussian", "published_laplace"]
SumNoiseKind = Literal["auto", _Kind]

_LONGER = 1e-9  # by so much may rounding make a row's norm exceed its bound; charged
_MOST_STEPS = 2.0**51  # of the noise's grid, in a sum


@dataclass(frozen=True)
class SumNoise(OnAdditive):
    """Noise that makes one release of a sum of y x over at most `rows` rows x (epsilon, delta)-private.

    Rows have norm at most 1, and labels are y = 1 or -1. One replaced label moves the sum by 2 x_i, one replaced row by
    y x - y' x'. That is 2 at most in the L2 norm. In the L1 norm it is 2 sqrt(d) at most, or less where the rows have a
    smaller public L1 bound. Patrini, Nielsen and Nock (2015, Algorithm 2) add Laplace noise for an L1 norm of 1,
    whatever the rows' norm. `published_laplace` is that noise, with the epsilon that it gives.

    With `contributors` = 0 a release has the whole noise. Otherwise it has one share of it, and what is private is the
    sum of the releases of so many parties or more, each of them for the rows of its own; further shares only add
    independent noise. `l1_bound` is the rows' public L1 bound where the noise makes use of it, else None; `claimed` the
    epsilon that a published mechanism claims, else None. What one row adds to the sum has norm `longest` at most.
    Everything is made of public numbers.
    """

    additive: AdditiveMechanism
    rows: int
    contributors: int = 0
    l1_bound: float | None = None
    claimed: float | None = None
    longest: float = 1.0

    units: ClassVar[tuple[Unit, ...]] = (Unit.LABEL, Unit.ROW)

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return f"sum_{'published_laplace' if self.claimed is not None else self.additive.name}"

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """Public numbers of the mechanism, as its guarantee lists them."""
        own: Parameters = {"rows": self.rows, "contributors": self.contributors}
        optional = {"l1_bound": self.l1_bound, "claimed_epsilon": self.claimed}
        return {**self.additive.parameters, **own, **{k: v for k, v in optional.items() if v is not None}}

    def variance(self) -> float:
        """Of the whole noise in each coordinate of the sum, over all `contributors` where there are shares."""
        if self.contributors:
            return shares.variance(self.additive, self.contributors)
        return self.additive.variance()

    def noise_norm(self) -> float:
        """The root mean square L2 norm of the whole noise: sqrt(d variance)."""
        return math.sqrt(self.additive.dimension * self.variance())

    def release(self, total: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """Noisy sums, shape (draws, d) float64, in whole multiples of the grid's step, so that they add up exactly.

        `total` (d,): the sum over rows cut to their norm bounds. Raises `InputError` for another shape, NaN, infinities
        or a sum that no `rows` rows of norm 1 have (or of `longest`): some were not cut.
        """
        if np.linalg.norm(total) > self.rows * self.longest * (1 + _LONGER) * (1 + summation_error(self.rows)):
            raise InputError(
                f"total must be a sum over at most {self.rows} rows of norm {self.longest:.3g}, and is longer; cut the "
                "rows"
            )
        if not self.contributors:
            return self.additive.release(total, bits, draws)
        return shares.release(self.additive, self.contributors, total, bits, draws)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, but for why rows keep their bounds."""
        if not self.contributors:
            return self.additive.assumptions
        return shares.assumptions(self.additive, self.contributors)


def calibrate_row_sums(
    noise: SumNoiseKind,
    *,
    dimension: int,
    epsilon: float,
    delta: float = 0.0,
    l1_bound: float | None = None,
    rows: int,
    contributors: int = 0,
) -> SumNoise:
    """The least noise of a kind that makes a sum over at most `rows` rows (epsilon, delta)-private.

    `noise`: "pure" (L2-Gamma; in one dimension the discrete Laplace), "laplace" (discrete Laplace in each coordinate),
    "gaussian" (discrete Gaussian), "auto" (the smallest root mean square norm of these, Gaussian if delta > 0 only), or
    "published_laplace" (scale 2/epsilon in each coordinate, which gives epsilon times the rows' L1 bound, and claims
    epsilon). `delta` in [0, 1); pure kinds claim 0 whatever it is. `l1_bound`: a public bound on the L1 norm of rows
    that somebody enforces; sqrt(d) without it, or where it is larger. `rows`: the most that one release sums.
    `contributors`: how many honest parties share the noise of their sum; 0 for whole noise. Raises `InputError` for
    arguments out of range, or that do not fit the grid.

    Charged beyond 2 are rows that rounding makes longer than their bound, and summation in double precision, whose
    error for each neighbour is below (n + 2) 2^-53 sum_i |x_i| (Higham 2002, Section 3.1).

    Examples:
        >>> noise = calibrate_row_sums("auto", dimension=5, epsilon=1.0, delta=1e-6, rows=1000)
        >>> noise.name, noise.noise_norm()
        ('sum_l2_gamma', 10.95)
        >>> noise.release(np.full(5, 100.0), NoiseBits(1, "example")).round(2)
        array([[ 99.2 , 100.9, 101.5,  98.71, 100.8]])
        >>> shared = calibrate_row_sums("laplace", dimension=5, epsilon=1.0, rows=1000, contributors=20)
        >>> shared.name, shared.noise_norm()
        ('sum_discrete_laplace', 14.14)
    """
    kinds = get_args(SumNoiseKind)
    require_wanted(noise, epsilon, delta, known=kinds, with_delta=("gaussian",), pure="auto, pure or laplace")
    _require_sizes(dimension, rows, contributors)
    if l1_bound is not None:
        require_positive("l1_bound", l1_bound)
    longer = (1 + _LONGER) * (1 + summation_error(rows))
    widest = math.sqrt(dimension)
    bound = widest if l1_bound is None else min(l1_bound, widest)

    def noised(additive: AdditiveMechanism, l1: float | None = None, claimed: float | None = None) -> SumNoise:
        return _fitting(SumNoise(additive, rows, contributors, l1, claimed))

    def laplace(honest: float) -> AdditiveMechanism:
        return calibrate_laplace(l1_sensitivity=2 * bound * longer, dimension=dimension, epsilon=honest)

    def of(kind: _Kind) -> SumNoise:
        if kind == "published_laplace":
            return noised(laplace(epsilon * bound), bound, epsilon)
        if kind == "laplace":
            return noised(laplace(epsilon), bound)
        return noised(
            calibrate_additive(kind, sensitivity=2 * longer, dimension=dimension, epsilon=epsilon, delta=delta)
        )

    if noise != "auto":
        return of(noise)
    candidates: list[_Kind] = ["pure", "laplace", "gaussian"]
    return min(map(of, candidates[: 3 if delta > 0 else 2]), key=SumNoise.noise_norm)


def _require_sizes(dimension: int, rows: int, contributors: int) -> None:
    require_whole("dimension", dimension, 1)
    require_whole("rows", rows, 1)
    require_whole("contributors", contributors, 0)
    if contributors > shares.MOST:
        raise InputError(f"contributors must be at most {shares.MOST}, got {contributors}; sum in groups")


def _fitting(noise: SumNoise) -> SumNoise:
    """The same noise, refused by public numbers where a release would not fit the grid: a late refusal would tell."""
    rows, contributors, additive = noise.rows, noise.contributors, noise.additive
    longest = noise.longest * (1 + _LONGER) * (1 + summation_error(rows))
    if rows * max(contributors, 1) * longest > additive.step * _MOST_STEPS:
        raise InputError(
            f"a sum over {rows} rows does not fit the grid of noise as little as epsilon={additive.epsilon:g} needs; "
            "lower epsilon or use fewer rows"
        )
    if contributors:
        shares.check(additive, contributors)
    return noise


_LEAST_REGULARISATION = 1e-4


def noise_quantile(noise: SumNoise, probability: float) -> float:
    """A radius within which the L2 norm of the whole noise on the sum stays with `probability` in (0, 1).

    Patrini et al. (2015, Theorem 10) print sigma log(D/(1 - p)) for Laplace noise of scale sigma, which bounds one
    coordinate: the norm needs sqrt(D) times it, and gets it here. L2-Gamma and Gaussian noise have the quantiles of
    Gamma(D) and of chi with D degrees of freedom (continuous limit). Raises `InputError` for another probability.

    Examples:
        >>> from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
        >>> noise = calibrate("pure", dimension=5, epsilon=1.0, rows=1000)
        >>> noise.noise_norm(), noise_quantile(noise, 0.95)
        (10.95, 18.31)
    """
    require_share("probability", probability)
    dimension, beyond = noise.additive.dimension, 1 - probability
    if noise.additive.name == "l2_gamma":
        return float(gammainccinv(dimension, beyond)) * math.sqrt(noise.variance() / (dimension + 1))
    if noise.additive.name == "discrete_gaussian":
        return math.sqrt(noise.variance() * float(chdtri(dimension, beyond)))
    scale = noise.additive.grid_scale
    # P[|K| >= m] = 2 q^m / (1 + q) in each coordinate, q = e^{-1/scale}.
    outside = math.ceil(scale * math.log(2 * dimension / (1 + math.exp(-1 / scale)) / beyond))
    return math.sqrt(dimension) * max(outside - 1, 0) * noise.additive.step


def regularisation(noise_variance: float) -> float:
    """lambda = max(1e-4, E|b|²/2) for noise b of expected squared norm `noise_variance` on the mean of y x.

    Made of public numbers: tuning lambda on private rows would cost budget, and 0 leaves losses unbounded below.

    Examples:
        >>> regularisation(0.01), regularisation(0.0)
        (0.005, 0.0001)
    """
    return max(_LEAST_REGULARISATION, noise_variance / 2)


SENSITIVITY = math.sqrt(8)  # to one replaced row

_OF_MOMENT, _OF_SQUARES = math.sqrt(2), 2.0  # weights beside x x'


@dataclass(frozen=True)
class RowMoments:
    """X'X (..., d, d), None where it is not part of the statistic, X'y (..., d) and y'y (...), noisy or not."""

    gram: Floats | None
    moment: Floats
    squares: Floats


@dataclass(frozen=True)
class RowStatistic:
    """The sum of (x x', sqrt(2) y x, 2 y^2) over rows of d = `features`; without `second` of the last two.

    As one vector: the upper triangle of X'X row by row, entries off its diagonal times sqrt(2), then sqrt(2) X'y, then
    2 y'y. Vectors are as far from each other as what they stand for. One replaced row moves them by `SENSITIVITY`.

    Proof. Rows have norm 1 at most and labels lie in [-1, 1]. Distances are Euclidean, those of x x' in the Frobenius
    norm. With r = x'z, a row (x, y) that is replaced by (z, u) moves the sum by

        |x x' - z z'|^2 + 2 |y x - u z|^2 + 4 (y^2 - u^2)^2
            = |x|^4 + |z|^4 - 2 r^2 - 4 r y u + 2 |x|^2 y^2 + 2 |z|^2 u^2 + 4 (y^2 - u^2)^2
           <= 2 + 2 p + 2 q + 2 p q + 4 (p - q)^2,    p = y^2, q = u^2,

    as -2 r^2 - 4 r y u is 2 p q at most, at r = -y u. The bound is convex in p and in q, so that it is largest where
    both are 0 or 1. It is 8 where one of them is 1, and opposite labels of one unit row attain it.

    The sum of y x alone has the squared sensitivity 4 = 8/2. So it gets the noise here that it needs by itself, and the
    sums of x x' and y^2 come for nothing. Another weight c of y x would give it more noise. Without y^2 the squared
    sensitivity is 2 + 2 c^2 + c^4/2 for c^2 <= 2 and 4 c^2 above. In units of y x, over c^2, that is least at c^2 = 2.

    Examples:
        >>> statistic = RowStatistic(features=2)
        >>> total = statistic.of(np.array([[0.6, 0.8], [0.0, 1.0]]), np.array([1.0, -0.5]))
        >>> total.round(3)
        array([0.36 , 0.679, 1.64 , 0.849, 0.424, 2.5  ])
        >>> found = statistic.moments(total)
        >>> found.gram, found.moment, float(found.squares)
        (array([[0.36, 0.48], [0.48, 1.64]]), array([0.6, 0.3]), 1.25)
    """

    features: int
    second: bool = True

    @property
    def dimension(self) -> int:
        """Numbers of the vector: d + 1, and d(d + 1)/2 for X'X."""
        return (self.features * (self.features + 1) // 2 if self.second else 0) + self.features + 1

    @property
    def longest(self) -> float:
        """The norm that one row's part has at most."""
        return math.sqrt(self.second + _OF_MOMENT**2 + _OF_SQUARES**2)

    def of(self, rows: Floats, labels: Floats) -> Floats:
        """The vector (D,) of rows (n, d) of norm 1 at most with labels (n,) in [-1, 1]."""
        sums: list[Floats] = [_OF_MOMENT * (labels @ rows), np.atleast_1d(_OF_SQUARES * (labels @ labels))]
        if self.second:
            above, scale = self._triangle
            sums.insert(0, (rows.T @ rows)[above] * scale)
        return np.concatenate(sums)

    def moments(self, sums: Floats) -> RowMoments:
        """What vectors (..., D) stand for."""
        moment, squares = sums[..., -self.features - 1 : -1] / _OF_MOMENT, sums[..., -1] / _OF_SQUARES
        if not self.second:
            return RowMoments(None, moment, squares)
        above, scale = self._triangle
        gram = np.empty((*sums.shape[:-1], self.features, self.features))
        gram[..., above[0], above[1]] = gram[..., above[1], above[0]] = sums[..., : len(scale)] / scale
        return RowMoments(gram, moment, squares)

    def gram_variance(self, variance: float) -> float:
        """Of noise of this variance in each number of the vector: in an entry of X'X, on average over entries."""
        return variance * (self.features + 1) / (2 * self.features) if self.second else math.inf

    def moment_variance(self, variance: float) -> float:
        """The same in each entry of X'y."""
        return variance / _OF_MOMENT**2

    def squares_variance(self, variance: float) -> float:
        """The same in y'y."""
        return variance / _OF_SQUARES**2

    def noise(self, *, epsilon: float, delta: float, rows: int, contributors: int = 0) -> SumNoise:
        """The least Gaussian noise that hides any of at most `rows` rows of a party.

        Arguments and errors are those of `federation.mechanisms.sums.row_sums.calibrate_row_sums`.

        Examples:
            >>> RowStatistic(features=2).noise(epsilon=1.0, delta=1e-6, rows=100).noise_norm()
            29.3
        """
        _require_sizes(self.dimension, rows, contributors)
        moved = SENSITIVITY * (1 + _LONGER) * (1 + 2 * self.longest / SENSITIVITY * summation_error(rows))
        additive = calibrate_additive(
            "gaussian", sensitivity=moved, dimension=self.dimension, epsilon=epsilon, delta=delta
        )
        return _fitting(SumNoise(additive, rows, contributors, longest=self.longest))

    @property
    def _triangle(self) -> tuple[tuple[np.ndarray, np.ndarray], Floats]:
        """Where the upper triangle lies, and by what its entries are multiplied."""
        above = np.triu_indices(self.features)
        return above, np.where(above[0] == above[1], 1.0, math.sqrt(2))


LEAST_EPSILON = randomised_response.MIN_EPSILON
ANY = 2**62  # more rows than there are
_GRID_BITS = 26  # sums are whole multiples of a power of two, so that their total is the same in any order
_AT_ONCE = 2**22  # labels


@dataclass(frozen=True)
class SummedResponse:
    """Randomised response of every label from -1 to 1 (`labels`), added up over rows of norm 1 at most.

    For labels y = 1 or -1 it is the sum of z x, where z = ±1/tanh(epsilon/2) has mean y. Its error grows with the
    number of rows, and that of noise on the sum does not: parties with few rows are better off with randomised
    response.

    There is no better unbiased randomiser of two labels. An output whose likelihood ratio r lies strictly between
    e^-epsilon and e^epsilon is one of these two ratios at random. So only these two outputs remain, and the unbiased
    randomiser on two outputs is unique.
    """

    labels: OneBitLabels

    @property
    def reach(self) -> float:
        """The size of every released label, 1/tanh(epsilon/2)."""
        return self.labels.reach

    @property
    def label_variance(self) -> float:
        """Of a released label: reach² - 1 = 1/sinh(epsilon/2)², to full precision."""
        beyond = self.labels.redraw / (randomised_response.WORDS - self.labels.redraw)
        return beyond * (2 + beyond)

    def rows_for(self, noise: SumNoise, weight: float = 1.0) -> int:
        """The least number of rows of norm 1 whose summed responses are no better than noise on their sum.

        By expected squared errors: `weight` rows w against d v, w the variance of a label and v that of the noise's
        coordinates. The weight > 0 is how much errors harm that go where the rows are, and not in all directions alike.

        Examples:
            >>> from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate_sum
            >>> noise = calibrate_sum("auto", dimension=31, epsilon=1.0, delta=1e-6, rows=1000)
            >>> calibrate_summed_response(1.0).rows_for(noise)
            602
        """
        return max(1, math.ceil(min(noise.noise_norm() ** 2 / (weight * self.label_variance), ANY)))

    def release(self, rows: Floats, signs: Floats, bits: NoiseBits, draws: int = 1) -> Floats:
        """Sums (draws, d) float64 over rows (n, d), n >= 1, with the labels `signs` (n,), each 1 or -1.

        Entries are whole multiples of a power of two. Raises `InputError` for other labels.
        """
        some = max(1, _AT_ONCE // len(rows))
        found = np.empty((draws, rows.shape[1]))
        for start in range(0, draws, some):
            several = found[start : start + some]
            released = self.labels.release(np.tile(signs, len(several)), bits)
            several[:] = released.reshape(len(several), len(rows)) @ rows
        return np.rint(found / self.step) * self.step

    @property
    def step(self) -> float:
        """Of the grid: released entries are whole multiples of this power of two."""
        return 2.0 ** (math.ceil(math.log2(self.reach)) - _GRID_BITS)

    def reaches(self, rows: Floats, dimension: int, beyond: float) -> tuple[Floats, Floats]:
        """Which entry, and which L2 norm, sums over `rows` (P,) rows of R^D exceed with probability beyond/2 each.

        An upper bound, for rows of norm 1 at most, in (P,) each. With r the reach and w the variance of a released
        label, a sum of n rows is never longer than n r. Its mean is not longer than n, its norm on average not than
        n + sqrt(n w), and one label moves that by 2 r (McDiarmid 1989): it is r sqrt(2 n ln(2/beyond)) above that
        with probability beyond/2, and an entry as much above n but for the number of entries (Hoeffding 1963).

        Examples:
            >>> [found.round(1) for found in calibrate_summed_response(1.0).reaches(np.array([17.0, 1000.0]), 31, 1e-6)]
            [array([  36.8, 1417.8]), array([  36.8, 1429.3])]
        """
        root, most = np.sqrt(2 * rows), rows * self.reach
        entry = rows + self.reach * root * math.sqrt(math.log(4 * dimension / beyond))
        norm = rows + np.sqrt(rows * self.label_variance) + self.reach * root * math.sqrt(math.log(2 / beyond))
        return np.minimum(entry, most), np.minimum(norm, most)

    def log_ratio(self, released: Floats, here: Floats, there: Floats, rows: Floats) -> Floats:
        """The log likelihood ratio of sums (n, d), exact sums `there` over `here`, (n, d) too; (n,).

        For parties of `rows` (n,) equal rows whose labels are all -1 here and all 1 there: by how many more of them
        came out as 1 than as -1.
        """
        moved = there - here
        surplus = 2 * rows / self.reach * (released * moved).sum(axis=1) / np.square(moved).sum(axis=1)
        return np.asarray(self.labels.epsilon * surplus)


def calibrate_summed_response(epsilon: float) -> SummedResponse:
    """The least noise of this kind that makes every label epsilon-private.

    Raises `InputError` for epsilon below 1e-6.

    Examples:
        >>> noise = calibrate_summed_response(1.0)
        >>> noise.reach, noise.label_variance
        (2.164, 3.683)
        >>> noise.release(np.eye(2), np.array([1.0, -1.0]), NoiseBits(1, "example"), draws=2).round(3)
        array([[ 2.164, -2.164],
               [ 2.164, -2.164]])
    """
    return SummedResponse(randomised_response.calibrate_one_bit(LabelRange(-1.0, 1.0), epsilon))
