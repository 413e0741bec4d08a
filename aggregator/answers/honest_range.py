"""What an honest answer with its own noise exceeds with probability 1e-6 at most; a longer one is scaled to it.

Noise has a public law, and so has a bound on what it is added to: how far both together reach is known. An answer
beyond is not dropped, as that would let a party leave at will. All this looks at private answers only, so that nothing
of what they promise is spent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from federation.mechanisms.noise.reach import additive_reaches
from federation.numerics.rows import Booleans, Floats
from federation.queries.row_sums import SummedQuestion

BEYOND = 1e-6  # of a party, a question and a noise draw
REACH = 40.0  # standard deviations: Laplace noise goes further with a probability below e^-56
ROUNDING = 1e-6  # relative, of sums over a party's rows


@dataclass(frozen=True, eq=False)
class Range:
    """The largest magnitude of an entry, and the largest L2 norm, of honest answers of P parties, (P,) each."""

    entries: Floats
    norms: Floats

    def bounded(self, answers: Floats, step: float) -> tuple[Floats, Booleans]:
        """Answers (P, draws, D) with long entries cut and long answers scaled, and whose answers these are, (P,).

        What is changed becomes whole multiples of `step` > 0, rounded towards zero, so that it adds up as exactly as
        the rest. All else is as it was.

        Examples:
            >>> honest = Range(np.array([4.0, 4.0]), np.array([5.0, 5.0]))
            >>> honest.bounded(np.array([[[3.0, 4.0]], [[8.0, 4.0]]]), step=0.5)
            (array([[[3. , 4. ]],
                   [[3.5, 3.5]]]), array([False,  True]))
        """
        cut = np.clip(answers, -self.entries[:, None, None], self.entries[:, None, None])
        lengths = np.linalg.norm(cut, axis=2, keepdims=True)
        longest = self.norms[:, None, None]
        beyond = (np.abs(answers) > self.entries[:, None, None]).any(axis=2, keepdims=True) | (lengths > longest)
        scaled = cut * np.minimum(1.0, longest / np.where(lengths > 0, lengths, 1.0))
        return np.where(beyond, np.trunc(scaled / step) * step, answers), beyond.any(axis=(1, 2))


class SumRange:
    """The range of honest sums with a party's own noise, by its number of rows."""

    def __init__(self, question: SummedQuestion) -> None:
        self._question = question
        noise = question.sum_noise()
        self._reaches = (0.0, 0.0) if noise is None else additive_reaches(noise.additive, BEYOND)
        self._response = question.label_noise()
        steps = [] if noise is None else [noise.additive.step]
        steps += [] if self._response is None else [self._response.step]
        self.step = min(steps)

    def of(self, rows: Floats) -> Range:
        """Of parties with these numbers of rows (P,): each adds a vector of norm `longest` at most.

        Noise on the sum goes as far as its law says, and randomised response as `SummedResponse.reaches` says.
        """
        exact = rows * self._question.longest * (1 + ROUNDING)
        entries, norms = (exact + reach for reach in self._reaches)
        if self._response is not None:
            responding = self._question.responding(rows)
            own = self._response.reaches(rows, self._question.numbers, BEYOND)
            entries, norms = (
                np.where(responding, reach * (1 + ROUNDING), other)
                for reach, other in zip(own, (entries, norms), strict=True)
            )
        return Range(entries, norms)
