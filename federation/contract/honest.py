"""Bounds on what honest parties can send in response to a query, from public numbers alone: for collectors.

A collector asks a query for this declaration, and knows no query itself. All checks read responses that are private
already, so they spend nothing of the guarantees of these responses.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
Arrays = Mapping[str, np.ndarray]  # by name of a field, with the parties on the first axis

BEYOND = 1e-6  # the probability with which an honest response is scaled, for a party, a query and a noise draw
REACH = 40.0  # standard deviations: Laplace noise goes further with a probability below e^-56
ROUNDING = 1e-6  # relative, of sums over a party's rows


@dataclass(frozen=True)
class PartySize:
    """Public numbers of every party that are not in a query: at most so many `bags`, of at most `largest_bag` rows."""

    bags: int = 1
    largest_bag: int = 1

    @property
    def rows(self) -> int:
        """The most rows of a party."""
        return self.bags * self.largest_bag


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


@dataclass(frozen=True, eq=False)
class Spread:
    """Responses (P, draws, D) of some parties that may be clipped where they spread more than their noise can.

    Honest ones are in proportion to `weights` (P,), above 0; `chosen` (P,) says whose these are among all parties.
    """

    values: Floats
    weights: Floats
    chosen: Booleans


class Honest:
    """What honest parties can send: by default anything within the ranges of the fields, which nobody scales.

    Responses that are scaled and clipped are in `parts`, of which fields are linear functions. `widths` are the numbers
    of each part, all of which have noise of this `variance`; one row adds a vector of norm `longest` to a part.
    """

    on_grid: bool = True  # whether entries are multiples of one step, so that their sum is exact
    widths: Mapping[str, int] = {}
    variance: float = 0.0
    longest: float = 1.0
    most: float | None = None  # of an entry of a party, without noise, where a sum might wrap around

    def plausible(self, arrays: Arrays) -> Booleans:
        """Return which parties' responses, in range as they are, can be honest ones, (P,).

        Under secure aggregation only the fields that are not hidden are there.
        """
        return np.ones(len(next(iter(arrays.values()))), dtype=bool)

    def added(self, arrays: Arrays) -> Arrays:
        """Return what is added up of these responses, by default they themselves."""
        return arrays

    def bounded(self, arrays: Arrays) -> tuple[dict[str, Floats], Booleans]:
        """Return the parts, scaled where they are longer than honest ones, and whose were, (P,); by default none."""
        return {}, np.zeros(len(next(iter(arrays.values()))), dtype=bool)

    def joined(self, parts: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return fields from parts, or what is added to fields from what is added to parts; by default they are one."""
        return dict(parts)

    def spread(self, part: str, values: Floats, arrays: Arrays) -> Spread:
        """Return which responses may be clipped by their spread, by default none."""
        none = np.zeros(len(values), dtype=bool)
        return Spread(values[none], np.zeros(0), none)

    def counted(self, arrays: Arrays) -> dict[str, float]:
        """Return public numbers of these responses that are summed beside them; `noises` is how many carry noise."""
        return {"noises": float(len(next(iter(arrays.values()))))}

    def reachable(self, name: str, opened: Arrays, parties: int, wholes: float) -> tuple[float, float] | None:
        """Return the least and the largest entry that a hidden total of so many honest `parties` can have.

        `opened` are the totals of fields that are not hidden; the whole noise is `wholes` times in the sum. None where
        no total is refused.
        """
        return None
