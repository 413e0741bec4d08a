"""Public rows that are no random sample of all rows: those that a data set names, or rows chosen along a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics.rows import Integers
from scenarios.data.tables import Table

OFFICIAL = "official"
BY, FROM, TO = "by", "from", "to"


def is_inclined(auxiliary: object) -> bool:
    """Whether it is {by: COLUMN, from: PROBABILITY, to: PROBABILITY}, two different ones strictly between 0 and 1.

    Probabilities of 0 or 1 would leave values of the column to one side only: the public rows must overlap the others.

    Examples:
        >>> is_inclined({"by": "LB", "from": 0.1, "to": 0.9}), is_inclined({"by": "LB", "from": 0, "to": 0.9})
        (True, False)
    """
    if not isinstance(auxiliary, Mapping) or set(auxiliary) != {BY, FROM, TO}:
        return False
    ends = [auxiliary[FROM], auxiliary[TO]]
    named = isinstance(auxiliary[BY], str) and auxiliary[BY] != ""
    return named and all(map(_is_probability, ends)) and ends[0] != ends[1]


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
    if not is_inclined(inclined):
        raise InputError(
            "data.auxiliary must be {by: COLUMN, from: PROBABILITY, to: PROBABILITY}, two different ones strictly "
            f"between 0 and 1, got {dict(inclined)!r}"
        )
    values = table.column(inclined[BY], "data.auxiliary")
    lowest, highest = values.min(), values.max()
    if lowest == highest:
        raise InputError(f"data.auxiliary: the column '{inclined[BY]}' of '{table.name}' is constant; choose another")
    probabilities = inclined[FROM] + (inclined[TO] - inclined[FROM]) * (values - lowest) / (highest - lowest)
    return np.asarray(random.random(len(table)) < probabilities)


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1
