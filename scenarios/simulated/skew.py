"""How rows are dealt to parties that differ: in the classes that they hold, or in how much."""

from __future__ import annotations

import numpy as np

from federation.contract.randomness import generator
from federation.numerics.rows import Floats, Integers
from scenarios.settings.words import LEAST, MOST

SKEWS = ("dirichlet", "quantity")


def is_skew(value: object) -> bool:
    """Whether `value` is a number that a skew takes."""
    return isinstance(value, int | float) and not isinstance(value, bool) and LEAST <= value <= MOST


def quantities(total: int, parties: int, sigma: float, seed: int | None, split: int) -> Integers:
    """Sizes (K,), int64, of sum `total` >= K: one row each, the others in proportion to log-normal weights.

    The logarithms of the weights have standard deviation `sigma` > 0; fractions go by the largest remainder.

    Examples:
        >>> quantities(100, 4, sigma=1.5, seed=1, split=0)
        array([ 9, 47,  4, 40])
    """
    logarithms = sigma * generator(seed, "quantities", trial=split).standard_normal(parties)
    weights = np.exp(logarithms - logarithms.max())
    wanted = (total - parties) * weights / weights.sum()
    sizes = np.floor(wanted).astype(np.int64)
    largest = np.argsort(sizes - wanted, kind="stable")
    sizes[largest[: total - parties - int(sizes.sum())]] += 1
    return np.asarray(sizes + 1)


def dealt_by_class(
    labels: Integers,
    sizes: Integers,
    alpha: float,
    seed: int | None,
    split: int,
    *,
    shuffle: bool,
) -> Integers:
    """Positions in `labels` (n,), party after party: party k gets sizes[k] of them, all different.

    The classes of a party's rows follow proportions of its own, drawn from Dirichlet(alpha * 1) and weighted with
    the classes' shares of all rows: equal classes give the usual label skew (Hsu et al. 2019; Li et al. 2022), and
    whatever the shares, parties grow alike as alpha grows and hold a single class as it falls. A party that finds
    a class used up takes the rest by its proportions among the others. Parties choose in their order, so that more
    of them change nothing for the first ones; with `shuffle` in a random order, so that what is left over, when all
    rows are dealt, meets no party in particular.
    """
    supply = np.bincount(labels)
    weights = _log_proportions(len(sizes), supply, alpha, seed, split)
    order = np.arange(len(sizes))
    if shuffle:
        order = generator(seed, "dealing order", trial=split).permutation(len(sizes))
    counts = np.empty((len(sizes), len(supply)), dtype=np.int64)
    counts[order] = _demands(sizes[order], weights[order], supply, seed, split)
    return dealt(labels, counts)


def dealt(labels: Integers, counts: Integers) -> Integers:
    """Positions in `labels` (n,), bag after bag: bag b gets the next counts[b, c] (B, C) of each class c.

    No class gives more than there are.

    Examples:
        >>> labels = np.array([0, 1, 0, 1, 1])
        >>> dealt(labels, np.array([[1, 0], [1, 2]]))  # one row of class 0; then one of it and two of class 1
        array([0, 1, 2, 3])
    """
    bags = np.arange(len(counts))
    owner = np.full(len(labels), len(counts))  # nobody's
    for label in range(counts.shape[1]):
        taken = np.repeat(bags, counts[:, label])
        owner[np.flatnonzero(labels == label)[: len(taken)]] = taken
    return np.argsort(owner, kind="stable")[: int(counts.sum())]


def _log_proportions(parties: int, supply: Integers, alpha: float, seed: int | None, split: int) -> Floats:
    """Logarithms (K, C) of each party's proportions, up to a constant per party; -inf for classes without rows."""
    shape = (parties, len(supply))
    # A Gamma(alpha) variate is one of Gamma(alpha + 1) times U^(1/alpha) (Marsaglia and Tsang 2000): in logarithms
    # it does not underflow, however small alpha is.
    gammas = generator(seed, "proportions", trial=split).standard_gamma(alpha + 1, shape)
    powers = generator(seed, "small proportions", trial=split).standard_exponential(shape) / alpha
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(gammas) - powers + np.log(supply))


def _demands(sizes: Integers, weights: Floats, supply: Integers, seed: int | None, split: int) -> Integers:
    """Rows (K, C) that each party takes of each class, in the order given; no class gives more than its supply.

    All parties draw at once; those from the first that does not find what it drew draw again, without what is used
    up. Every round uses up a class, so there are at most C.
    """
    counts = np.empty(weights.shape, dtype=np.int64)
    left, first, turn = supply.copy(), 0, 0
    while first < len(sizes):
        random = generator(seed, f"dealing {turn}", trial=split)
        drawn = random.multinomial(sizes[first:], _shares(weights[first:], left))
        short = (drawn.cumsum(axis=0) > left).any(axis=1)
        end = int(np.argmax(short)) if short.any() else len(drawn)
        counts[first : first + end] = drawn[:end]
        left = left - drawn[:end].sum(axis=0)
        first += end
        if first < len(sizes):
            counts[first] = _last_choice(random, drawn[end], weights[first], left)
            left = left - counts[first]
            first += 1
        turn += 1
    return counts


def _last_choice(random: np.random.Generator, drawn: Integers, weights: Floats, left: Integers) -> Integers:
    """What one party takes (C,) when some class has less than it drew: all of that, and more of the others."""
    taken = np.minimum(drawn, left)
    while missing := int(drawn.sum() - taken.sum()):
        taken = np.minimum(taken + random.multinomial(missing, _shares(weights, left - taken)), left)
    return np.asarray(taken)


def _shares(weights: Floats, left: Integers) -> Floats:
    """Proportions (..., C) among the classes of which something is left."""
    open_weights = np.where(left > 0, weights, -np.inf)
    shares = np.exp(open_weights - open_weights.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
