"""Which of the declared parties have answered, and why an answer does not count."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class Roll:
    """The declared parties 0..K-1, each of whom may answer once; one byte per party."""

    def __init__(self, parties: int) -> None:
        self.parties = parties
        self._answered = np.zeros(parties, dtype=bool)

    @property
    def answered(self) -> int:
        """Number of parties counted so far."""
        return int(self._answered.sum())

    @property
    def present(self) -> np.ndarray:
        """Ids of the parties counted so far, ascending."""
        return np.flatnonzero(self._answered)

    def admit(self, parties: np.ndarray, faults: Mapping[str, np.ndarray]) -> tuple[np.ndarray, dict[int, str]]:
        """Count those of `parties` (P,), distinct ids, who are declared, have not answered and have no fault.

        `faults` says by cause which answers are malformed, boolean (P,). Returns which answers count (P,), and the
        first cause of each refusal by party; a refused party counts as missing until it answers well.
        """
        unknown = parties >= self.parties
        known = np.where(unknown, 0, parties)
        refused = {
            f"not one of the {self.parties} declared parties": unknown,
            "answered twice; only its first answer counts": ~unknown & self._answered[known],
            **faults,
        }
        counted = ~np.logical_or.reduce(list(refused.values()))
        self._answered[parties[counted]] = True
        return counted, {int(p): cause for cause, bad in reversed(refused.items()) for p in parties[bad]}
