"""What many parties hold, one after another: arrays and no object for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """Rows (R, d) and labels (R,) of P parties with `counts` (P,) rows each, one party after another. Never shown."""

    parties: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    counts: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """The position of each row's party, (R,)."""
        return np.repeat(np.arange(len(self.parties)), self.counts)

    def part(self, chosen: np.ndarray) -> Held:
        """Some of the parties: boolean `chosen` (P,), or positions in ascending order; itself if these are all."""
        kept = np.zeros(len(self.parties), dtype=bool)
        kept[chosen] = True
        if kept.all():
            return self
        rows = np.repeat(kept, self.counts)
        return Held(self.parties[kept], self.rows[rows], self.labels[rows], self.counts[kept])

    def each(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows (n, d) and labels (n,) of one party after another."""
        ends = np.cumsum(self.counts)
        for start, end in zip(ends - self.counts, ends, strict=True):
            yield self.rows[start:end], self.labels[start:end]


@runtime_checkable
class ManyHoldings(Protocol):
    """A simulation's provider that hands over many parties at once, where one by one takes most of the time."""

    def held(self, parties: range) -> tuple[Held, Mapping[int, str]]:
        """The raw rows and labels of parties, and why the others do not answer; in all as `Provider.holdings`."""
        ...
