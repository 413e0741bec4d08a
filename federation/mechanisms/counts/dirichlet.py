"""The scaled Dirichlet mechanism with a public sigma: above a public floor, or with pseudo-counts for any counts.

theta ~ Dir(sigma (eta + A)), estimates theta (m + C A) - A. By the monotonicity of `dirichlet_loss.delta_exact` the
worst ordered pair of neighbours is that of the smallest parameters, (m0 + 1, m0) with m0 = floor + A: when one record
leaves a class it had one more than the least, and when one arrives the class had at least the least. So sigma depends
on epsilon, delta and m0 only, and the guarantee covers every pair in both directions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check, Keeper
from federation.contract.numbers import apart
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import PUBLIC_BAG, WHOLE_COUNTS, checked_counts, exchangeable
from federation.mechanisms.counts.count_mechanism import CountReplacement
from federation.mechanisms.counts.dirichlet_loss import delta_exact, delta_exact_limit, require_level
from federation.mechanisms.counts.dirichlet_sampler import GRID_BITS, sample
from federation.mechanisms.noise.checks import require_draws, require_epsilon_from_zero, require_whole
from federation.mechanisms.noise.mechanism import NOISE_KEY, Parameters
from federation.mechanisms.noise.scales import first_between
from federation.numerics.arrays import Floats, Integers

MAX_FLOOR = 10**6  # a pseudo-count beyond it is Gaussian noise to all intents, and delta would lose digits
_REAL_LAW = Assumption(
    f"the shares are computed in double precision and rounded to multiples of 2^-{GRID_BITS}; before the rounding "
    "their law is taken to be the real formula's",
    Check.DECLARED,
    Keeper.SOFTWARE,
)
_VANISHING = 1e-300  # stands for a delta that underflows
_SAFE = 1e-7  # relative distance to the safe side of delta: covers the rounding of its computation


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
        epsilon = require_epsilon_from_zero(epsilon)
        return float(delta_exact(epsilon, self._least + 1, self._least, self.sigma))

    def covariance(self, size: int) -> Floats:
        """Covariance (C, C) of the released counts of a bag of `size` records at equal counts, its largest trace.

        With N = size + C A it is N² (I/C - 1/C²) / (sigma N + 1).
        """
        total, share = size + self.classes * self.pseudo_count, 1 / self.classes
        return exchangeable(total**2 * share * (1 - share) / (self.sigma * total + 1), self.classes)

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
