"""What releases over time promise together to one unit, which has part in all of them or in those of a window."""

from __future__ import annotations

from collections.abc import Mapping

from federation.contract.guarantee import Guarantee, Unit
from federation.mechanisms.accounting.composition import compose

ARRIVING = (Unit.ROW, Unit.LABEL)  # what arrives in one period, whereas parties and persons may have a part in all


def most_releases(unit: Unit, releases: int, window: int | None) -> int:
    """In how many of so many releases, one for each period, a unit has part at most.

    A release learns from the `window` periods before its own, without a window from all, so that what arrives once is
    in as many windows as these are long.

    Examples:
        >>> most_releases(Unit.LABEL, 7, window=2), most_releases(Unit.PARTY, 7, window=2)
        (2, 7)
        >>> most_releases(Unit.LABEL, 7, window=None)
        7
    """
    return releases if window is None or unit not in ARRIVING else min(window, releases)


def spent_over_periods(
    releases: Mapping[int, Guarantee], window: int | None, unit: Unit, delta: float
) -> tuple[float, float]:
    """The most that one `unit` has spent, (epsilon, delta), on releases by the period before which their windows end.

    There must be one at least. Each must protect the unit (`Unit.covers`), and all under one adjacency. Windows that no
    unit is in both of compose in parallel: over disjoint rows the largest counts (McSherry 2009, Theorem 4), where it
    is public in which period a row arrives. All others `compose`. Raises `InputError` as that does.

    Examples:
        >>> from federation.contract.guarantee import Adjacency
        >>> spent = {t: Guarantee(t / 10, 0.0, Unit.LABEL, Adjacency.REPLACE, "laplace") for t in (2, 3, 4)}
        >>> spent_over_periods(spent, 1, Unit.LABEL, 0.0), spent_over_periods(spent, 2, Unit.LABEL, 0.0)
        ((0.4, 0.0), (0.7, 0.0))
    """
    last = max(releases)
    reach = most_releases(unit, last, window)
    found = [
        compose([releases[t] for t in range(first, first + reach) if t in releases], delta)
        for first in range(min(releases), max(min(releases), last - reach + 1) + 1)
    ]
    return max(epsilon for epsilon, _ in found), max(spent for _, spent in found)
