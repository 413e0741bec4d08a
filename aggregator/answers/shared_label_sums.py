"""The noisy sum over all parties of public rows times private labels, where they share its noise."""

from __future__ import annotations

import numpy as np

from aggregator.answers.honest_range import ROUNDING
from aggregator.answers.shared_moments import SharedMoments
from federation.contract.query import Submission

_ROUNDED = 2.0**-25  # what parties may have rounded entries of public sums by


class SharedLabelSums(SharedMoments):
    """As `SharedMoments`; what each party says openly of its public rows is checked: X'X is one, of weights up to 1."""

    @property
    def weight(self) -> float:
        """Rows of the parties that answered, by their weights."""
        return float(self.total("weight"))

    def _impossible(self, submission: Submission) -> np.ndarray:
        bad, sent = super()._impossible(submission), submission.arrays
        size, weight = sent["size"] * (1 + ROUNDING), sent["weight"]
        bad |= (weight > size) | ~(np.linalg.norm(sent["row_sum"], axis=1) <= size)
        gram = sent["gram"]
        bad |= (gram != gram.swapaxes(1, 2)).any(axis=(1, 2))
        fine = np.flatnonzero(~bad)
        least = np.linalg.eigvalsh(gram[fine])[:, 0]
        trace = np.trace(gram[fine], axis1=1, axis2=2)
        bad[fine] = least < -gram.shape[1] * (_ROUNDED + ROUNDING * trace)
        return bad
