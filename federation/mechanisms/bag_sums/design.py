"""The public design of noisy-wtd-LLP and its mean delta: which records are in which bag, and whose labels carry noise.

The accounting needs the ratio of a changed label's weight to the noise of its bag, and the mean Gaussian delta over
this ratio (`mean_delta`).

A bag whose noisy labels have weights w_j releases its sum with noise of variance sigma² Q, Q = sum w_j². Moving the
label of record i across the range Delta is then a Gaussian mechanism at r = c |w_i|/sqrt(Q), c = Delta/sigma. For q
other noisy labels and N(0, 1) weights, |w_i|/sqrt(chi2_q) = tan t. Here t in (0, pi/2) has the density C_q cos^{q-1} t,
C_q = 2 Gamma((q+1)/2)/(sqrt(pi) Gamma(q/2)). A record with noise of its own adds w_i² to Q, and sin t takes the place
of tan t.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import FederationError, InputError
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.mechanism import require_known, require_whole
from federation.numerics.rows import Floats, Integers

_MOST_RECORDS = 2**40

Weights = Literal["gaussian", "signs"]


@dataclass(frozen=True)
class Exposure:
    """A part of the ways in which a record's label can enter a release.

    With probability `probability[j]` it lies in a bag with `others[j]` other noisy labels; `own` says whether its own
    label is noisy too. Both arrays have one entry per possible count.
    """

    own: bool
    others: Integers
    probability: Floats


@dataclass(frozen=True)
class BagDesign:
    """m disjoint bags of k records, uniform among n, with published weights (Brahmbhatt et al. 2023, Figure 2).

    `records` n, `bags` m, `size` k with m k <= n. Either `noisy` = |N|, the size of a set N of records fixed without
    labels, whose labels get noise; or `per_bag` = q, noise on q labels of every bag that are drawn uniformly anew
    (stratified), so that no bag is without. `weights` are N(0, 1), as published, or -1 and 1 with equal chances.

    Raises `InputError` for numbers out of range.

    Examples:
        >>> design = BagDesign(records=6400, bags=50, size=64, noisy=640)
        >>> design.inclusion, design.noise_free
        (0.5, 0.0006323)
        >>> BagDesign(records=6400, bags=50, size=64, per_bag=8).noise_free
        0.0
    """

    records: int
    bags: int
    size: int
    noisy: int | None = None
    per_bag: int | None = None
    weights: Weights = "gaussian"

    def __post_init__(self) -> None:
        require_bags(self.records, self.bags, self.size)
        require_known("weights", self.weights, get_args(Weights))
        if (self.noisy is None) == (self.per_bag is None):
            raise InputError(
                f"give noisy, how many records get noise, or per_bag, how many labels of every bag do, and not both; "
                f"got {self.noisy} and {self.per_bag}"
            )
        if self.noisy is not None:
            require_whole("noisy", self.noisy, 1, self.records, "all ")
        if self.per_bag is not None:
            require_whole("per_bag", self.per_bag, 1, self.size, "all ")

    @property
    def inclusion(self) -> float:
        """m k / n: how likely a record is in a bag."""
        return self.bags * self.size / self.records

    @property
    def noise_free(self) -> float:
        """How likely a record without noise of its own lies in a bag without any: there its label is revealed.

        No epsilon and no noise scale brings delta below it.
        """
        return max(
            sum(float(part.probability[part.others == 0].sum()) for part in parts if not part.own)
            for parts in self.exposures()
        )

    def exposures(self) -> list[tuple[Exposure, ...]]:
        """Disjoint parts for each kind of record that there can be: with |N| fixed, those in N and those outside."""
        if self.per_bag is not None:
            share = self.per_bag / self.size
            kinds = ((True, self.per_bag - 1, share), (False, self.per_bag, 1 - share))
            made = ((own, np.array([others]), np.array([self.inclusion * likely])) for own, others, likely in kinds)
            return [tuple(Exposure(*kind) for kind in made if kind[2] > 0)]
        assert self.noisy is not None
        found: list[tuple[Exposure, ...]] = []
        for own in (False, True):
            if own or self.noisy < self.records:
                others, probability = hypergeometric(self.records - 1, self.noisy - own, self.size - 1)
                found.append((Exposure(own, others, self.inclusion * probability),))
        return found


def binomial(trials: int, chance: float) -> tuple[Integers, Floats]:
    """The possible numbers of successes, and their probabilities.

    Examples:
        >>> binomial(2, 0.25)
        (array([0, 1, 2]), array([0.5625, 0.375 , 0.0625]))
    """
    if chance == 1:
        return np.array([trials]), np.ones(1)
    counts = np.arange(trials + 1)
    log = np.concatenate([[0.0], np.cumsum(np.log((trials - counts[:-1]) / counts[1:]))])
    mass = np.exp(log + counts * math.log(chance) + (trials - counts) * math.log1p(-chance))
    return counts, mass / mass.sum()


def hypergeometric(population: int, marked: int, drawn: int) -> tuple[Integers, Floats]:
    """How many marked ones are among `drawn` of the population: possible counts, and their probabilities.

    From the ratios of neighbouring probabilities, so that a population of billions costs no digits.

    Examples:
        >>> hypergeometric(population=10, marked=3, drawn=2)
        (array([0, 1, 2]), array([0.4667, 0.4667, 0.06667]))
    """
    counts = np.arange(max(0, drawn - (population - marked)), min(marked, drawn) + 1)
    q = counts[:-1].astype(float)
    up = (marked - q) * (drawn - q)
    down = (q + 1) * (population - marked - drawn + q + 1)
    log = np.concatenate([[0.0], np.cumsum(np.log(up) - np.log(down))])
    mass = np.exp(log - log.max())
    return counts, mass / mass.sum()


def require_bags(records: int, bags: int, size: int) -> None:
    """Raises `InputError` unless all are integers >= 1 and m k <= n."""
    for name, value in (("records", records), ("bags", bags), ("size", size)):
        require_whole(name, value, 1, _MOST_RECORDS)
    if bags * size > records:
        raise InputError(
            f"bags are disjoint, so {bags} bags of {size} need {bags * size} records, got {records}; "
            "use fewer or smaller bags"
        )


_MARGIN = 45.0  # nats below the largest: counts of noisy labels that add less are left out
_VANISHED = -680.0  # integrands below e^-680 count as 0: doubles soon end
_SAMPLED = 64  # counts at which the size of the integrals is estimated first
_NEGLIGIBLE = 50.0  # nats below the largest value: what lies beyond adds less than e^-45 of the integral
_FIRST, _LAST = 64, 2**15  # intervals of the trapezoidal rule
_TOLERANCE = 1e-9
MOST_EPSILON = 1e4  # whose delta bounds that of larger ones, where integrands would lose all digits


def mean_delta(epsilon: float, ratio: float, part: Exposure, weights: Weights, charge: float = 0.0) -> float:
    """E delta_G(epsilon, r + charge) over the ways in which a label can enter, times their probability.

    `ratio` is c = Delta/sigma. A record without own noise in a bag without any counts as 1: it is revealed.

    Examples:
        >>> bag = Exposure(own=False, others=np.array([0, 8]), probability=np.array([0.01, 0.99]))
        >>> mean_delta(1.0, 1.0, bag, "signs"), mean_delta(1.0, 1.0, bag, "gaussian")
        (0.01039, 0.02141)
    """
    epsilon = min(epsilon, MOST_EPSILON)
    empty = part.others == 0
    alone = float(part.probability[empty].sum())
    if part.own and alone:
        alone *= float(gaussian.delta(epsilon, ratio + charge))
    q, p = part.others[~empty].astype(float), part.probability[~empty]
    q, p = q[p > 0], p[p > 0]
    if not len(q):
        return alone
    if weights == "signs":
        reached = ratio / np.sqrt(q + part.own)
        return alone + float(p @ gaussian.delta(epsilon, reached + charge))
    return alone + _over_angles(epsilon, ratio, q, np.log(p), part.own, charge)


def mean_delta_chi(epsilon: float, ratio: float, releases: int = 1, charge: float = 0.0) -> float:
    """E delta_G(epsilon, ratio |v| + charge) over v ~ N(0, I_T): weighted labels under noise of a fixed scale.

    |v| has the chi law of T = `releases` degrees of freedom; the integral is over x = ln |v|.

    Examples:
        >>> mean_delta_chi(1.0, ratio=0.1), float(gaussian.delta(1.0, 0.1))
        (8.461e-07, 1.231e-25)
    """
    epsilon = min(epsilon, MOST_EPSILON)
    half = releases / 2
    constant = math.log(2) - half * math.log(2) - math.lgamma(half)

    def log_integrand(x: Floats) -> Floats:
        density = constant + releases * x - 0.5 * np.exp(2 * x)
        return density + gaussian.log_delta(epsilon, ratio * np.exp(x) + charge)

    points = _scan(-30.0, 0.5 * math.log(releases) + 4.0)
    logs = log_integrand(points)
    return _integral(log_integrand, *_window(points, logs)) if logs.max() >= _VANISHED else 0.0


def _over_angles(epsilon: float, ratio: float, q: Floats, log_p: Floats, own: bool, charge: float) -> float:
    """The integral over x = ln tan t, with the sum over q >= 1 inside."""
    from scipy.special import gammaln

    constant = math.log(2) + gammaln((q + 1) / 2) - 0.5 * math.log(math.pi) - gammaln(q / 2)

    def parts(x: Floats) -> tuple[Floats, Floats]:
        """ln cos t, and the logarithm of everything that does not depend on q: delta and dt/dx = sin t cos t."""
        log_cos = -0.5 * np.logaddexp(0.0, 2 * x)
        log_sin = x + log_cos
        reached = ratio * np.exp(log_sin if own else x) + charge
        return log_cos, gaussian.log_delta(epsilon, reached) + log_sin + log_cos

    # The tails fall like tan t on the left, where delta is flat, and like (tan t)^-q on the right.
    high = max(0.0, math.log(max(epsilon, 1e-300) / ratio)) + 45.0
    points = _scan(-0.5 * math.log(float(q[-1]) + 1) - 30.0, high)
    log_cos, common = parts(points)
    sampled = np.unique(np.linspace(0, len(q) - 1, _SAMPLED).astype(int))
    logs = np.multiply.outer(q[sampled] - 1, log_cos) + (constant + log_p)[sampled, None] + common
    if logs.max() < _VANISHED:
        return 0.0
    low, high = _window(points, logs.max(axis=0))
    size = np.interp(np.arange(len(q)), sampled, logs.max(axis=1) - log_p[sampled]) + log_p
    kept = size >= size.max() - _MARGIN
    exponents, terms = q[kept] - 1, (constant + log_p)[kept]

    def log_integrand(x: Floats) -> Floats:
        log_cos, common = parts(x)
        logs = np.multiply.outer(log_cos, exponents) + terms
        top: Floats = logs.max(axis=1)
        summed: Floats = np.exp(logs - top[:, None]).sum(axis=1)
        return np.log(summed) + top + common

    return _integral(log_integrand, low, high)


def _scan(low: float, high: float) -> Floats:
    """Points at which to look for where an integrand matters: closer than the narrowest peaks of those used here."""
    return np.linspace(low, high, 2 + int((high - low) / 0.04))


def _window(points: Floats, logs: Floats) -> tuple[float, float]:
    """The part of `points` within which `logs` matter, with one more point at each end."""
    kept = np.flatnonzero(logs >= logs.max() - _NEGLIGIBLE)
    return float(points[max(kept[0] - 1, 0)]), float(points[min(kept[-1] + 1, len(points) - 1)])


def _integral(log_integrand: Callable[[Floats], Floats], low: float, high: float) -> float:
    """The integral of exp(log_integrand) from `low` to `high`, at whose ends it must be negligible.

    The trapezoidal rule with its step halved until nothing changes: for analytic functions the error falls
    exponentially in 1/step (Trefethen, Weideman 2014).
    """
    step = (high - low) / _FIRST
    values = np.exp(log_integrand(np.linspace(low, high, _FIRST + 1)))
    total = float(values.sum() - (values[0] + values[-1]) / 2)
    intervals = _FIRST
    while intervals < _LAST:
        middles = low + step * (np.arange(intervals, dtype=np.float64) + 0.5)
        added = float(np.exp(log_integrand(middles)).sum())
        change = abs(added - total)
        total, intervals, step = total + added, 2 * intervals, step / 2
        if change <= _TOLERANCE * total:
            return total * step
    raise FederationError(
        f"an integral from {low:g} to {high:g} did not settle at {_LAST} points; report these numbers"
    )
