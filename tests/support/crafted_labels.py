"""A party whose rows are plain and whose first label is whatever a test says, loadable by reference."""

from __future__ import annotations

import numpy as np

from parties.party_data.cohort import Holdings

ROWS = 8


class Party:
    """Rows (1, x) with labels 0 but for the first, which is `first` as a text that a float is read from."""

    def __init__(self, first: str) -> None:
        self._labels = np.zeros(ROWS)
        self._labels[0] = float(first)

    def holdings(self, party: int) -> Holdings:
        return Holdings(party, np.column_stack([np.ones(ROWS), np.arange(ROWS)]), self._labels)

    def evaluation(self) -> None:
        return None
