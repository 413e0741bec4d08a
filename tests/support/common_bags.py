"""Bags of Gaussian rows that are dealt over parties for tests, each of whom has some rows of some of them."""

import numpy as np
from support.bagged import draw

from parties.party_data.cohort import Holdings

SHARES = np.array(
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.4, 0.3, 0.3]]
)  # of the classes in each bag
ROWS = 60  # of a bag


def everything() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (n, 3), labels and bags of all parties together, bag after bag."""
    counts = np.rint(SHARES * ROWS).astype(int)
    labels = np.concatenate([np.repeat(np.arange(3), bag) for bag in counts])
    return draw(labels, 5), labels, np.repeat(np.arange(len(SHARES)), ROWS)


class Dealt:
    """Party k of `parties` has every so many-th row of the first bags; of the last all are at party 0, without rest.

    With one party that has all rows, in the same order within each bag as they come from several.
    """

    def __init__(self, parties: int, of: int | None = None) -> None:
        self._parties, self._of = parties, of or parties

    def holdings(self, party: int) -> Holdings:
        rows, labels, bags = everything()
        holder = np.where(bags == len(SHARES) - 1, 0, np.arange(len(labels)) % self._of)
        if self._parties == 1:
            own = np.lexsort((np.arange(len(labels)), holder, bags))
        else:
            own = np.flatnonzero(holder == party)
        return Holdings(party, rows[own], labels[own], bags[own])

    def evaluation(self) -> None:
        return None
