"""Who is whose neighbour in a masked sum: a ring of all parties in an order that the plan's digest decides.

A party's neighbours have positions 0 to k - 1 by where they stand beside it, so that who is at position i of a party's
neighbours has that party at position k - 1 - i of its own.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from federation.numerics.arrays import Integers
from federation.sums.keys import stream
from federation.sums.plan import SumPlan


def neighbours(plan: SumPlan, parties: Integers | int) -> Integers:
    """The numbers of the neighbours of one party, shape (k,), or of several (n,), shape (n, k).

    Examples:
        >>> from federation.sums.plan import Roster, planned
        >>> plan = planned("00" * 32, Roster((b"1" * 32,) * 4), numbers=1, quorum=1.0, absent=0.0)
        >>> neighbours(plan, 2).tolist(), neighbours(plan, np.array([0, 3])).tolist()
        ([3, 0, 1], [[1, 2, 3], [0, 1, 2]])
    """
    count = plan.neighbours
    if count == plan.parties - 1:
        others: Integers = (np.asarray(parties)[..., None] + np.arange(1, count + 1)) % plan.parties
        return others
    order, places = _ring(plan)
    away = np.concatenate([np.arange(-count // 2, 0), np.arange(1, count // 2 + 1)])
    return np.asarray(order[(places[parties][..., None] + away) % plan.parties])


@lru_cache(maxsize=4)
def _ring(plan: SumPlan) -> tuple[Integers, Integers]:
    """Who stands at each place, and each party's place, both (K,)."""
    order = np.argsort(stream(plan.digest, plan.parties), kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(plan.parties)
    return order, places
