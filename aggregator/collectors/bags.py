"""Collects what parties say about their bags.

What honest label counts with a party's own noise reach, in one bag and in all bags of a party together.

What all parties together have of each bag, with a noise that they share; the bags are the same at all of them.
"""

from __future__ import annotations

import math

import numpy as np

from aggregator.collectors.collectors import LocalAnswers, SharedAnswers, require_reachable
from aggregator.collectors.robust_sums import BEYOND, REACH, ROUNDING, Changes, Range
from aggregator.trial.plan import TrialPlan
from federation.contract.guarantee import Guarantee
from federation.contract.query import Question
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.noise.reach import Tail, entry_reach, norm_reach
from federation.numerics.rows import Booleans, Floats
from federation.queries.bags import BagTotalsQuestion
from federation.secure_aggregation.masks import require_room

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


_ROUNDING = 1e-9  # of a bag's size: what counts in units of grid steps may miss in their sum


class BagAnswers(LocalAnswers):
    """Answers of K parties to one question about bags of at most `largest` rows each.

    `promise` is the guarantee that every answer must carry, None for answers without one. Noise takes a count at most
    `count_reach` below 0 or beyond its bag's size, and moves each entry of a sum of rows of norm 1 by `sum_reach`.
    Counts within that, but beyond `count_range`, are scaled to it.
    """

    def __init__(
        self,
        question: Question,
        parties: int,
        largest: int,
        promise: Guarantee | None,
        count_reach: float = 0.0,
        sum_reach: float = 0.0,
        count_range: CountRange | None = None,
    ) -> None:
        super().__init__(question, parties, promise)
        self._range, self._scaled = count_range, 0
        self._largest, self._count_reach, self._sum_reach = largest, count_reach, sum_reach

    @property
    def changes(self) -> Changes | None:
        """How many answers were scaled; None where they are taken as they come."""
        return None if self._range is None else Changes(self.answered, self._scaled, 0)

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        if self._range is not None:
            counts, scaled = self._range.bounded(arrays["counts"], arrays["sizes"])
            arrays = {**arrays, "counts": counts}
            self._scaled += int(np.count_nonzero(scaled))
        super()._keep(parties, arrays)

    @property
    def sizes(self) -> np.ndarray:
        """Rows of every bag of every party (K, B), 0 for bags that are not there."""
        return self._arrays["sizes"]

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Which parties' sizes are whole numbers in range, one of them positive, and all else is possible with them."""
        sizes = arrays["sizes"]
        fine = (sizes == np.floor(sizes)).all(axis=1) & (sizes.max(axis=1) > 0) & (sizes.max(axis=1) <= self._largest)
        if "counts" in arrays:
            counts, whole = arrays["counts"], sizes[:, None, :]
            rounding = _ROUNDING * (1 + np.abs(counts).sum(axis=3))
            reach = np.where(whole > 0, self._count_reach, 0.0) + rounding
            fine &= (np.abs(counts.sum(axis=3) - whole) <= rounding).all(axis=(1, 2))
            fine &= ((counts.min(axis=3) >= -reach) & (counts.max(axis=3) <= whole + reach)).all(axis=(1, 2))
        if "means" in arrays:  # (P, B, D), or (P, draws, B, D) of noisy ones
            norms = np.linalg.norm(arrays["means"], axis=-1)
            norms = norms[:, None] if norms.ndim == 2 else norms
            reach = self._sum_reach * np.sqrt(arrays["means"].shape[-1])
            fine &= (sizes[:, None, :] * (norms - 1 - _ROUNDING) <= reach).all(axis=(1, 2))
        return np.asarray(fine)


def shared_bags(*answers: BagAnswers, least: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Party and number, (M,) each, of bags of `least` rows or more of which all answers say the same size; in order."""
    sizes = np.stack([answer.sizes for answer in answers])
    found = (sizes[0] >= least) & (sizes == sizes[0]).all(axis=0)
    party, number = np.nonzero(found)
    return party, number


class SharedBags(SharedAnswers):
    """Totals of each bag, of which nobody sees a party's part; those that honest parties cannot have are refused.

    A party has at most `largest_bag` of the plan's rows of a bag. Raises `InputError`, before anybody is asked, where
    honest numbers might wrap around modulo 2^64.
    """

    question: BagTotalsQuestion

    def __init__(self, question: BagTotalsQuestion, plan: TrialPlan) -> None:
        super().__init__(question, plan)
        noise = question.mechanism()
        self._most, self._whole_variance = plan.public.largest_bag * question.longest, noise.variance()
        require_room(
            self._most / min(self._steps.values()), noise.additive, noise.contributors, plan.terms.parties, self.numbers
        )

    @property
    def variance(self) -> float:
        """Of the noise on each number: of all shares, of which more come than are needed, as a rule."""
        return self.wholes * self._whole_variance

    def total(self, name: str) -> np.ndarray:
        """As `SharedAnswers.total`. Raises `FederationError` for totals that no honest parties have."""
        found: np.ndarray = super().total(name)
        noise = REACH * math.sqrt(self.variance)
        largest = self.answered * self._most * (1 + ROUNDING) + noise
        require_reachable(found, -largest if name == "sums" else -noise, largest, self.answered)
        return found
