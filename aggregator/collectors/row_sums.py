"""Adds up what parties say of all their rows in one noisy sum, and refuses what no honest party can say.

The noisy sum over all parties of what they say of all their rows, where they share its noise.

The noisy sum over all parties of public rows times private labels, where they share its noise.

What is asked in one noisy sum over all rows of a party: who makes its noise, what it promises, who collects it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from aggregator.collectors.collectors import CHECKED, SharedAnswers, SummedAnswers, require_reachable
from aggregator.collectors.robust_sums import BOUNDED, REACH, ROUNDING, Changes, GatedSum, Robustness, SumRange
from aggregator.contract.ledger import LOCAL, local_guarantee, summed
from aggregator.contract.session import Asked
from aggregator.trial.plan import TrialPlan
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.query import Submission
from federation.queries.row_sums import SummedQuestion
from federation.queries.votes import Training


class MomentTotals(ABC):
    """A noisy sum over all parties and their number of rows, however it was added up, and what follows from these."""

    @abstractmethod
    def total(self, name: str) -> np.ndarray:
        """`size` or `sums`, summed over the parties that answered."""

    @property
    @abstractmethod
    def summed_variance(self) -> float:
        """Variance of the noise on sums in each entry of the sum over all parties that answered."""

    @property
    @abstractmethod
    def told(self) -> tuple[str, ...]:
        """What was verified of the answers, and what was done to them, in public words."""

    @property
    def rows(self) -> float:
        """Rows of the parties that answered."""
        return float(self.total("size"))

    @property
    def moments(self) -> np.ndarray:
        """Means over all rows of what is summed, as estimates of the mean of y x, one per noise draw, (draws, d)."""
        return self.total("sums") / self.rows

    @property
    def noise_variance(self) -> float:
        """Variance in each entry of an estimate of noise on sums: of all shares, or of all parties' own noise."""
        return self.summed_variance / self.rows**2

    @property
    def response_variance(self) -> float:
        """What randomised response adds: times the mean of x x' it is the covariance of the error of an estimate."""
        return 0.0


class MomentAnswers(SummedAnswers, MomentTotals):
    """The sum over parties of their noisy sums, as of y x, and of the numbers of rows.

    A sum over n rows which add a vector of norm 1 each (or of the question's `longest`) has entries of at most n, and
    noise takes them 40 standard deviations further at most; with randomised response they are at most n times a
    released label. Which of the two a party answers by follows from its number of rows, and whoever says another is
    refused. An answer within that, but longer than an honest one is by its noise, is scaled to what that reaches.
    Where answers are few enough to be kept, those with noise on sums are clipped along directions in which they spread
    more than noise. `robustness` says otherwise; answers without noise are summed as they come.
    """

    question: SummedQuestion

    def __init__(
        self, question: SummedQuestion, parties: int, promise: Guarantee | None, robustness: Robustness = BOUNDED
    ) -> None:
        super().__init__(question, parties, promise)
        noise, self._response = question.sum_noise(), question.label_noise()
        self._variance = 0.0 if noise is None else noise.variance()
        self._summing, self._responding_rows = 0, 0.0
        self.recipe, self._alike = (robustness,), robustness.alike
        bounded = robustness.bounded and question.noise.aims
        self._range = SumRange(question) if bounded else None
        self._gate = GatedSum(parties if bounded else 0, question.draws, question.numbers)
        self._scaled = 0
        self._gated: tuple[np.ndarray, int] | None = None

    def total(self, name: str) -> np.ndarray:
        """One field, summed over the parties that answered, of sums what is left of them."""
        whole = super().total(name)
        return whole + self._correction[0] if name == "sums" and self._correction[1] else whole

    @property
    def told(self) -> tuple[str, ...]:
        """That answers were checked, and how many were scaled and clipped."""
        return (CHECKED, *Changes.of([self.changes]))

    @property
    def changes(self) -> Changes | None:
        """How many answers were scaled and clipped; None where they are summed as they come."""
        return None if self._range is None else Changes(self.answered, self._scaled, self._correction[1])

    @property
    def _correction(self) -> tuple[np.ndarray, int]:
        """What clipping adds to the sums, and of how many parties something was clipped."""
        if self._gated is None:
            moved, clipped = self._gate.correction(self._variance, self.question.longest, alike=self._alike)
            self._gated = moved, len(clipped)
        return self._gated

    @property
    def summed_variance(self) -> float:
        """Of the parties that answered with noise on their sums."""
        return self._summing * self._variance

    @property
    def response_variance(self) -> float:
        """Of the parties that answered by randomised response."""
        return self._responding_rows * self._response.label_variance / self.rows**2 if self._response else 0.0

    def _keep(self, parties: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        sizes = arrays["size"]
        responding = self.question.responding(sizes)
        if self._range is not None:
            sums, scaled = self._range.of(sizes).bounded(arrays["sums"], self._range.step)
            arrays = {**arrays, "sums": sums}
            self._scaled += int(np.count_nonzero(scaled))
            self._gate.keep(parties[~responding], sums[~responding], sizes[~responding])
            self._gated = None
        super()._keep(parties, arrays)
        self._summing += int(np.count_nonzero(~responding))
        self._responding_rows += float(sizes[responding].sum())

    def _well_formed(self, arrays: dict[str, np.ndarray]) -> np.ndarray:
        sizes = arrays["size"]
        responding = self.question.responding(sizes)
        reach, spread = 1.0 if self._response is None else self._response.reach, REACH * np.sqrt(self._variance)
        longest = self.question.longest * np.where(responding, reach, 1.0)
        largest = sizes * (1 + ROUNDING) * longest + np.where(responding, 0.0, spread)
        inside = (np.abs(arrays["sums"]) <= largest[:, None, None]).all(axis=(1, 2))
        agreed = arrays["response"] == responding if "response" in arrays else True
        return np.asarray(inside & agreed & (sizes == np.floor(sizes)))


class SharedMoments(SharedAnswers, MomentTotals):
    """As `MomentAnswers`, but nobody sees, checks or scales an answer; a total that honest ones cannot have is refused.

    Only the total can be looked at, which is private already: its entries are at most all rows times `longest`, and
    the noise of all shares goes 40 standard deviations further.
    """

    question: SummedQuestion

    def __init__(self, question: SummedQuestion, plan: TrialPlan) -> None:
        super().__init__(question, plan)
        self._variance = question.mechanism().variance()

    @property
    def summed_variance(self) -> float:
        """Of all shares: more come than are needed for the whole noise, as a rule."""
        return self.wholes * self._variance

    def total(self, name: str) -> np.ndarray:
        """As `SharedAnswers.total`. Raises `FederationError` for a total that no honest parties have."""
        found: np.ndarray = super().total(name)
        if name == "sums":
            largest = self.rows * self.question.longest * (1 + ROUNDING) + REACH * math.sqrt(self.summed_variance)
            require_reachable(found, -largest, largest, self.answered)
        return found

    def _impossible(self, submission: Submission) -> np.ndarray:
        sizes = submission.arrays["size"]
        return np.asarray(super()._impossible(submission) | (sizes != np.floor(sizes)))


_ROUNDED = 2.0**-25  # what parties may have rounded entries of public sums by


class SharedLabelSums(SharedMoments):
    """As `SharedMoments`; what each party says openly of its public rows is checked: X'X is one, of weights up to 1."""

    @property
    def weight(self) -> float:
        """Rows of the parties that answered, by their weights."""
        return float(self.total("weight"))

    def _impossible(self, submission: Submission) -> np.ndarray:
        bad, sent = super()._impossible(submission), submission.arrays
        size, weight = sent["size"] * (1 + ROUNDING), sent["weight"]
        bad |= (weight > size) | ~(np.linalg.norm(sent["row_sum"], axis=1) <= size)
        gram = sent["gram"]
        bad |= (gram != gram.swapaxes(1, 2)).any(axis=(1, 2))
        fine = np.flatnonzero(~bad)
        least = np.linalg.eigvalsh(gram[fine])[:, 0]
        trace = np.trace(gram[fine], axis1=1, axis2=2)
        bad[fine] = least < -gram.shape[1] * (_ROUNDED + ROUNDING * trace)
        return bad


def asked_moments(
    question: SummedQuestion, training: Training, plan: TrialPlan
) -> tuple[Asked, Guarantee | NoGuarantee]:
    """The question with its collector, and what answers promise: each by itself, or their sum where noise is shared.

    Raises `InputError` for numbers that no noise works with, and where no masked sum of the parties can be.
    """
    whose = summed(plan, question.mechanism().additive) if question.shared else LOCAL
    promised = local_guarantee(plan, question.promise(), whose)
    collector: MomentAnswers | SharedMoments
    if question.shared:
        collector = SharedMoments(question, plan)
    else:
        promise = promised if isinstance(promised, Guarantee) else None
        collector = MomentAnswers(question, plan.terms.parties, promise, Robustness(plan.task.robust, plan.task.alike))
    return Asked(question, training, collector), promised
