"""The worst pair of neighbours of questions about labels: one moves from one end of the declared range to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aggregator.contract.worst_case import PrivateWorstCase, Rows, Seen, Statistic
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.mechanisms.labels.mechanism import LabelMechanism
from federation.mechanisms.labels.unbiased_response import UnbiasedResponse
from federation.queries.labels import BagSumsQuestion, LabelSumsQuestion, PrivateLabelsQuestion, WeightedSumsQuestion

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
