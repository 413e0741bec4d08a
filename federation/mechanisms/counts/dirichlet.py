"""The scaled Dirichlet mechanism with a public sigma: above a public floor, or with pseudo-counts for any counts.

The mechanism draws theta ~ Dir(sigma (eta + A)) and estimates theta (m + C A) - A. By the monotonicity of
`dirichlet_loss.delta_exact` the worst ordered pair of neighbours is that of the smallest parameters, (m0 + 1, m0) with
m0 = floor + A. A class that loses a record had one more than the least, and a class that gains one had at least the
least. So sigma depends on epsilon, delta and m0 only, and the guarantee covers every pair in both directions.

`sample` draws Dirichlet shares from noise bits, in logarithms, so that the smallest shapes do not vanish. `divergence`
computes the delta between two Dirichlet laws: exactly for two classes, by sampling for more.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart
from federation.mechanisms.counts.additive import (
    PUBLIC_BAG,
    WHOLE_COUNTS,
    CountReplacement,
    checked_counts,
    exchangeable,
)
from federation.mechanisms.counts.dirichlet_loss import beta_tail, delta_exact, delta_exact_limit, require_level
from federation.mechanisms.noise.l2_gamma import gamma_radius
from federation.mechanisms.noise.mechanism import (
    NOISE_KEY,
    Parameters,
    first_between,
    require_draws,
    require_epsilon_from_zero,
    require_whole,
)
from federation.numerics.rows import Floats, Integers

MAX_FLOOR = 10**6  # a pseudo-count beyond it is Gaussian noise to all intents, and delta would lose digits
GRID_BITS = 32
_REAL_LAW = Assumption(
    f"the shares are computed in double precision and rounded to multiples of 2^-{GRID_BITS}; before the rounding "
    "their law is taken to be the real formula's",
    Check.DECLARED,
    Keeper.SOFTWARE,
)
_VANISHING = 1e-300  # stands for a delta that underflows
_TINY = 1e-9  # of a record
_SAFE = 1e-7  # relative distance to the safe side of delta: covers the rounding of its computation


def log_shares_ratio(released: Floats, here: Floats, there: Floats) -> Floats:
    """By logarithms of counts (n, k) that are Dirichlet shares: up to scale, and but for a constant, (n,)."""
    return np.asarray(np.log(np.maximum(released, _TINY)) @ (there - here)[0])


@dataclass(frozen=True)
class ScaledDirichlet(CountReplacement):
    """Dir(sigma (eta + pseudo_count)) for bags whose classes all hold at least `floor` records.

    The floor must be true of both neighbours; 0 is always true. Raises `InputError` unless sigma is small enough for
    (epsilon, delta) at floor + pseudo_count >= 1.
    """

    classes: int
    epsilon: float
    delta: float
    sigma: float
    floor: int
    pseudo_count: int

    def __post_init__(self) -> None:
        _check(self.classes, self.epsilon, self.delta, self._least, "floor + pseudo_count")
        if self.delta_at(self.epsilon) > self.delta:
            most, given = apart(self.delta, self.delta_at(self.epsilon))
            raise InputError(
                f"sigma must give delta {most} or less at epsilon {self.epsilon:g}, got {self.sigma:g} with "
                f"delta {given}; take it from calibrate_floor or calibrate_shifted"
            )

    @property
    def name(self) -> str:
        """The mechanism's name in its guarantee."""
        return "dirichlet_shifted" if self.pseudo_count else "dirichlet_floor"

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        extra: Parameters = {"floor": self.floor, "pseudo_count": self.pseudo_count, "grid_bits": GRID_BITS}
        return {"classes": self.classes, "sigma": self.sigma, **extra}

    def release(self, counts: Integers, bits: NoiseBits, draws: int = 1) -> Floats:
        """Estimates of the counts, shape (draws, C) float64; each row sums to m.

        `counts` (C,): whole numbers >= 0 of a bag of m >= 1 records. No count is compared with the floor, since a
        refusal would tell neighbours apart for certain: below it the release goes on without its guarantee, and
        without pseudo-counts an empty class is released as exactly 0. Only the public m is: it must be at least
        C * floor. Raises `InputError` otherwise.
        """
        require_draws(draws)
        eta = checked_counts(counts, self.classes)
        size = int(eta.sum())
        if size < self.classes * self.floor:
            raise InputError(
                f"floor must be at most {size // self.classes} for {self.classes} classes in a bag of {size} records, "
                f"got {self.floor}; declare a smaller floor, use larger bags or choose dirichlet_shifted"
            )
        shares = sample(bits, self.sigma * (eta + self.pseudo_count).astype(np.float64), draws)
        return shares * (size + self.classes * self.pseudo_count) - self.pseudo_count

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of one release at another epsilon >= 0."""
        return float(delta_exact(require_epsilon_from_zero(epsilon), self._least + 1, self._least, self.sigma))

    def covariance(self, size: int) -> Floats:
        """Covariance (C, C) of the released counts of a bag of `size` records at equal counts, its largest trace.

        With N = size + C A it is N² (I/C - 1/C²) / (sigma N + 1).
        """
        total, share = size + self.classes * self.pseudo_count, 1 / self.classes
        return exchangeable(total**2 * share * (1 - share) / (self.sigma * total + 1), self.classes)

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """As `CountMechanism.log_ratio`, but for a constant; shares that were rounded to 0 count as tiny ones."""
        return self.sigma * log_shares_ratio(released + self.pseudo_count, here, there)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on, but for why bags are disjoint."""
        floor = Assumption(
            f"every class has at least {self.floor} records in this bag, and still has after any one label is "
            "replaced; no count is compared with this floor",
            Check.DECLARED,
            Keeper.HOLDER,
        )
        scale = Assumption("sigma is computed from epsilon, delta, floor and pseudo-count only", Check.ENFORCED)
        common = (PUBLIC_BAG, WHOLE_COUNTS, scale, NOISE_KEY, _REAL_LAW)
        return (floor, *common) if self.floor else common

    @property
    def _least(self) -> int:
        """The smallest Dirichlet parameter, in units of sigma, that the guarantee reckons with."""
        return self.floor + self.pseudo_count


def calibrate_floor(classes: int, epsilon: float, delta: float, floor: int) -> ScaledDirichlet:
    """The least noise for bags in which every class has `floor` records or more, before and after the change.

    All arguments are public numbers; `floor` is a promise about private ones that nobody checks. Raises `InputError`
    for arguments out of range or a floor below `smallest_floor`.

    Examples:
        >>> calibrate_floor(classes=3, epsilon=1.0, delta=1e-3, floor=50).sigma
        3.79
    """
    return ScaledDirichlet(classes, epsilon, delta, _sigma(classes, epsilon, delta, floor, "floor"), floor, 0)


def calibrate_shifted(classes: int, epsilon: float, delta: float, pseudo_count: int) -> ScaledDirichlet:
    """The least noise with `pseudo_count` added to every class: for any counts, zeros included.

    As the pseudo-count grows it approaches the Gaussian mechanism, and the noise shrinks. Raises `InputError` for
    arguments out of range or a pseudo-count below `smallest_floor`.

    Examples:
        >>> noise = calibrate_shifted(classes=3, epsilon=1.0, delta=1e-3, pseudo_count=50)
        >>> noise.sigma, noise.delta_at(1.0)
        (3.79, 0.001)
        >>> noise.release(np.array([50, 30, 0]), NoiseBits(1, "example")).round(1)
        array([[55.1, 28.3, -3.4]])
    """
    sigma = _sigma(classes, epsilon, delta, pseudo_count, "pseudo_count")
    return ScaledDirichlet(classes, epsilon, delta, sigma, 0, pseudo_count)


def smallest_floor(epsilon: float, delta: float) -> int:
    """The least floor or pseudo-count m0 that some sigma serves: e^{-epsilon m0} / (2 m0 + 1) < delta.

    Near it sigma is tiny and the release is mostly one random class. Raises `InputError` unless epsilon > 0 and
    0 < delta < 1.

    Examples:
        >>> smallest_floor(epsilon=1.0, delta=1e-6), smallest_floor(epsilon=0.1, delta=1e-6)
        (11, 87)
    """
    _check(2, epsilon, delta, 1, "floor")
    most = math.ceil(min(-math.log(delta) / epsilon, 1 / delta)) + 1
    return first_between(lambda least: _feasible(epsilon, delta, least), 0, most)


def _feasible(epsilon: float, delta: float, least: int) -> bool:
    """Whether the limit of delta as sigma -> 0 is below `delta` by enough to be seen in double precision."""
    return float(delta_exact_limit(epsilon, least + 1, least)) < delta * (1 - 2 * _SAFE)


def _sigma(classes: int, epsilon: float, delta: float, least: int, parameter: str) -> float:
    """The largest sigma found whose exact delta for the pair (least + 1, least) is below `delta` by a relative 1e-7.

    A scan of ln sigma from the top, and a root in the step that crosses `delta`; the mechanism evaluates its delta
    again, so its soundness does not rest on delta being monotone in sigma.
    """
    from scipy.optimize import brentq

    _check(classes, epsilon, delta, least, parameter)
    if not _feasible(epsilon, delta, least):
        raise InputError(
            f"{parameter} must be at least {smallest_floor(epsilon, delta)} for epsilon {epsilon:g} and delta "
            f"{delta:g}, got {least}; below it no sigma is private enough"
        )

    target = math.log(delta * (1 - _SAFE))

    @lru_cache
    def excess(log_sigma: float) -> float:
        found = float(delta_exact(epsilon, least + 1, least, math.exp(log_sigma)))
        return math.log(max(found, _VANISHING)) - target

    high = 0.0
    while excess(high) <= math.log((1 + delta) / 2) - target:
        high += 3.0
    while excess(low := high - 1.0) > 0:
        high = low
    return math.exp(brentq(excess, low, high, xtol=1e-11))


def _check(classes: int, epsilon: float, delta: float, least: int, parameter: str) -> None:
    require_whole("classes", classes, 2)
    require_level(epsilon, delta)
    require_whole(parameter, least, 1, MAX_FLOOR)


MOST_RUNS = 2**30
_BLOCK = 2**16  # draws at a time
_REACH = 1e9  # log odds beyond every root that matters
_LARGE = 700.0  # an epsilon whose exponential is a double; the delta of a larger one is at most its own


@dataclass(frozen=True)
class MeasuredDelta:
    """A delta and the standard error of its measurement; 0 where it is exact."""

    value: float
    standard_error: float


def divergence(epsilon: float, p: Floats, q: Floats, *, runs: int = 2**18, seed: int = 1) -> MeasuredDelta:
    """The smallest delta >= 0 with P[Dir(p) in B] <= e^epsilon P[Dir(q) in B] + delta for all B.

    It is delta(epsilon) = E max(0, 1 - e^{epsilon - loss}) under the first law. The loss is the log ratio of the
    densities, sum_k (p_k - q_k) ln theta_k + const. When the parameters differ in more than two classes, no closed form
    is known. With three classes or more they do when each neighbour has a sigma of its own.

    `p`, `q`: shape (C,), positive, C >= 2. Exact to about 1e-12 for C = 2; otherwise the mean over `runs` draws of
    Dir(p). Raises `InputError` for other shapes or epsilon < 0.

    Examples:
        >>> divergence(0.5, np.array([3.0, 4.0]), np.array([2.0, 5.0])).value
        0.1719
    """
    if p.shape != q.shape or p.ndim != 1 or len(p) < 2 or not ((p > 0).all() and (q > 0).all() and epsilon >= 0):
        raise InputError("Dirichlet parameters must be two equally long lists of positive numbers, and epsilon >= 0")
    if len(p) == 2:
        return MeasuredDelta(_two_classes(epsilon, p, q), 0.0)
    bits = NoiseBits(seed, "Dirichlet divergence")
    parts = [_excesses(epsilon, p, q, bits, min(_BLOCK, runs - start)) for start in range(0, runs, _BLOCK)]
    excess = np.concatenate(parts)
    return MeasuredDelta(float(excess.mean()), float(excess.std() / math.sqrt(runs)))


def _excesses(epsilon: float, p: Floats, q: Floats, bits: NoiseBits, draws: int) -> Floats:
    """max(0, 1 - e^{epsilon - loss}) of independent draws of Dir(p), shape (draws,)."""
    log = log_gamma(bits, p, draws)
    largest = log.max(axis=1, keepdims=True)
    log -= largest + np.log(np.exp(log - largest).sum(axis=1, keepdims=True))
    loss = log @ (p - q) + _log_norm(q) - _log_norm(p)
    return np.maximum(0.0, -np.expm1(epsilon - loss))


def _log_norm(p: Floats) -> float:
    """ln of the multivariate beta function, prod G(p_k) / G(sum p_k)."""
    from scipy.special import gammaln

    return float(gammaln(p).sum() - gammaln(p.sum()))


def _two_classes(epsilon: float, p: Floats, q: Floats) -> float:
    """Sums over the intervals on which the loss exceeds epsilon, in log odds t = ln(theta_1 / theta_2).

    The loss, -(p_1 - q_1) ln(1 + e^-t) - (p_2 - q_2) ln(1 + e^t) + const, turns at most once.
    """
    from scipy.optimize import brentq

    rise, fall = p - q
    constant = _log_norm(q) - _log_norm(p) - epsilon

    def excess(t: float) -> float:
        return float(constant - rise * np.logaddexp(0, -t) - fall * np.logaddexp(0, t))

    turns = [math.log(rise / fall)] if rise * fall > 0 else []
    ends = [-_REACH, *turns, _REACH]
    roots = [
        brentq(excess, low, high, xtol=1e-14, rtol=1e-15)
        for low, high in pairwise(ends)
        if excess(low) * excess(high) < 0
    ]
    edges = [-_REACH, *roots, _REACH]
    total = 0.0
    for low, high in pairwise(edges):
        inside = [t for t in turns if low < t < high]
        if excess(inside[0] if inside else (low + high) / 2) > 0:
            first, second = (beta_tail(np.array([low, high]), *np.full((2, 2), law).T) for law in (p, q))
            factor = math.exp(min(epsilon, _LARGE))
            total += float(first[0] - first[1] - factor * (second[0] - second[1]))
    return min(max(total, 0.0), 1.0)


_LEAST = 1e-300  # a largest parameter below it would leave no finite logarithm


def log_gamma(bits: NoiseBits, shape: Floats, draws: int) -> Floats:
    """Logarithms of `draws` independent Gamma(shape) variables for each shape (C,) >= 0; shape (draws, C).

    Gamma(shape) is Gamma(shape + 1) U^(1/shape). At shapes below about 0.01 most draws are smaller than the smallest
    double, but their logarithms and ratios are ordinary numbers. The result is -inf where a shape is 0. How many bits
    are used does not depend on the shapes.

    Examples:
        >>> log_gamma(NoiseBits(1, "example"), np.array([5.0, 0.001]), draws=1).round(1)
        array([[    2., -1902.]])
    """
    from scipy.special import gammainccinv

    level, power = (gamma_radius(bits, 1, 1.0, draws * len(shape)).reshape(draws, -1) for _ in range(2))
    with np.errstate(divide="ignore", over="ignore"):
        larger: Floats = np.log(gammainccinv(shape + 1, np.exp(-level)))
        return larger - power / shape


def sample(bits: NoiseBits, shape: Floats, draws: int) -> Floats:
    """`draws` independent shares from Dir(shape) on the grid of 2^-32, shape (draws, C); each row sums to exactly 1.

    `shape` (C,): finite, >= 0, the largest above 1e-300; a class of shape 0 has share 0. After rounding a positive
    shape may have share 0 too; the largest share of a row absorbs what rounding leaves. Raises `InputError` for other
    shapes.

    Double precision stands in for the reals. Rounding the shares to a public grid is post-processing. It drops the low
    bits, in which double precision would show first.

    Examples:
        >>> sample(NoiseBits(1, "example"), np.array([5.0, 3.0, 0.01]), draws=2).round(4)
        array([[0.745 , 0.255 , 0.    ],
               [0.9056, 0.0944, 0.    ]])
    """
    if shape.ndim != 1 or not (np.isfinite(shape).all() and (shape >= 0).all() and shape.max() > _LEAST):
        raise InputError(f"Dirichlet parameters must be finite and >= 0, some above {_LEAST:g}, got {shape.tolist()}")
    log = log_gamma(bits, shape, draws)
    largest = np.argmax(log, axis=1, keepdims=True)
    weight = np.exp(log - np.take_along_axis(log, largest, axis=1))
    steps: Floats = np.rint(weight / weight.sum(axis=1, keepdims=True) * 2.0**GRID_BITS)
    rest = 2.0**GRID_BITS - steps.sum(axis=1, keepdims=True)
    np.put_along_axis(steps, largest, np.take_along_axis(steps, largest, axis=1) + rest, axis=1)
    return steps * 2.0**-GRID_BITS
