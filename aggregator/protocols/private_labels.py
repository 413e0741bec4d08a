"""Protocol `private_labels`: every label is made private by itself, and any learner takes the rows with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.collectors.collectors import Kept
from aggregator.contract.expectations import Expected
from aggregator.contract.protocol import Promise, Refused, Rule, Sent, Trust, refuse_misplaced
from aggregator.regressions import models as risk
from aggregator.regressions.label_protocol import LabelProtocol
from aggregator.regressions.models import from_labels
from aggregator.regressions.worst_case import RUNS, RUNS_OF_BINS, WorstLabels, worst_labels
from aggregator.releases.models import Described
from aggregator.trial.plan import PublicNumbers, product
from federation.mechanisms.labels import unbiased_response as unbiased_design
from federation.mechanisms.labels.calibration import LabelNoise, calibrate
from federation.mechanisms.labels.randomised_response import BinnedResponse, mean_errors
from federation.mechanisms.labels.unbiased_response import MOST_EPSILON
from federation.queries.labels import LabelledRows, LabelsNoise, PrivateLabelsQuestion

_BINNED = ("bins", "estimated_bins")


@dataclass(frozen=True)
class PrivateLabels(LabelProtocol):
    """Parties send their rows with labels of which each is private by itself, whoever sees them.

    noise: `auto` (`unbiased` from epsilon 1 up, `one_bit` below; above 12 the noise of 12, and no more is spent),
        `unbiased` (up to 41 values, the unbiased answers of the least variance: Badanidiyuru et al. 2023; epsilon
        .01 to 12), `one_bit` (two values: Duchi et al. 2018), `laplace`, `gaussian` (uses delta), `bins` (randomised
        response on the best bins of the range: Ghazi et al. 2022), `estimated_bins` (of a private histogram) or `off`
        (NON-PRIVATE).
    debiased: of bins: answers whose mean is the bin's.
    learner: `linear` (closed form) or `network` (128-64-1).
    shrink: whether a linear model takes the noise into account: the noisier a direction, the closer it stays to the
        middle of the labels' range. That is nearly always more accurate. Without it the model is least squares, whose
        weights are right on average and at a small epsilon far off; predictions stay within the range either way.
        Answers of bins that are not debiased are drawn to each other already, and give least squares.
    """

    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "noise: auto",
            "by epsilon alone: one_bit below 1, unbiased from 1 to 12, above 12 the noise of 12 and no more is spent",
            "mean variance over one_bit's at epsilon 2 and 4: house values .56 and .15, protein deviations .65 and "
            ".20, weeks worked 1.05 and .65; worst where all labels are at one end of the range: 1.22 and 1.57",
        ),
    )

    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = (
        {},
        {"noise": "one_bit"},
        {"noise": "laplace"},
        {"noise": "gaussian"},
    )

    noise: Literal["auto", "unbiased", "one_bit", "laplace", "gaussian", "bins", "estimated_bins", "off"] = "auto"
    debiased: bool = False
    learner: Literal["linear", "network"] = "linear"
    shrink: bool = True

    def __post_init__(self) -> None:
        refuse_misplaced(self, ("debiased",), "noise: bins or estimated_bins", self.noise in _BINNED)
        refuse_misplaced(self, ("shrink",), "learner: linear", self.learner == "linear")

    def noise_of(self, epsilon: float, delta: float) -> LabelsNoise:
        """The noise that parties are asked for. Raises `InputError` for `unbiased` out of its range of epsilon."""
        law, spent = self._law(epsilon)
        if law != "unbiased":
            return LabelsNoise(law, spent, delta, self.debiased)
        return LabelsNoise(law, spent, delta, False, *unbiased_design.table(spent))

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at, for one label; of `auto` 12 at most. Raises `InputError` as `noise_of`."""
        return super().promise(public, self._law(epsilon)[1], trust)

    @property
    def shrinks(self) -> bool:
        """Whether a linear model is shrunk by the noise."""
        drawn_together = self.noise in _BINNED and not self.debiased
        return self.shrink and self.noise != "off" and not drawn_together

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside."""
        return (self.debiased,) if self.noise in _BINNED else ()

    def question(self, rows: LabelledRows, least: int, noise: LabelsNoise, **sent: Any) -> PrivateLabelsQuestion:
        """All rows of every party."""
        return PrivateLabelsQuestion(noise, rows, **sent)

    def sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """Rows as they are, labels with noise."""
        rows = Sent("its public rows", product(public.largest_bag, public.features), False)
        return (rows, Sent("a label of every row", public.largest_bag, self.noise != "off"))

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """The excess risk by noise on every label, of a linear model that knows how loud it is."""
        rank, rows = public.features, public.rows
        law, spent = self._law(epsilon)
        if rank is None or rows is None or public.label_range is None or law == "off" or law == "estimated_bins":
            return None
        low, high = public.label_range
        mechanism = calibrate(law, epsilon=spent, delta=public.delta, label_range=(low, high), debiased=self.debiased)
        bias = 0.0  # mean squared difference between the expectation of a private label and the label
        if isinstance(mechanism, BinnedResponse):
            variance, bias = mean_errors(mechanism)
        else:
            variance = float(mechanism.variance())
        around = risk.residual(public, high - low)
        shrunk = risk.shrunk_risk(rank, rows, variance + around, high - low)
        # A model can learn the whole difference, so the bias is what it costs at most.
        error = (shrunk if self.shrinks else risk.private_labels(rank, rows, around, variance)) + bias
        deviation = math.sqrt(rank * variance / rows)
        return risk.expected(error, deviation, high - low, not bias, "labels of any value are as frequent")

    def worst_case(self, units: int, public: PublicNumbers) -> WorstLabels:
        """One label moves from one end of its range to the other.

        As loud as half the noise are two labels that move; of Gaussian noise, which is independent, four.
        """
        changed = units**2 if self.noise == "gaussian" else units
        return worst_labels(changed, public, RUNS_OF_BINS if self.noise == "estimated_bins" else RUNS)

    def learn(self, answers: Kept, draw: int, seed: int) -> Described:
        """The model of one noise draw."""
        question, present = answers.question, answers.present
        assert isinstance(question, PrivateLabelsQuestion)
        sizes = answers.array("size")[present]
        held = np.arange(question.rows.most) < sizes[:, None]
        rows, labels = answers.array("rows")[present][held], answers.array("labels")[present, draw][held]
        noise = question.mechanism() if self.shrinks else None
        return from_labels(self.learner, rows, labels, question.rows.label_range, seed, noise)

    def _law(self, epsilon: float) -> tuple[LabelNoise | Literal["off"], float]:
        """The law that `auto` stands for, and the epsilon that it spends. Raises `InputError` as `noise_of`."""
        if self.noise == "auto":
            if epsilon < unbiased_design.WORTHWHILE:
                return "one_bit", epsilon
            return "unbiased", min(epsilon, MOST_EPSILON)
        if self.noise == "unbiased":
            unbiased_design.require_in_reach(epsilon)
        return self.noise, epsilon
