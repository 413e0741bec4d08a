"""The worst pair of neighbours of questions about labels: one moves from one end of the declared range to the other.

The worst pair of neighbours of X'X, X'y and y'y over private rows: a row as long as any turns into its opposite.

The worst pair of neighbours of one X'y over public rows: the label of a row that is as long as any weighs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aggregator.contract.worst_case import (
    PARTIES,
    QUORUM,
    ROWS,
    PrivateWorstCase,
    Rows,
    Seen,
    Statistic,
    SummedWorstCase,
    in_one_sum,
)
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.mechanisms.labels.mechanism import LabelMechanism
from federation.mechanisms.labels.unbiased_response import UnbiasedResponse
from federation.numerics.rows import within_norm
from federation.queries.labels import BagSumsQuestion, LabelSumsQuestion, PrivateLabelsQuestion, WeightedSumsQuestion
from federation.queries.row_sums import RowMomentsQuestion

CHANGED = 4  # so many labels with random weights move a sum as one does whose range is twice as wide
DESCRIBED = "one party, 2 features, one label moves from one end of its declared range to the other"
RUNS = 20_000
RUNS_OF_SUMS = 200_000  # whose noise is drawn for all runs at once
RUNS_OF_BINS = 4_000  # where every release searches for bins
TWO_COLUMNS = np.eye(2)  # the first is 1 in rows whose labels change, the second in all others


@dataclass(frozen=True, eq=False)
class WorstLabels(PrivateWorstCase):
    """Rows (1, 0), `changed` of them, whose labels are the range's low end here and its high end there, and others.

    Those are (0, 1) with the low label, `rows` in all. So sums of rows show the weights of those that change, and other
    labels leave no residual that could hide them.
    """

    changed: int = 1
    rows: int = CHANGED
    low: float = 0.0
    high: float = 1.0

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """The rows and labels of the one party on this side."""
        first = np.arange(self.rows) < self.changed
        return (Rows(np.column_stack([first, ~first]).astype(float), np.where(first & there, self.high, self.low)),)

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """One, or one for each run: bags are the same for all draws of a party, and it matters which row is where."""
        return runs if _placed(question) else 1

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """All runs of one party, or one of each."""
        return [replace(question, draws=1 if _placed(question) else runs)]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """Draw by draw of one party, or party by party."""
        [sent] = submissions
        if len(sent.parties) == 1:
            return {name: array[0] for name, array in sent.arrays.items()}
        return {
            name: array[0] if name == "rows" else array[:, 0] for name, array in sent.arrays.items() if array.ndim > 1
        }

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale; of `estimated_bins`, what its answers alone tell."""
        promised = question.promise()
        name = promised.mechanism if isinstance(promised, Guarantee) else ""
        if isinstance(question, PrivateLabelsQuestion):
            mechanism = question.mechanism() if name else None
            return lambda sent: self._of_labels(sent["labels"][:, : self.changed], mechanism)
        if isinstance(question, LabelSumsQuestion):
            return lambda sent: self._of_moments(sent["moment"], question, name)
        if isinstance(question, WeightedSumsQuestion):
            return lambda sent: self._of_sums(
                sent["row_sums"][..., 0], sent["row_sums"][..., 1], sent["label_sums"], np.ones(1), name
            )
        if isinstance(question, BagSumsQuestion):
            return lambda sent: self._of_bags(sent, question, name)
        raise InputError(f"the worst case of labels is for questions about real labels, got '{question.kind}'")

    def _of_labels(self, labels: np.ndarray, mechanism: LabelMechanism | None) -> np.ndarray:
        if isinstance(mechanism, UnbiasedResponse):
            labels = mechanism.log_ratios(labels)
        elif mechanism is not None and mechanism.name == "label_laplace":
            labels = np.abs(labels - self.low) - np.abs(labels - self.high)
        return np.asarray(labels.sum(axis=1))

    def _of_moments(self, moments: np.ndarray, question: LabelSumsQuestion, mechanism: str) -> np.ndarray:
        """In the coordinates of the noise, by the distances to both centres."""
        [here], [there] = self.side(False, question, 1), self.side(True, question, 1)
        held = [(question.rows.feature_map.transform(one.rows), one.labels) for one in (here, there)]
        transform = question.mechanism(held[0][0]).shape.transform
        near, far = (np.linalg.norm((moments - rows.T @ labels) @ transform, axis=1) for rows, labels in held)
        return np.asarray(near**2 - far**2 if mechanism.endswith("discrete_gaussian") else near - far)

    def _of_bags(self, sent: Mapping[str, np.ndarray], question: BagSumsQuestion, mechanism: str) -> np.ndarray:
        """By published weights; of noisy rows that are drawn, bags have the share that they have of all."""
        design, weights = question.design, sent["weights"]
        share = design.noisy / design.taking_part(design.bags)
        noisy = np.arange(design.size) < design.per_bag if design.per_bag else np.full(design.size, share)
        changed, other = (np.einsum("...mk,...mk->...m", weights, sent["rows"][..., column]) for column in (0, 1))
        return self._of_sums(changed, other, sent["sums"], weights**2 @ noisy, mechanism)

    def _of_sums(
        self, changed: np.ndarray, other: np.ndarray, sums: np.ndarray, variance: np.ndarray, mechanism: str
    ) -> np.ndarray:
        """From sums of weights (draws, m) of rows that change and of others, and relative variances of the noise."""
        beyond = sums - self.low * (changed + other)
        moved = (self.high - self.low) * changed
        if mechanism == "laplace_bag_sums":
            return np.asarray((np.abs(beyond) - np.abs(beyond - moved)).sum(axis=1))
        return np.asarray((moved * (beyond - moved / 2) / variance).sum(axis=1))


def worst_labels(units: int, public: PublicNumbers, runs: int, *, size: int | None = None) -> WorstLabels:
    """Of a protocol for real labels; `size` is that of its bags, whose random weights hide a label less than half.

    There are as few rows as fill as few bags as are needed.
    """
    low, high = public.label_range or (0.0, 1.0)
    rows = CHANGED if size is None else size * -(-CHANGED // size)
    return WorstLabels(
        DESCRIBED,
        TWO_COLUMNS,
        runs,
        world={"label_range": (low, high), "classes": (), "largest_bag": rows, "smallest_bag": rows},
        options={} if size is None else {"bags": None},
        changed=units if size is None or units == 1 else CHANGED,
        rows=rows,
        low=low,
        high=high,
    )


def _placed(question: PrivateQuestion) -> bool:
    """Whether rows of a bag fare differently: some with noise on their labels, some without."""
    if not isinstance(question, BagSumsQuestion):
        return False
    design = question.design
    every = design.per_bag == design.size or design.noisy == design.records
    return not every and not (design.weights == "signs" and bool(design.per_bag))


ROW_RUNS = 200_000
CHANGE = "one row turns into its opposite with the same label"

FAR = 1e6  # so far from the public rows a row is as long as any, and the constant behind it nothing
_MANY = 10**9  # rows, as it is said: of so many X'X is asked for, too
_PUBLIC = np.linspace(-1.0, 1.0, 20)[:, None]


@dataclass(frozen=True, eq=False)
class WorstRows(SummedWorstCase):
    """Parties that hold the row 0 several times with labels in the middle of the range, and `changed` far rows.

    These are at the first party, with the largest label: all far below here, and far above there. Behind the map they
    are opposite rows of norm 1, which move X'y as far as can be and X'X not at all.
    """

    low: float = 0.0
    high: float = 1.0

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        count, columns = self.added(asked_of(question)), asked_of(question).rows.feature_map.columns
        others = np.full(ROWS, (self.low + self.high) / 2)
        first = np.arange(ROWS) < self.changed
        far = np.where(first, FAR if there else -FAR, 0.0)[:, None] * np.eye(1, columns)
        changed = Rows(far, np.where(first, self.high, others))
        return (changed, *(Rows(np.zeros((ROWS, columns)), others) for _ in range(count - 1)))

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed."""
        return self.added(asked_of(question))

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """Their sum (runs, D)."""
        return {"sums": submissions[0].arrays["sums"].sum(axis=0)}

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale: by the squared distances to the sums without noise."""
        centres = [self._centre(there, asked_of(question)) for there in (False, True)]

        def ratio(seen: Seen) -> np.ndarray:
            near, far = (np.square(seen["sums"] - centre).sum(axis=1) for centre in centres)
            return np.asarray(far - near)

        return ratio

    def _centre(self, there: bool, question: RowMomentsQuestion) -> np.ndarray:
        if self.answered is not None:
            return np.asarray(self.answered(there)["sums"][0])
        return np.asarray(sum(self._exact(one, question) for one in self.side(there, question, 1)))

    def _exact(self, held: Rows, question: RowMomentsQuestion) -> np.ndarray:
        """The sums of one party without noise."""
        rows, labels = self._summed(held, question)
        return np.asarray(question.statistic.of(rows, labels))

    def _summed(self, held: Rows, question: RowMomentsQuestion) -> tuple[np.ndarray, np.ndarray]:
        """The rows and labels of one party as they enter its sums."""
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return within_norm(question.rows.feature_map.transform(held.rows)), (held.labels - middle) / half


def worst_rows(units: int, public: PublicNumbers, *, shared: bool) -> WorstRows:
    """Of a party's own sums, or of sums of shares; for two units two rows change, or half of the shares are missing."""
    low, high = public.label_range or (0.0, 1.0)
    parties = PARTIES if shared else 1
    return WorstRows(
        in_one_sum(CHANGE) if shared else f"one party, {CHANGE}",
        _PUBLIC,
        ROW_RUNS,
        world={
            "label_range": (low, high),
            "classes": (),
            "parties": parties,
            "quorum": QUORUM,
            "largest_bag": ROWS,
            "rows": _MANY,
        },
        changed=1 if shared else units,
        shared=shared,
        missing=shared and units > 1,
        low=low,
        high=high,
    )


def asked_of(question: Question) -> RowMomentsQuestion:
    """The question, as it is. Raises `InputError` for any other."""
    if not isinstance(question, RowMomentsQuestion):
        raise InputError(f"the worst case of rows is for X'X, X'y and y'y, got '{question.kind}'")
    return question


LABEL_CHANGE = "one label moves from one end of its declared range to the other"


@dataclass(frozen=True, eq=False)
class WorstLabelTotals(WorstRows):
    """As `WorstRows`, but far rows are the same on both sides: their labels are the lowest here, the highest there."""

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        first, *others = super().side(True, question, runs)
        changed = np.arange(ROWS) < self.changed
        return (Rows(first.rows, np.where(changed, self.high if there else self.low, first.labels)), *others)

    def statistic(self, question: PrivateQuestion) -> Statistic:
        """The log likelihood ratio up to scale: by the distances to the sums without noise, or by their squares."""
        asked = asked_of(question)
        power = 2 if asked.mechanism().name.endswith("gaussian") else 1
        here, there = (self._centre(side, asked) for side in (False, True))
        return lambda seen: np.subtract(
            *(np.linalg.norm(seen["sums"] - centre, axis=1) ** power for centre in (here, there))
        )

    def _exact(self, held: Rows, question: RowMomentsQuestion) -> np.ndarray:
        """X'y alone, to which a row that is cut adds what one of less weight does."""
        rows, labels = self._summed(held, question)
        return np.asarray(labels @ rows)


def worst_label_totals(units: int, public: PublicNumbers) -> WorstLabelTotals:
    """Of sums of shares; for two units half of the shares are missing."""
    known = vars(worst_rows(units, public, shared=True))
    return WorstLabelTotals(**{**known, "described": in_one_sum(LABEL_CHANGE)})
