"""Mechanisms for label counts by name, and the published ones of the literature for comparison.

`calibrate` builds the mechanism that a name and public numbers stand for. The same call rebuilds it at the party that
has the counts.

The scaled Dirichlet mechanism as published takes sigma from the counts (`sigma_for_counts`). It is NOT differentially
private. Eq. 9 of Iyer et al. 2016 compares Dir(sigma eta) with Dir(sigma eta') at one sigma, that of eta. The neighbour
really uses sigma(eta'), which moves every share. Whether any sigma serves also depends on eta alone, so the error or
the fall-back tells some neighbours apart for certain. The published form is therefore no mechanism object, and its
release (`published_release`) carries a `NoGuarantee`.

The other published forms are loosely calibrated noise, and a Dirichlet around noisy counts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import ClassVar, Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, NoGuarantee
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import dirichlet, exact_laws
from federation.mechanisms.counts.additive import (
    AdditiveCounts,
    CountMechanism,
    CountReplacement,
    checked_counts,
    equal_counts,
    exchangeable,
    smallest_scale,
)
from federation.mechanisms.counts.dirichlet import (
    MOST_RUNS,
    MeasuredDelta,
    divergence,
    log_gamma,
    log_shares_ratio,
    sample,
)
from federation.mechanisms.counts.dirichlet_loss import delta_eq9, delta_eq9_limit, exceeds_eq9, require_level
from federation.mechanisms.counts.exact_laws import CountGaussian, IndependentLaplace
from federation.mechanisms.counts.exact_laws import discrete_gaussian_delta as exact_delta
from federation.mechanisms.noise.mechanism import (
    Parameters,
    first_between,
    require_draws,
    require_wanted,
    require_whole,
)
from federation.numerics.rows import Booleans, Floats, Integers

_STEP = 1 / 8  # of ln sigma in the scan
_BLOCK = 16  # sigmas at a time: most scans end early
_FEW = 256  # pairs of classes that are looked at first
_AT_ONCE = 2**16  # pairs of classes
_TINY = 1e-4  # sigma times the largest count below which the delta is at its limit
_SIZE = 1000  # records of the two-class bags on which the true delta is measured


def sigma_for_counts(counts: Integers, epsilon: float, delta: float) -> float | None:
    """The largest sigma found whose Eq. 9 delta is at most `delta` for all ordered pairs of classes; None without one.

    A scan of ln sigma from the top, as the delta is not monotone in sigma, then bisection; the answer is one of the
    sigmas at which the delta of all pairs was computed. `counts` (C,): whole numbers >= 0. The result depends on
    private counts. Raises `InputError` for other counts, epsilon <= 0 or delta outside (0, 1).

    Examples:
        >>> sigma_for_counts(np.array([50, 30, 20]), epsilon=1.0, delta=1e-3)
        1.044
        >>> sigma_for_counts(np.array([98, 1, 1]), epsilon=1.0, delta=1e-3) is None
        True
    """
    require_level(epsilon, delta)
    return _sigma(tuple(checked_counts(counts, np.size(counts)).tolist()), epsilon, delta)


@lru_cache(maxsize=8)  # a comparison asks for that of a bag and of its neighbour several times
def _sigma(counts: tuple[int, ...], epsilon: float, delta: float) -> float | None:
    eta = np.array(counts)
    if eta.min() < 2:  # a class that a neighbour lacks, or has alone, tells them apart at any sigma
        return None
    pairs = _Pairs(*np.unique(eta, return_counts=True))
    a, b = pairs.smallest(_FEW)  # the worst are mostly among them

    def exceeds_few(log_sigma: float, level: float) -> bool:
        return bool(np.any(exceeds_eq9(epsilon, a, b, math.exp(log_sigma), level)))

    def exceeds(log_sigma: float, level: float) -> bool:
        return pairs.some(lambda lost, gained: exceeds_eq9(epsilon, lost, gained, math.exp(log_sigma), level))

    def refused(log_sigma: float, level: float) -> bool:
        return exceeds_few(log_sigma, level) or exceeds(log_sigma, level)

    top = 0.0
    while not refused(top, (1 + delta) / 2):
        top += 1.0
    bottom = math.log(_TINY / eta.max())
    if not pairs.some(lambda lost, gained: delta_eq9_limit(epsilon, lost, gained) >= delta):
        while refused(bottom, delta):
            bottom -= 1.0
    scan = np.append(np.arange(top, bottom, -_STEP), bottom)
    starts = range(0, len(scan), _BLOCK)
    blocks = (delta_eq9(epsilon, a[:, None], b[:, None], np.exp(scan[i : i + _BLOCK])).max(axis=0) for i in starts)
    hopeful = (k for k, each in enumerate(chain.from_iterable(blocks)) if each <= delta)
    private = next((k for k in hopeful if not exceeds(scan[k], delta)), None)
    if private is None:
        return None

    def bisected(too_much: Callable[[float], bool]) -> float:
        low, high = float(scan[private]), float(scan[private - 1])
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if too_much(middle) else (middle, high)
        return low

    low = bisected(lambda log_sigma: exceeds_few(log_sigma, delta))
    if exceeds(low, delta):
        low = bisected(lambda log_sigma: refused(log_sigma, delta))
    return math.exp(low)


def published_release(counts: Integers, epsilon: float, delta: float, bits: NoiseBits, draws: int = 1) -> Floats:
    """Size times shares from Dir(sigma eta), shape (draws, C) float64; NOT (epsilon, delta)-differentially private.

    Where no sigma serves, the paper's fall-back: a draw around Laplace-noised counts (Machanavajjhala et al. 2008).
    Raises `InputError` as `sigma_for_counts`.

    Examples:
        >>> published_release(np.array([50, 30, 20]), 1.0, 1e-3, NoiseBits(1, "example")).round(1)
        array([[56. , 27.9, 16.1]])
    """
    require_draws(draws)
    eta = checked_counts(counts, np.size(counts))
    sigma = sigma_for_counts(eta, epsilon, delta)
    if sigma is None:
        return LaplacePrior(published_laplace(len(eta), epsilon)).release(eta, bits, draws)
    return sample(bits, sigma * eta.astype(np.float64), draws) * float(eta.sum())


def true_delta(
    counts: Integers, neighbour: Integers, epsilon: float, delta: float, *, runs: int = 2**18, seed: int = 1
) -> MeasuredDelta:
    """The delta of the published mechanism at `epsilon` from these counts to a neighbour's, each with its own sigma.

    Exact for two classes, by `runs` draws for more. 1 when a sigma exists for one of the two only: the published
    algorithm then reports an error for the other. 0 when none exists for either: the fall-back is pure. Raises
    `InputError` for counts that are no neighbours, and as `sigma_for_counts`.

    Examples:
        >>> true_delta(np.array([7, 993]), np.array([6, 994]), epsilon=1.0, delta=1e-3).value
        0.2553
    """
    pair = [checked_counts(each, np.size(counts)) for each in (counts, neighbour)]
    require_whole("runs", runs, 1, MOST_RUNS)
    if sorted(pair[1] - pair[0]) != [-1, *[0] * (np.size(counts) - 2), 1]:
        raise InputError("neighbour must hold one record less in one class and one more in another than counts")
    sigmas = [sigma_for_counts(each, epsilon, delta) for each in pair]
    laws = [sigma * each.astype(np.float64) for sigma, each in zip(sigmas, pair, strict=True) if sigma is not None]
    if len(laws) < 2:
        return MeasuredDelta(float(len(laws)), 0.0)
    return divergence(epsilon, *laws, runs=runs, seed=seed)


@lru_cache
def published_guarantee(epsilon: float, delta: float) -> NoGuarantee:
    """That a release claims (epsilon, delta) and does not keep it, with the delta that two public counts show.

    Nothing in it depends on private counts: it measures bags of 1,000 records in two classes, at the smallest count
    that any sigma serves. Raises `InputError` for epsilon <= 0 or delta outside (0, 1).

    Examples:
        >>> print(published_guarantee(1.0, 1e-3).reason)
        sigma, and whether there is one, depends on the counts that it should hide: in two classes of 1000
        records, counts of 7 and 6 differ by a delta of 0.577 at epsilon 1, not 0.001, and 6 and 5 are told
        apart for certain
    """
    require_level(epsilon, delta)
    claimed = (epsilon, delta)
    reason = "sigma, and whether there is one, depends on the counts that it should hide"

    def served(count: int) -> bool:
        return sigma_for_counts(np.array([count, _SIZE - count]), epsilon, delta) is not None

    if not served(_SIZE // 2):
        return NoGuarantee(f"{reason}: no bag of {_SIZE} records in two classes is served at all", claimed)
    least = first_between(served, 1, _SIZE // 2)
    counts, neighbour = (np.array([count, _SIZE - count]) for count in (least + 1, least))
    both_ways = ((counts, neighbour), (neighbour, counts))
    true = max(true_delta(here, there, epsilon, delta).value for here, there in both_ways)
    return NoGuarantee(
        f"{reason}: in two classes of {_SIZE} records, counts of {least + 1} and {least} differ by a delta of "
        f"{true:.3g} at epsilon {epsilon:g}, not {delta:g}, and {least} and {least - 1} are told apart for certain",
        claimed,
    )


@dataclass(frozen=True)
class _Pairs:
    """The (count that loses a record, count that gains one) of all ordered pairs of classes, equal ones once.

    Of the distinct counts `values` (V,), ascending, and how many classes hold each.
    """

    values: Integers
    times: Integers

    def smallest(self, most: int) -> tuple[Integers, Integers]:
        """At most so many of the smallest sum."""
        among = slice(most + 2)  # with a count beyond, the smallest one makes enough that are smaller
        a, b = (grid.ravel() for grid in np.meshgrid(self.values[among], self.values[among], indexing="ij"))
        kept = np.flatnonzero((a != b) | np.repeat(self.times[among] > 1, len(self.values[among])))
        kept = kept[np.argsort((a + b)[kept], kind="stable")[:most]]
        return a[kept], b[kept]

    def some(self, found: Callable[[Integers, Integers], Booleans]) -> bool:
        """Whether it finds any, asked about many at a time, the smallest counts first."""
        rows = max(1, _AT_ONCE // len(self.values))
        alone = np.diag(self.times == 1)  # a class is no pair with itself
        blocks = (slice(start, start + rows) for start in range(0, len(self.values), rows))
        return any(np.any(found(self.values[block, None], self.values) & ~alone[block]) for block in blocks)


CountNoise = Literal[
    "auto",
    "gaussian",
    "laplace",
    "pure",
    "independent_laplace",
    "published_laplace",
    "published_gaussian",
    "laplace_prior",
    "dirichlet_floor",
    "dirichlet_shifted",
]
_MOST_CLASSES = 2**20
_FREE = 1.001  # at so little more error than with delta, a pure guarantee is preferred
_NEED_DELTA = ("gaussian", "published_gaussian", "dirichlet_floor", "dirichlet_shifted")


def calibrate(
    noise: CountNoise,
    *,
    classes: int,
    epsilon: float,
    delta: float,
    floor: int | None = None,
    pseudo_count: int | None = None,
) -> CountMechanism:
    """The least noise of a kind that makes one release of label counts (epsilon, delta)-private.

    `noise`: "auto" (the smallest expected L1 error of gaussian, laplace and, within 0.1 %, pure), "gaussian"
    (independent discrete Gaussian), "laplace" (discrete Laplace of sum zero, using delta), "pure" (the same at
    delta 0), "independent_laplace"; for comparison "published_laplace", "published_gaussian", "laplace_prior",
    "dirichlet_floor" (needs `floor`: a promise that every class has so many records in both neighbours) and
    "dirichlet_shifted" (needs `pseudo_count`). `delta` in [0, 1); pure kinds claim 0 whatever it is. All
    arguments are public numbers, and plain JSON. Raises `InputError` for arguments out of range, missing, or of
    another kind.

    Examples:
        >>> import numpy as np
        >>> from federation.contract.randomness import NoiseBits
        >>> noise = calibrate("auto", classes=3, epsilon=0.5, delta=1e-6)
        >>> noise.name, float(noise.scale)
        ('lattice_laplace', 4.0)
        >>> noise.release(np.array([50, 30, 20]), NoiseBits(3, "example"), draws=2).round(1)
        array([[49., 31., 20.],
               [49., 32., 19.]])
    """
    require_wanted(noise, epsilon, delta, known=get_args(CountNoise), with_delta=_NEED_DELTA, pure="laplace or pure")
    require_whole("classes", classes, 2, _MOST_CLASSES)
    _check_extra("floor", floor, noise, "dirichlet_floor")
    _check_extra("pseudo_count", pseudo_count, noise, "dirichlet_shifted")
    if floor is not None:
        return dirichlet.calibrate_floor(classes, epsilon, delta, floor)
    if pseudo_count is not None:
        return dirichlet.calibrate_shifted(classes, epsilon, delta, pseudo_count)
    kinds: dict[str, Callable[[], CountMechanism]] = {
        "auto": lambda: _automatic(classes, epsilon, delta),
        "gaussian": lambda: exact_laws.calibrate_discrete_gaussian(classes, epsilon, delta),
        "laplace": lambda: exact_laws.calibrate_lattice_laplace(classes, epsilon, delta),
        "pure": lambda: exact_laws.calibrate_lattice_laplace(classes, epsilon, 0.0),
        "independent_laplace": lambda: exact_laws.calibrate_independent_laplace(classes, epsilon, delta),
        "published_laplace": lambda: published_laplace(classes, epsilon),
        "published_gaussian": lambda: published_gaussian(classes, epsilon, delta),
        "laplace_prior": lambda: LaplacePrior(published_laplace(classes, epsilon)),
    }
    return kinds[noise]()


def _automatic(classes: int, epsilon: float, delta: float) -> AdditiveCounts:
    """By expected L1 error before any projection, which depends on (classes, epsilon, delta) only."""
    pure = exact_laws.calibrate_lattice_laplace(classes, epsilon, 0.0)
    if delta == 0:
        return pure
    laplace = exact_laws.calibrate_lattice_laplace(classes, epsilon, delta)
    gaussian = exact_laws.calibrate_discrete_gaussian(classes, epsilon, delta)
    best = min(laplace, gaussian, key=lambda mechanism: mechanism.expected_l1())
    return pure if pure.expected_l1() <= _FREE * best.expected_l1() else best


def _check_extra(parameter: str, value: int | None, noise: str, owner: str) -> None:
    if (value is None) == (noise == owner):
        raise InputError(
            f"{parameter} must be given for noise {owner} and for no other, got {value} for {noise}; "
            f"{'name a public number' if value is None else 'leave it out'}"
        )


_TINY_SCALE = 1e-3  # in records: what a noisy count that is not positive is replaced by
_VARIANCE_ENTRIES = 100_000  # draws times classes of the covariance


def published_laplace(classes: int, epsilon: float) -> IndependentLaplace:
    """Discrete Laplace noise of scale 2/epsilon on every count: pure, by an L1 sensitivity of 2 (Dwork et al. 2006).

    Raises `InputError` where the scale exceeds 2^39 counts.

    Examples:
        >>> published_laplace(classes=3, epsilon=0.5).scale
        Fraction(4, 1)
    """
    return exact_laws.calibrate_independent_laplace(classes, epsilon, 0.0)


def published_gaussian(classes: int, epsilon: float, delta: float) -> CountGaussian:
    """Noise of the classic sigma = sqrt(2 ln(1.25/delta)) sqrt(2)/epsilon (Dwork, Roth 2014, Theorem A.1).

    It claims what this sigma really gives: the exact delta at `epsilon`, far below the given one for small
    epsilon, and above it where the theorem does not hold (epsilon > 1). Raises `InputError` where that is 1.

    Examples:
        >>> made = published_gaussian(classes=3, epsilon=0.5, delta=1e-5)
        >>> float(made.scale), made.delta
        (13.7, 1.604e-08)
    """
    wanted = math.sqrt(2 * math.log(1.25 / delta)) * math.sqrt(2) / epsilon
    sigma = smallest_scale(lambda scale: scale >= wanted, wanted)
    true = exact_delta(epsilon, float(sigma))
    if true >= 1:
        raise InputError(
            f"noise published_gaussian hides nothing at epsilon {epsilon:g}, far beyond its theorem, which ends at 1; "
            "choose gaussian"
        )
    return CountGaussian(classes, epsilon, true, sigma)


@dataclass(frozen=True)
class LaplacePrior(CountReplacement):
    """A draw from the Dirichlet law whose parameters are counts with Laplace noise 2/epsilon, kept positive.

    The draw is post-processing of the noisy counts, so it is as private as they are: `noise` says how much.

    Examples:
        >>> prior = LaplacePrior(published_laplace(3, epsilon=1.0))
        >>> prior.release(np.array([50, 30, 20]), NoiseBits(1, "example")).round(1)
        array([[48.4, 28.4, 23.3]])
    """

    noise: IndependentLaplace

    name: ClassVar[str] = "laplace_prior"

    @property
    def classes(self) -> int:
        """C, how many classes there are."""
        return self.noise.classes

    @property
    def epsilon(self) -> float:
        """The epsilon that one release claims."""
        return self.noise.epsilon

    @property
    def delta(self) -> float:
        """The delta that one release claims: 0, as the noise is pure."""
        return self.noise.delta

    @property
    def parameters(self) -> Parameters:
        """Public numbers of the mechanism, as its guarantee lists them."""
        return self.noise.parameters | {"least": _TINY_SCALE}

    def release(self, counts: Integers, bits: NoiseBits, draws: int = 1) -> Floats:
        """Size times Dirichlet draws, shape (draws, C) float64, every entry >= 0.

        Raises `InputError` for counts that are no counts of the classes.
        """
        noisy = np.maximum(self.noise.noisy(counts, bits, draws), _TINY_SCALE)
        log = log_gamma(bits, noisy.ravel(), 1).reshape(noisy.shape)
        shares: Floats = np.exp(log - log.max(axis=1, keepdims=True))
        total: Floats = shares.sum(axis=1, keepdims=True)
        return int(np.sum(counts)) * shares / total

    def log_ratio(self, released: Floats, here: Floats, there: Floats) -> Floats:
        """A number that rises with the log likelihood ratio, as of Dirichlet shares of the exact counts."""
        return log_shares_ratio(released, here, there)

    def delta_at(self, epsilon: float) -> float:
        """The exact delta of the noisy counts at another epsilon >= 0; the draw can only lower it."""
        return self.noise.delta_at(epsilon)

    def covariance(self, size: int) -> Floats:
        """Covariance (C, C) of the released counts at equal ones, from seeded draws: within about 1 %."""
        counts = equal_counts(self.classes, size)
        released = self.release(
            counts, NoiseBits(1, "variance of laplace_prior"), max(100, _VARIANCE_ENTRIES // self.classes)
        )
        return exchangeable(float(released.var(axis=0).mean()), self.classes)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the guarantee rests on: that of the noisy counts."""
        return self.noise.assumptions
