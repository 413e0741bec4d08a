"""Protocol `private_labels`: every label is made private by itself, and any learner takes the rows with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from aggregator.contract.option_rules import refuse_misplaced
from aggregator.contract.promise import Sent
from aggregator.regressions.label_protocol import LabelProtocol
from aggregator.world.public_numbers import PublicNumbers, product
from federation.contract.question import ReleaseId
from federation.questions.labels import LabelledRows, LabelsNoise, PrivateLabelsQuestion

if TYPE_CHECKING:
    from aggregator.answers.label_answers import LabelAnswers
    from aggregator.regressions.worst_labels import WorstLabels
    from aggregator.releases.released_estimators import Described

_BINNED = ("bins", "estimated_bins")


@dataclass(frozen=True)
class PrivateLabels(LabelProtocol):
    """Parties send their rows with labels of which each is private by itself, whoever sees them.

    noise: `one_bit` (two values: Duchi et al. 2018), `laplace`, `gaussian` (uses delta), `bins` (randomised response
        on the best bins of the range: Ghazi et al. 2022), `estimated_bins` (of a private histogram) or `off`
        (NON-PRIVATE).
    debiased: of bins: answers whose mean is the bin's.
    learner: `linear` (closed form) or `network` (128-64-1).
    shrink: whether a linear model takes the noise into account: the noisier a direction, the closer it stays to the
        middle of the labels' range. That is nearly always more accurate. Without it the model is least squares, whose
        weights are right on average and at a small epsilon far off; predictions stay within the range either way.
        Answers of bins that are not debiased are drawn to each other already, and give least squares.
    """

    why_default: ClassVar[str] = (
        "the default: pure, unbiased, and of the least variance of all unbiased ones at small epsilon"
    )

    noise: Literal["one_bit", "laplace", "gaussian", "bins", "estimated_bins", "off"] = "one_bit"
    debiased: bool = False
    learner: Literal["linear", "network"] = "linear"
    shrink: bool = True

    def __post_init__(self) -> None:
        refuse_misplaced(self, ("debiased",), "noise: bins or estimated_bins", self.noise in _BINNED)
        refuse_misplaced(self, ("shrink",), "learner: linear", self.learner == "linear")

    def noise_of(self, epsilon: float, delta: float) -> LabelsNoise:
        """The noise that parties are asked for."""
        return LabelsNoise(self.noise, epsilon, delta, self.debiased)

    @property
    def shrinks(self) -> bool:
        """Whether a linear model is shrunk by the noise."""
        drawn_together = self.noise in _BINNED and not self.debiased
        return self.shrink and self.noise != "off" and not drawn_together

    @property
    def spends_delta(self) -> bool:
        """Whether the noise makes use of delta."""
        return self.noise == "gaussian"

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside."""
        return (self.debiased,) if self.noise in _BINNED else ()

    def question(
        self, rows: LabelledRows, least: int, noise: LabelsNoise, *, release: ReleaseId, draws: int, seeded: bool
    ) -> PrivateLabelsQuestion:
        """All rows of every party."""
        return PrivateLabelsQuestion(noise, rows, release=release, draws=draws, seeded=seeded)

    def sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """Rows as they are, labels with noise."""
        rows = Sent("its public rows", product(public.largest_bag, public.features), False)
        return (rows, Sent("a label of every row", public.largest_bag, self.noise != "off"))

    def worst_case(self, units: int, public: PublicNumbers) -> WorstLabels:
        """One label moves from one end of its range to the other."""
        from aggregator.regressions.worst_labels import RUNS, RUNS_OF_BINS, worst_labels

        return worst_labels(units, public, RUNS_OF_BINS if self.noise == "estimated_bins" else RUNS)

    def learn(self, answers: LabelAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw."""
        from aggregator.regressions.models import from_labels

        question, present = answers.question, answers.present
        assert isinstance(question, PrivateLabelsQuestion)
        sizes = answers.array("size")[present]
        held = np.arange(question.rows.most) < sizes[:, None]
        rows, labels = answers.array("rows")[present][held], answers.array("labels")[present, draw][held]
        noise = question.mechanism() if self.shrinks else None
        return from_labels(self.learner, rows, labels, question.rows.label_range, seed, noise)
