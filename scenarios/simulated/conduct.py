"""How simulated parties behave: who answers, who attacks and how. Keyed by seed and split, so nothing else matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.query import Field
from federation.contract.randomness import generator
from federation.engines.codec import bits_per_entry
from scenarios.settings.words import Kind


@dataclass(frozen=True)
class Conduct:
    """`dropout` is the probability that a party does not answer, `hostile` the fraction of the parties that attack.

    Who drops out at some probability does so at every greater one, and who attacks at some fraction does so at every
    greater one. `kind` is the attack: three train on wrong labels, `malformed` and `oversized` train honestly and
    send something else.

    Examples:
        >>> conduct = Conduct(dropout=0.3, hostile=0.25, kind="flip", seed=1)
        >>> [party for party in range(10) if conduct.drops_out(party)]
        [4, 6, 7, 8, 9]
        >>> conduct.attackers(8).nonzero()[0]
        array([3, 4])
    """

    dropout: float = 0.0
    hostile: float = 0.0
    kind: Kind = "flip"
    seed: int = 0
    split: int = 0

    def drops_out(self, party: int) -> bool:
        """Whether a party does not answer."""
        return bool(self.dropout) and generator(self.seed, "dropout", party, self.split).random() < self.dropout

    def attackers(self, parties: int) -> NDArray[np.bool_]:
        """Which of K parties attack, boolean (K,): exactly the rounded fraction of them, drawn at random."""
        chosen = np.zeros(parties, dtype=bool)
        if self.hostile:
            order = generator(self.seed, "hostile", trial=self.split).permutation(parties)
            chosen[order[: round(self.hostile * parties)]] = True
        return chosen

    def labels(self, labels: NDArray[Any], known: int | tuple[float, float], party: int) -> NDArray[Any]:
        """The labels (n,) that an attacker answers from, given its own.

        `known` is the number C of classes, of codes 0..C-1, or the range [lo, hi] of real labels. "flip" takes the next
        class or mirrors in the range, "random" draws uniformly, "target" answers 0 or lo.

        Examples:
            >>> Conduct(kind="flip").labels(np.array([0, 1, 2]), 3, party=0)
            array([1, 2, 0])
            >>> Conduct(kind="flip").labels(np.array([1.0, 9.0]), (0.0, 10.0), party=0)
            array([9., 1.])
        """
        random = generator(self.seed, "hostile labels", party, self.split)
        if isinstance(known, int):
            if self.kind == "random":
                return random.integers(known, size=len(labels))
            lo, wrong = 0.0, (labels + 1) % known
        else:
            if self.kind == "random":
                return random.uniform(*known, size=len(labels))
            lo, wrong = known[0], np.clip(sum(known) - labels, *known)
        return {"flip": wrong, "target": np.full_like(labels, lo)}.get(self.kind, labels)

    def answers(self, declared: Field, honest: NDArray[Any]) -> NDArray[Any]:
        """What attackers send in place of the honest entries (P, ...) of a declared field.

        `malformed` is NaN, or a class that does not exist; where every packed code is a class (2, 4, 16 or 256 of
        them) there is none, and it is the last class. `oversized` is the largest that the field allows.
        """
        if self.kind not in ("malformed", "oversized"):
            return honest
        extreme: float
        if declared.levels is None:
            largest = min(declared.maximum, float(np.finfo(declared.dtype).max))
            extreme = np.nan if self.kind == "malformed" else largest
        elif self.kind == "oversized":
            extreme = declared.levels - 1
        else:
            extreme = min(2 ** bits_per_entry(declared.levels), 2 ** (8 * declared.dtype.itemsize)) - 1
        return np.full_like(honest, extreme)
