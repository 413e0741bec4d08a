"""Collects what parties say about their bags."""

from __future__ import annotations

import numpy as np

from aggregator.answers.count_range import CountRange
from aggregator.answers.local_answers import LocalAnswers
from aggregator.answers.robust_sums import Changes
from federation.contract.guarantee import Guarantee
from federation.contract.query import Question

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
