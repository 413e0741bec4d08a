"""Worst pairs of neighbours for audits of regressions on private labels or rows.

- `WorstLabels` is for queries about labels: one label moves from one end of the declared range to the other.
- `WorstSecretSums` and `WorstBagSums` are the same for sums over bags.
- `WorstRows` is for X'X, X'y and y'y over private rows: a row as long as any turns into its opposite.
- `WorstLabelTotals` is for one X'y over public rows: the label changes of a row that is as long as any weighs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aggregator.contract import worst_case
from aggregator.contract.worst_case import ROWS, Exact, PrivateWorstCase, Rows, Seen, Statistic, SummedWorstCase
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.queries.labels import BagSumsQuestion
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


@dataclass(frozen=True, eq=False)
class WorstSecretSums(WorstLabels):
    """As `WorstLabels`, of sums over bags with secret weights, which those of the rows show."""

    def statistic(self, question: PrivateQuestion, exact: Exact) -> Statistic:
        """The log likelihood ratio up to scale."""

        def ratio(seen: Seen) -> np.ndarray:
            sides = self._exact_sums(*np.moveaxis(seen["row_sums"], -1, 0))
            return np.asarray(question.mechanism().log_ratio(seen["label_sums"], *sides))

        return ratio

    def _exact_sums(self, changed: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of labels (runs, m) here and there, from the summed weights of rows that change and of others."""
        here = self.low * (changed + others)
        return here, here + (self.high - self.low) * changed


@dataclass(frozen=True, eq=False)
class WorstBagSums(WorstSecretSums):
    """As `WorstLabels`, of sums over bags whose rows and weights are published."""

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """One, or one for each run: bags are the same for all draws of a party, and it matters which row is where."""
        return runs if _asked(question).design.rows_differ else 1

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """All runs of one party, or one of each."""
        return [replace(question, draws=1 if _asked(question).design.rows_differ else runs)]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """Draw by draw of one party, or party by party."""
        [sent] = submissions
        if len(sent.parties) == 1:
            return {name: array[0] for name, array in sent.arrays.items()}
        return {
            name: array[0] if name == "rows" else array[:, 0] for name, array in sent.arrays.items() if array.ndim > 1
        }

    def statistic(self, question: PrivateQuestion, exact: Exact) -> Statistic:
        """The log likelihood ratio up to scale, with the mean share of noisy rows in a bag where these are drawn."""
        design, noise = _asked(question).design, question.mechanism()
        share = design.noisy / design.taking_part(design.bags)
        noisy = np.arange(design.size) < design.per_bag if design.per_bag else np.full(design.size, share)

        def ratio(seen: Seen) -> np.ndarray:
            weights = seen["weights"]
            sides = self._exact_sums(*(np.einsum("...mk,...mk->...m", weights, seen["rows"][..., i]) for i in (0, 1)))
            return np.asarray(noise.log_ratio(seen["sums"], *sides, weights**2 @ noisy))

        return ratio


def worst_labels(
    units: int, public: PublicNumbers, runs: int, *, size: int | None = None, of: type[WorstLabels] = WorstLabels
) -> WorstLabels:
    """Of a protocol for real labels; `size` is that of its bags, whose random weights hide a label less than half.

    There are as few rows as fill as few bags as are needed.
    """
    low, high = public.label_range or (0.0, 1.0)
    rows = CHANGED if size is None else size * -(-CHANGED // size)
    return of(
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


def _asked(question: PrivateQuestion) -> BagSumsQuestion:
    if not isinstance(question, BagSumsQuestion):
        raise InputError(f"the worst case of published bags is for sums over them, got '{question.kind}'")
    return question


LABEL_CHANGE = "one label moves from one end of its declared range to the other"


@dataclass(frozen=True, eq=False)
class WorstRows(SummedWorstCase[RowMomentsQuestion]):
    """Parties that hold the row 0 several times with labels in the middle of the range, and `changed` far rows.

    These are at the first party, with the largest label: all far below here, and far above there. Behind the map they
    are opposite rows of norm 1, which move X'y as far as can be and X'X not at all.
    """

    asks, about = RowMomentsQuestion, "rows is for X'X, X'y and y'y"

    low: float = 0.0
    high: float = 1.0

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        count, columns = self.added(question), self.own(question).rows.feature_map.columns
        others = np.full(ROWS, (self.low + self.high) / 2)
        first = np.arange(ROWS) < self.changed
        far = np.where(first, FAR if there else -FAR, 0.0)[:, None] * np.eye(1, columns)
        changed = Rows(far, np.where(first, self.high, others))
        return (changed, *(Rows(np.zeros((ROWS, columns)), others) for _ in range(count - 1)))


@dataclass(frozen=True, eq=False)
class WorstLabelTotals(WorstRows):
    """As `WorstRows`, but far rows are the same on both sides: their labels are the lowest here, the highest there."""

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed."""
        first, *others = super().side(True, question, runs)
        changed = np.arange(ROWS) < self.changed
        return (Rows(first.rows, np.where(changed, self.high if there else self.low, first.labels)), *others)


def worst_label_totals(units: int, public: PublicNumbers) -> WorstLabelTotals:
    """Of sums of shares; for two units half of the shares are missing."""
    known = vars(worst_rows(units, public, shared=True))
    return WorstLabelTotals(**{**known, "described": worst_case.in_one_sum(LABEL_CHANGE)})


ROW_RUNS = 200_000
CHANGE = "one row turns into its opposite with the same label"

FAR = 1e6  # so far from the public rows a row is as long as any, and the constant behind it nothing
_MANY = 10**9  # rows, as it is said: of so many X'X is asked for, too
_PUBLIC = np.linspace(-1.0, 1.0, 20)[:, None]


def worst_rows(units: int, public: PublicNumbers, *, shared: bool) -> WorstRows:
    """Of a party's own sums, or of sums of shares; for two units two rows change, or half of the shares are missing."""
    low, high = public.label_range or (0.0, 1.0)
    return WorstRows(
        worst_case.in_one_sum(CHANGE, shared),
        _PUBLIC,
        ROW_RUNS,
        world={
            "label_range": (low, high),
            "classes": (),
            "parties": worst_case.PARTIES if shared else 1,
            "quorum": worst_case.QUORUM,
            "largest_bag": ROWS,
            "rows": _MANY,
        },
        units=units,
        shared=shared,
        low=low,
        high=high,
    )
