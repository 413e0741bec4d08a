"""What honest label counts with a party's own noise reach, in one bag and in all bags of a party together."""

from __future__ import annotations

import numpy as np

from aggregator.answers.honest_range import BEYOND, Range
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.noise.reach import Tail, entry_reach, norm_reach
from federation.numerics.rows import Booleans, Floats

_POINTS = 2**14  # of a tail, between which it is taken for what it is at the lower one
_NEVER = 1e-30  # a probability
_GRID = 2.0**-20  # records


class CountRange:
    """Of counts with the noise of `mechanism` in `bags` bags of a party.

    A count is from 0 to the size m of its bag, so that it lies within m/2 of m/2 but for noise, and the counts of one
    class in all bags, whose noise is independent, within the norm of all m/2.
    """

    def __init__(self, mechanism: AdditiveCounts, bags: int) -> None:
        self._classes = mechanism.classes
        beyond = BEYOND / 2 / mechanism.classes
        tail = _tail(mechanism)
        self._entry, self._norm = entry_reach(tail, beyond / bags), norm_reach(tail, bags, beyond)

    def bounded(self, counts: Floats, sizes: Floats) -> tuple[Floats, Booleans]:
        """Counts (P, draws, B, C) of bags of these sizes (P, B) within the range, and whose were not, (P,).

        What is changed sums to the sizes again.
        """
        half = sizes[:, None, :] / 2
        honest = Range(half.max(axis=(1, 2)) + self._entry, np.linalg.norm(half, axis=2)[:, 0] + self._norm)
        found, changed = counts.copy(), np.zeros(len(counts), dtype=bool)
        for label in range(self._classes):
            kept, own = honest.bounded(counts[..., label] - half, _GRID)
            found[..., label], changed = np.where(own[:, None, None], kept + half, counts[..., label]), changed | own
        excess = (found.sum(axis=3) - sizes[:, None, :]) / self._classes
        there = changed[:, None, None] & (sizes[:, None, :] > 0)
        return np.where(there[..., None], found - excess[..., None], counts), changed


def _tail(mechanism: AdditiveCounts) -> Tail:
    """Of how far a released count is from the true one."""
    far = 1.0
    while mechanism.escape(far) > _NEVER:
        far *= 2
    points = np.linspace(0.0, far, _POINTS)
    known = np.minimum([2 * mechanism.escape(point) for point in points], 1.0)  # above as well as below
    places = _POINTS - 1
    return lambda r: np.where(r > far, 0.0, known[np.minimum(r / far * places, places).astype(np.int64)])
