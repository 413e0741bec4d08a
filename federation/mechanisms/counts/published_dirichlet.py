"""The scaled Dirichlet mechanism as published, sigma taken from the counts: for comparison, NOT differentially private.

Eq. 9 of Iyer et al. 2016 compares Dir(sigma eta) with Dir(sigma eta') at one sigma, that of eta; the neighbour really
uses sigma(eta'), which moves every share. And whether any sigma serves depends on eta alone, so that the error, or the
fall-back, tells some neighbours apart for certain. So this is no mechanism object, and a release of it carries a
`NoGuarantee`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.additive import checked_counts
from federation.mechanisms.counts.baselines import LaplacePrior, published_laplace
from federation.mechanisms.counts.dirichlet_divergence import MOST_RUNS, MeasuredDelta, divergence
from federation.mechanisms.counts.dirichlet_loss import delta_eq9, delta_eq9_limit, exceeds_eq9, require_level
from federation.mechanisms.counts.dirichlet_sampler import sample
from federation.mechanisms.noise.checks import require_draws, require_whole
from federation.mechanisms.noise.scales import first_between
from federation.numerics.arrays import Booleans, Floats, Integers

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
