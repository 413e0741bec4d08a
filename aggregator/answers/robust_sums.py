"""What a sum over the answers of all parties is moved by when scores of some are clipped, once all have come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np

from aggregator.answers.spectral_gate import LEAST_PARTIES, MOST_DIRECTIONS, MOST_NUMBERS, gated
from federation.numerics.rows import Floats, Integers

# Of the second moment of vectors of norm 1, in a direction: what one row adds to the variance of honest sums.
_SAMPLED = 0.3


@dataclass(frozen=True)
class Robustness:
    """How answers that are private one by one are kept from moving a sum further than honest ones.

    bounded: they are scaled to what an honest one exceeds with probability 1e-6 at most, and clipped along directions
        in which all of them spread more than noise.
    alike: parties' rows are declared to be drawn alike, so that sums may differ by noise and chance only.
    """

    bounded: bool = True
    alike: bool = False


BOUNDED = Robustness()


class GatedSum:
    """Answers (draws, D) of K parties, kept until all have come, to clip what `spectral_gate` finds among them.

    With fewer than 8 parties or more than 2^23 numbers, and more than 512 numbers of both a party and a draw, nothing
    is kept and nothing clipped. All these are public numbers.
    """

    def __init__(self, parties: int, draws: int, width: int) -> None:
        fits = parties >= LEAST_PARTIES and parties * draws * width <= MOST_NUMBERS
        self.kept = fits and min(parties, width) <= MOST_DIRECTIONS
        self._ids: list[Integers] = []
        self._answers: list[Floats] = []
        self._weights: list[Floats] = []
        self._shape = (draws, width)

    def keep(self, parties: Integers, answers: Floats, weights: Floats) -> None:
        """Answers (P, draws, D) of parties (P,) whose honest ones are in proportion to `weights` (P,), above 0."""
        if self.kept:
            self._ids.append(parties)
            self._answers.append(answers)
            self._weights.append(weights)

    def correction(self, variance: float, longest: float, *, alike: bool) -> tuple[Floats, Integers]:
        """What to add to the sum of all answers (draws, D), and the ids of the parties of whom something was clipped.

        `variance` is that of the noise of one answer in each entry. Parties that are `alike` differ by the chance of
        drawing their rows, too, each of which adds a vector of norm `longest` to an answer; weights are then numbers of
        rows. The same in whichever order answers came.
        """
        nothing = np.zeros(self._shape), np.zeros(0, dtype=np.int64)
        if not self._ids:
            return nothing
        ids = np.concatenate(self._ids)
        order = np.argsort(ids)
        if len(order) < LEAST_PARTIES or variance <= 0:
            return nothing
        answers, rows = np.concatenate(self._answers)[order], np.concatenate(self._weights)[order]
        if alike:
            variance += _SAMPLED * float(np.median(rows)) * longest**2
        moved, clipped = np.zeros(self._shape), np.zeros(len(ids), dtype=bool)
        for draw in range(self._shape[0]):
            found, own = gated(answers[:, draw], rows / rows.mean(), variance)
            moved[draw] = (found[own] - answers[own, draw]).sum(axis=0)
            clipped |= own
        return moved, ids[order][clipped]


@dataclass(frozen=True)
class Changes:
    """How many answers came, and how many of them were `scaled` and `clipped`."""

    answered: int
    scaled: int
    clipped: int

    @staticmethod
    def of(several: Iterable[Changes | None]) -> tuple[str, ...]:
        """All together as a ledger puts it; nothing where answers are summed as they come.

        Examples:
            >>> Changes.of([Changes(20, 1, 0), Changes(20, 0, 2)])
            ('of 40 answers 1 scaled to what honest ones reach, 2 clipped where all spread more than noise',)
            >>> Changes.of([None])
            ()
        """
        known = [one for one in several if one is not None]
        if not known:
            return ()
        answered, scaled, clipped = (sum(column) for column in zip(*map(astuple, known), strict=True))
        return (
            f"of {answered} answers {scaled} scaled to what honest ones reach, {clipped} clipped where all spread more "
            "than noise",
        )
