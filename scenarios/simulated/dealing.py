"""Partition of rows among parties that differ in their classes or sizes, and biased public rows.

Public rows need not be a random sample: a data set may name them, or they are chosen along a column.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics.rows import Floats, Integers
from scenarios.data.tables import Table


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
            # A stream of its own: how far the first one has got depends on how many parties follow.
            rest = generator(seed, f"dealing rest {turn}", trial=split)
            counts[first] = _last_choice(rest, drawn[end], weights[first], left)
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


OFFICIAL = "official"
BY, FROM, TO = "by", "from", "to"


def set_apart(
    table: Table,
    auxiliary: int | float | str | Mapping[str, Any],
    reserved: Integers,
    seed: int | None,
    split: int,
) -> tuple[Integers, Integers]:
    """(public rows, shuffled; rows for parties and testing, sorted) as indices, int64; `reserved` are never public.

    - "official": the rows that `table.public` names, all of them;
    - {"by": column, "from": a, "to": b}: each row with the probability a + (b - a) u, where u in [0, 1] is where its
      value of the column lies between the smallest and the largest of all rows (Lacombe et al. 2021, CTG-B). That is
      how a public source with other features is simulated: neither the choice nor the two values could be computed
      where the rows are really private;
    - a file: none, as all its rows are public and none of them is in the table;
    - a count or a fraction: none yet, as the public rows are a random sample of those that are left after the test
      rows.

    Rows that the table names as public go to no party and are no test rows even where they are not asked for. The
    draws depend on `seed` and `split` only. Raises `InputError` where the table names no public rows, for a column
    that is unknown, of texts or constant, and when no row is left on either side.

    Examples:
        >>> table = Table("toy", ("x",), ("a", "b"), np.arange(1000) % 2, (np.arange(1000.0)[:, None],))
        >>> inclined = {"by": "x", "from": 0.1, "to": 0.9}
        >>> public, others = set_apart(table, inclined, np.array([], dtype=np.int64), seed=1, split=0)
        >>> len(public), round(public.mean()), round(others.mean())  # rows with larger x are public more often
        (495, 623, 379)
    """
    random = generator(seed, "public rows", trial=split)
    named = np.isin(np.arange(len(table)), [] if table.public is None else table.public)
    if isinstance(auxiliary, Mapping):
        eligible = ~named
        eligible[reserved] = False
        chosen = eligible & _chosen(table, auxiliary, random)
        if not chosen.any() or not (eligible & ~chosen).any():
            raise InputError(
                f"data.auxiliary: {chosen.sum()} of {eligible.sum()} rows became public by '{auxiliary[BY]}', which "
                "leaves one side without rows; use more rows or other probabilities"
            )
        return random.permutation(np.flatnonzero(chosen)), np.flatnonzero(~named & ~chosen)
    if auxiliary != OFFICIAL:
        return np.empty(0, dtype=np.int64), np.flatnonzero(~named)
    if table.public is None:
        raise InputError(
            f"data.auxiliary: '{table.name}' has no public rows of its own; give a count or a fraction of its rows"
        )
    return random.permutation(np.flatnonzero(named)), np.flatnonzero(~named)


def _chosen(table: Table, inclined: Mapping[str, Any], random: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows a draw along the column would make public, bool (n,)."""
    values = table.column(inclined[BY], "data.auxiliary")
    lowest, highest = values.min(), values.max()
    if lowest == highest:
        raise InputError(f"data.auxiliary: the column '{inclined[BY]}' of '{table.name}' is constant; choose another")
    probabilities = inclined[FROM] + (inclined[TO] - inclined[FROM]) * (values - lowest) / (highest - lowest)
    return np.asarray(random.random(len(table)) < probabilities)
