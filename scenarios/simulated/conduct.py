"""How simulated parties behave: who answers, who attacks and how. Keyed by seed and split, so nothing else matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from federation.contract.question import Field
from federation.contract.randomness import generator
from federation.grids.packing import bits_per_entry

Kind = Literal["flip", "random", "target", "malformed", "oversized"]


@dataclass(frozen=True)
class Conduct:
    """`dropout` is the probability that a party does not answer, `hostile` the fraction of the parties that attack.

    Who drops out at some probability does so at every greater one, and who attacks at some fraction does so at every
    greater one. `kind` is the attack: three train on wrong labels, `malformed` and `oversized` train honestly and
    send something else.
    """

    dropout: float = 0.0
    hostile: float = 0.0
    kind: Kind = "flip"
    seed: int = 0
    split: int = 0

    def drops_out(self, party: int) -> bool:
        """Whether a party does not answer."""
        return bool(self.dropout) and generator(self.seed, "dropout", party, self.split).random() < self.dropout

    def attackers(self, parties: int) -> np.ndarray:
        """Which of K parties attack, boolean (K,): exactly the rounded fraction of them, drawn at random."""
        chosen = np.zeros(parties, dtype=bool)
        if self.hostile:
            order = generator(self.seed, "hostile", trial=self.split).permutation(parties)
            chosen[order[: round(self.hostile * parties)]] = True
        return chosen

    def labels(self, labels: np.ndarray, classes: int, party: int) -> np.ndarray:
        """The class codes (n,) that an attacker trains on, given its own in 0..C-1."""
        match self.kind:
            case "flip":
                return (labels + 1) % classes
            case "random":
                random = generator(self.seed, "hostile labels", party, self.split)
                return random.integers(classes, size=len(labels))
            case "target":
                return np.zeros_like(labels)
            case _:
                return labels

    def real_labels(self, labels: np.ndarray, lo: float, hi: float, party: int) -> np.ndarray:
        """The real labels (n,) that an attacker answers from, given its own in [lo, hi]: mirrored, random or all lo."""
        match self.kind:
            case "flip":
                return np.clip(lo + hi - labels, lo, hi)
            case "random":
                random = generator(self.seed, "hostile labels", party, self.split)
                return random.uniform(lo, hi, size=len(labels))
            case "target":
                return np.full_like(labels, lo)
            case _:
                return labels

    def answers(self, declared: Field, honest: np.ndarray) -> np.ndarray:
        """What attackers send in place of the honest entries (P, ...) of a declared field.

        `malformed` is NaN, or a class that does not exist; where every packed code is a class (2, 4, 16 or 256 of
        them) there is none, and it is the last class. `oversized` is the largest that the field allows.
        """
        if self.kind not in ("malformed", "oversized"):
            return honest
        return np.full_like(honest, self._extreme(declared))

    def _extreme(self, declared: Field) -> float:
        if declared.levels is None:
            return np.nan if self.kind == "malformed" else min(declared.maximum, float(np.finfo(declared.dtype).max))
        if self.kind == "oversized":
            return declared.levels - 1
        return min(2 ** bits_per_entry(declared.levels), 2 ** (8 * declared.dtype.itemsize)) - 1
