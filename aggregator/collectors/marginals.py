"""Adds up the answers of all parties to one query of an exchange, and refuses what no honest party can say.

What honest counts of an exchange with a party's own noise reach: of errors around half the rows, and of rows.

The noisy counts of all parties together about one query of an exchange, where they share its noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from aggregator.collectors.collectors import SharedAnswers, SummedAnswers, require_reachable
from aggregator.collectors.robust_sums import BEYOND, BOUNDED, REACH, Changes, GatedSum, Range, Robustness
from aggregator.trial.plan import TrialPlan
from federation.contract.guarantee import Guarantee, Unit
from federation.contract.query import OFF, Submission
from federation.mechanisms.marginals.noise import MarginalNoise
from federation.mechanisms.marginals.shared_noise import SharedMarginalNoise
from federation.mechanisms.noise.reach import (
    entry_reach,
    gaussian_pair_tail,
    gaussian_tail,
    laplace_pair_tail,
    laplace_tail,
    norm_reach,
)
from federation.numerics.binning import Bins
from federation.numerics.rows import Booleans, Floats
from federation.queries.marginals import PUBLISHED, MarginalsQuestion
from federation.secure_aggregation.masks import require_room

_HALVES = 0.5  # what is scaled is rounded to these

Arrays = Mapping[str, Floats]


class MarginalRange:
    """Of answers to one query, by parties of at most `most` rows each.

    Where numbers of rows are public, `parts` is "surplus": errors less half the rows, whose entries lie within half the
    rows of a bin without noise. Elsewhere errors and correct rows have independent noise, and parts are "surplus",
    errors less correct rows, and "rows", both together: in each the noise of an entry is the sum of two. A party's rows
    are in one bin of each feature, so that neither part is longer than `most` times the root of the number of features.
    """

    def __init__(self, question: MarginalsQuestion, most: int) -> None:
        noise = question.mechanism()
        assert isinstance(noise, MarginalNoise), "published rates have no noise beyond their range"
        self._public = question.protect == Unit.LABEL.value
        self._paired = not self._public and question.asks == "errors"
        surplus = ("surplus",) if question.asks == "errors" else ()
        self.parts: tuple[str, ...] = (*surplus, *(() if self._public else ("rows",)))  # rows are public, or have noise
        beyond = BEYOND / 2 / max(len(self.parts), 1)
        self._entry, self._norm = _reaches(noise, question.bins.total, beyond, paired=self._paired)
        self._most, self._spread, self._starts = most, math.sqrt(len(question.bins.sizes)), question.bins.starts
        self.variance = noise.deviation**2 * (2 if self._paired else 1)

    def bounded(self, arrays: Arrays) -> tuple[dict[str, Floats], Booleans, Floats]:
        """The parts of answers (P, K) within the range, whose were not, (P,), and how many rows each party has.

        The latter are public, or else taken to be equal.
        """
        rows, changed = arrays["rows"], np.zeros(len(arrays["rows"]), dtype=bool)
        held = np.full(len(rows), float(self._most))
        honest, found = Range(held + self._entry, held * self._spread + self._norm), {"rows": rows}
        if self._paired:
            found["surplus"] = 2 * arrays["errors"] - rows
        elif self._public and "errors" in arrays:
            held = np.add.reduceat(rows, self._starts, axis=1)[:, 0]
            found["surplus"] = arrays["errors"] - rows / 2
            honest = Range(rows.max(axis=1) / 2 + self._entry, np.linalg.norm(rows, axis=1) / 2 + self._norm)
        for part in self.parts:
            kept, scaled = honest.bounded(found[part][:, None], _HALVES)
            found[part], changed = kept[:, 0], changed | scaled
        return found, changed, np.maximum(held, 1.0)

    def arrays(self, parts: Arrays) -> dict[str, Floats]:
        """The answers' fields of these parts, or what is added to them."""
        if self._public:
            return {} if "surplus" not in parts else {"errors": parts["surplus"] + parts.get("rows", 0.0) / 2}
        if self._paired:
            return {"errors": (parts["surplus"] + parts["rows"]) / 2, "rows": parts["rows"]}
        return {"rows": parts["rows"]}


@lru_cache  # all queries of an exchange have the same
def _reaches(noise: MarginalNoise, cells: int, beyond: float, *, paired: bool) -> tuple[float, float]:
    """How far noise takes one of so many cells, or sums of two, and how far their norm."""
    single, pair = (gaussian_tail, gaussian_pair_tail) if noise.delta else (laplace_tail, laplace_pair_tail)
    tail = (pair if paired else single)(noise.scale)
    return entry_reach(tail, beyond / cells), norm_reach(tail, cells, beyond)


_GRID = 2.0**20  # published rates times rows are whole multiples of its inverse: their sum is the same in any order


class MarginalAnswers(SummedAnswers):
    """Numbers of errors and of rows per bin, summed over parties of at most `most` rows each.

    Noise takes a number of errors, or of correct rows, 40 standard deviations further than an honest one at most.
    Numbers of rows without noise are those of the same rows in the bins of every feature. An answer within that, but
    longer than an honest one is by its noise, is scaled to what that reaches (`MarginalRange`), and where answers are
    few enough to be kept, they are clipped along directions in which they spread more than noise. `robustness` says
    otherwise; exact answers and published rates, which are clipped anyway, are summed as they come.
    """

    question: MarginalsQuestion

    def __init__(
        self,
        question: MarginalsQuestion,
        parties: int,
        most: int,
        promise: Guarantee | None,
        robustness: Robustness = BOUNDED,
    ) -> None:
        super().__init__(question, parties, promise)
        noise = question.noise.kind
        self._published = noise == PUBLISHED
        self._most = most
        self._reach = 0.0 if noise == OFF else REACH * question.mechanism().deviation
        self._exact_rows = noise == OFF or question.protect == Unit.LABEL.value
        self.recipe, self._alike, self._scaled = (robustness,), robustness.alike, 0
        bounded = robustness.bounded and noise not in (OFF, PUBLISHED)
        self._range = MarginalRange(question, most) if bounded else None
        parts = () if self._range is None else self._range.parts
        self._gates = {part: GatedSum(parties, 1, question.bins.total) for part in parts}
        self._corrected: tuple[dict[str, np.ndarray], int] | None = None

    @property
    def errors(self) -> np.ndarray | None:
        """Noisy errors per bin (K,); None where only rows were asked for. Published: rates times numbers of rows."""
        if self.question.asks == "rows":
            return None
        return self.total("rates" if self._published else "errors")

    @property
    def rows(self) -> np.ndarray:
        """Rows per bin (K,), noisy where rows are protected."""
        return self.total("rows")

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered, or what is left of their answers."""
        moved, clipped = self._correction
        return super().total(name) + moved[name] if clipped and name in moved else super().total(name)

    @property
    def changes(self) -> Changes | None:
        """How many answers were scaled and clipped; None where they are summed as they come."""
        return None if self._range is None else Changes(self.answered, self._scaled, self._correction[1])

    @property
    def _correction(self) -> tuple[dict[str, np.ndarray], int]:
        """What clipping adds to the totals, and of how many parties something was clipped."""
        if self._range is None:
            return {}, 0
        if self._corrected is None:
            longest = math.sqrt(len(self.question.bins.sizes))  # a row is in one bin of each feature
            moved, clipped = {}, np.zeros(0, dtype=np.int64)
            for part, gate in self._gates.items():
                shift, ids = gate.correction(self._range.variance, longest, alike=self._alike)
                moved[part], clipped = shift[0], np.union1d(clipped, ids)
            self._corrected = self._range.arrays(moved), len(clipped)
        return self._corrected

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        if "rates" in arrays:
            arrays = {**arrays, "rates": np.rint(arrays["rates"] * arrays["rows"] * _GRID) / _GRID}
        if self._range is not None:
            kept, scaled, rows = self._range.bounded(arrays)
            self._scaled += int(np.count_nonzero(scaled))
            for part, gate in self._gates.items():
                gate.keep(parties, kept[part][:, None], rows)
            arrays, self._corrected = {**arrays, **self._range.arrays(kept)}, None
        super()._keep(parties, arrays)

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        rows, errors = arrays["rows"], arrays.get("errors")
        fine = np.ones(len(rows), dtype=bool)
        if self._exact_rows:
            fine &= possible_rows(self.question.bins, rows, self._most)
        elif errors is None:
            fine &= self._possible(rows, self._reach)
        if errors is not None:
            fine &= self._possible(errors, self._reach) & self._possible(rows - errors, self._reach)
        return fine

    def _possible(self, counts: np.ndarray, reach: float) -> np.ndarray:
        """Which parties' whole numbers (P, K) lie within `reach` of numbers of rows, (P,)."""
        return _possible(counts, self._most, reach)


def possible_rows(bins: Bins, rows: np.ndarray, most: int) -> np.ndarray:
    """Which parties' exact numbers of rows per bin (P, K) are of the same rows in every feature, `most` at most."""
    totals = np.add.reduceat(rows, bins.starts, axis=1)
    return np.asarray(((totals == totals[:, :1]) & (totals <= most)).all(axis=1) & _possible(rows, most, 0.0))


def _possible(counts: np.ndarray, most: int, reach: float) -> np.ndarray:
    whole = counts == np.floor(counts)
    return np.asarray((whole & (counts >= -reach) & (counts <= most + reach)).all(axis=1))


class SharedMarginals(SharedAnswers):
    """As `MarginalAnswers`, but nobody sees, checks or scales an answer; a total beyond honest ones is refused.

    Numbers of rows that are public, as where labels are protected, are checked of each party of at most `most` rows.
    Raises `InputError`, before anybody is asked, where honest counts might wrap around modulo 2^64.
    """

    question: MarginalsQuestion

    def __init__(self, question: MarginalsQuestion, plan: TrialPlan, most: int) -> None:
        super().__init__(question, plan)
        noise = question.mechanism()
        assert isinstance(noise, SharedMarginalNoise), "parties share it"
        self._most, self._deviation = most, noise.deviation
        require_room(most / noise.step, noise.additive, noise.contributors, plan.terms.parties, self.numbers)

    @property
    def errors(self) -> np.ndarray | None:
        """Noisy errors per bin (K,); None where only rows were asked for."""
        return self.total("errors") if self.question.asks == "errors" else None

    @property
    def rows(self) -> np.ndarray:
        """Rows per bin (K,), noisy where rows are protected."""
        return self.total("rows")

    @property
    def changes(self) -> None:
        """No answer is scaled or clipped."""

    def total(self, name: str) -> np.ndarray:
        """As `SharedAnswers.total`. Raises `FederationError` for counts that no honest parties have."""
        found: np.ndarray = super().total(name)
        reach = REACH * math.sqrt(2 * self.wholes) * self._deviation  # rows are errors and corrects, with noise of each
        require_reachable(found, -reach, self.answered * self._most + reach, self.answered)
        return found

    def _impossible(self, submission: Submission) -> np.ndarray:
        bad = super()._impossible(submission)
        if "rows" in self._open:
            bad |= ~possible_rows(self.question.bins, submission.arrays["rows"], self._most)
        return bad
