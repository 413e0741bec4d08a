"""Audits a variant for real labels end to end: holdings in, what a party sends out, on the worst pair of neighbours.

The aggregator's own code asks and the party's own code answers; only the holdings are made up here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from federation.guarantee import NoGuarantee
from federation.label_messages import BagSumsQuestion, LabelSumsQuestion, PrivateLabelsQuestion, WeightedSumsQuestion
from federation.label_releases import LabelQuestion, guarantee_of, sums_mechanism
from federation.messages import Submission
from federation.privacy.audit import AuditResult
from federation.reference import Reference
from federation.registry import questions
from parties.holdings import Cohort, Holdings
from scenarios.audits.audit_bags import SEED, asked_in, audit_pair, world_of
from scenarios.data.catalogue import entry, load
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import Variant, expand
from scenarios.simulated.simulation import PublicRows

RUNS = 20_000
RUNS_OF_SUMS = 200_000  # whose noise is drawn for all runs at once
RUNS_OF_BINS = 4_000  # where every release searches for bins

_CHANGED = 4  # so many labels with random weights move a sum as one does whose range is twice as wide
_COLUMNS = 2  # the first is 1 in rows whose labels change, the second in all others


@dataclass(frozen=True)
class LabelSetting:
    """What the audits of a scenario share: the claim asked for and the declared range of the labels."""

    epsilon: float
    delta: float
    label_range: tuple[float, float]

    described = "one party, 2 features, one label moves from one end of its declared range to the other"

    @classmethod
    def of(cls, scenario: Scenario, epsilon: float) -> LabelSetting:
        """The setting of the first point of a scenario's sweeps. Raises `InputError` for a range that nobody gave."""
        data = expand(scenario)[0].scenario.data
        known = entry(data.source)
        documented = None if known is None else known.label_range
        label_range = data.range or documented or load(data.source, label=data.label).label_range
        assert label_range is not None  # or it could not be loaded
        return cls(epsilon, scenario.privacy.delta, label_range)


def public_rows() -> PublicRows:
    """One row of each kind."""
    return PublicRows(np.eye(_COLUMNS), ("changed", "other"), ())


class LabelNeighbour:
    """Parties that hold the same: `changed` rows (1, 0), whose labels are `high` or, not `moved`, `low`, and others.

    Those are (0, 1) with the label `low`, `rows` in all (`parties.holdings.Provider`). So the sums of rows show the
    weights of those that change, and other labels leave no residual that could hide them.
    """

    def __init__(self, moved: bool, changed: int, rows: int, low: float, high: float) -> None:
        first = np.arange(rows) < changed
        self._rows = np.column_stack([first, ~first]).astype(np.float64)
        self._labels = np.where(first & moved, high, low)

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        return Holdings(party, self._rows, self._labels)

    def evaluation(self) -> None:
        """Nothing to evaluate on."""
        return None


@dataclass(frozen=True, eq=False)
class LabelPair:
    """Two neighbours and the question that both answer; `changed` labels differ, one being what a guarantee covers."""

    question: LabelQuestion
    changed: int

    def provider(self, side: int) -> Reference:
        """Who holds what on one side."""
        low, high = self.question.rows.label_range
        arguments = {"changed": self.changed, "rows": self.question.rows.most, "low": low, "high": high}
        return Reference("scenarios.audits.audit_labels:LabelNeighbour", {**arguments, "moved": bool(side)})

    def answer(self, side: int, purpose: str, runs: int) -> Submission:
        """What one side sends in `runs` independent releases, as if of one party.

        Bags are the same for all draws of a party. Where it matters which row is where in them, each release comes
        from a party of its own.
        """
        parties = runs if self._placed else 1
        noising = replace(self.question.noising, draws=runs // parties, purpose=f"audit|{purpose}|{side}")
        asked = replace(self.question, noising=noising)
        respond = questions()[asked.kind].load()
        submission: Submission = respond(Cohort(self.provider(side).to_json(), 0, parties, SEED), asked)
        if parties == 1:
            return submission
        arrays = {
            name: array[None] if name == "rows" else array[:1] if name == "formed" else array.swapaxes(0, 1)
            for name, array in submission.arrays.items()
        }
        return replace(submission, parties=submission.parties[:1], arrays=arrays)

    @property
    def _placed(self) -> bool:
        """Whether rows of a bag fare differently: some with noise on their labels, some without."""
        if not isinstance(self.question, BagSumsQuestion):
            return False
        design = self.question.design
        every = design.per_bag == design.size or design.noisy == design.records
        return not every and not (design.weights == "signs" and design.per_bag)

    def statistic(self, mechanism: str) -> Callable[[Mapping[str, np.ndarray]], np.ndarray]:
        """Of an answer's arrays without the party axis: one number per draw (draws,), by which sides are told apart.

        The log likelihood ratio up to scale; of `estimated_bins`, what its answers alone tell.
        """
        question = self.question
        if isinstance(question, PrivateLabelsQuestion):
            return lambda sent: self._of_labels(sent["labels"][:, : self.changed], mechanism)
        if isinstance(question, LabelSumsQuestion):
            return lambda sent: self._of_moments(sent["moment"], question, mechanism)
        if isinstance(question, WeightedSumsQuestion):
            return lambda sent: self._of_sums(
                sent["row_sums"][..., 0], sent["row_sums"][..., 1], sent["label_sums"], np.ones(1), mechanism
            )
        return lambda sent: self._of_bags(sent, question, mechanism)

    def _of_labels(self, labels: np.ndarray, mechanism: str) -> np.ndarray:
        low, high = self.question.rows.label_range
        if mechanism == "label_laplace":
            labels = np.abs(labels - low) - np.abs(labels - high)
        return np.asarray(labels.sum(axis=1))

    def _of_moments(self, moments: np.ndarray, question: LabelSumsQuestion, mechanism: str) -> np.ndarray:
        """In the coordinates of the noise, by the distances to both centres."""
        held = [self.provider(side).call().holdings(0) for side in (0, 1)]
        transform = sums_mechanism(question, held[0].rows).shape.transform
        here, there = (
            np.linalg.norm((moments - side.rows.T @ side.labels) @ transform, axis=1) for side in held
        )  # fmt: skip
        return np.asarray(here**2 - there**2 if mechanism.endswith("discrete_gaussian") else here - there)

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
        low, high = self.question.rows.label_range
        beyond = sums - low * (changed + other)
        moved = (high - low) * changed
        if mechanism == "laplace_bag_sums":
            return np.asarray((np.abs(beyond) - np.abs(beyond - moved)).sum(axis=1))
        return np.asarray((moved * (beyond - moved / 2) / variance).sum(axis=1))


def label_question_of(variant: Variant, setting: LabelSetting) -> LabelQuestion:
    """What the aggregator asks of a party for this variant, of as few rows as fill as few bags as are needed."""
    options = dict(variant.options)
    rows = _CHANGED
    if "size" in options:
        options["bags"] = None
        rows = options["size"] * -(-_CHANGED // options["size"])
    plan = world_of(
        replace(variant, options=options),
        setting.epsilon,
        setting.delta,
        public="scenarios.audits.audit_labels:public_rows",
        label_range=setting.label_range,
        largest_bag=rows,
        smallest_bag=rows,
    )
    [question] = asked_in(plan)
    assert isinstance(question, LabelQuestion)
    return question


def audit_labels(
    variant: Variant, setting: LabelSetting, *, runs: int | None, confidence: float
) -> tuple[AuditResult, AuditResult] | None:
    """The audits of one variant: of its claim, and of a twin with half the noise for what is protected.

    In the twin more labels change: two, or with random weights four. None where a given noise is too little for any
    promise. Raises `InputError` where no noise serves.
    """
    question = label_question_of(variant, setting)
    if isinstance(guarantee_of(question), NoGuarantee):
        return None
    usual = RUNS_OF_SUMS if isinstance(question, LabelSumsQuestion) else RUNS
    if question.noising.mechanism["noise"] == "estimated_bins":
        usual = RUNS_OF_BINS
    weighted = isinstance(question, BagSumsQuestion | WeightedSumsQuestion)
    one, twin = (
        audit_pair(LabelPair(question, changed), runs=runs or usual, confidence=confidence)
        for changed in (1, _CHANGED if weighted else 2)
    )
    return one, twin
