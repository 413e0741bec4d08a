"""Protocol `private_labels`: every label is made private by itself, and any learner takes the rows with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from aggregator.labels.label_protocol import LabelProtocol
from aggregator.world.option_rules import refuse_misplaced
from federation.bag_messages import Noising
from federation.bag_releases import OFF
from federation.label_messages import LabelledRows, PrivateLabelsQuestion

if TYPE_CHECKING:
    from aggregator.answers.local_answers import LocalAnswers
    from aggregator.released.released_estimators import Described

_BINNED = ("bins", "estimated_bins")


@dataclass(frozen=True)
class PrivateLabels(LabelProtocol):
    """Parties send their rows with labels of which each is private by itself, whoever sees them.

    noise: `one_bit` (two values: Duchi et al. 2018), `laplace`, `gaussian` (uses delta), `bins` (randomised response
        on the best bins of the range: Ghazi et al. 2022), `estimated_bins` (of a private histogram) or `off`
        (NON-PRIVATE).
    debiased: of bins: answers whose mean is the bin's.
    learner: `linear` (closed form) or `network` (128-64-1).
    """

    why_default: ClassVar[str] = (
        "the default: pure, unbiased, and of the least variance of all unbiased ones at small epsilon"
    )

    noise: Literal["one_bit", "laplace", "gaussian", "bins", "estimated_bins", "off"] = "one_bit"
    debiased: bool = False
    learner: Literal["linear", "network"] = "linear"

    def __post_init__(self) -> None:
        refuse_misplaced(self, ("debiased",), "noise: bins or estimated_bins", self.noise in _BINNED)

    def mechanism(self, epsilon: float, delta: float) -> dict[str, Any]:
        """What parties calibrate their noise by."""
        if self.noise == OFF:
            return {"noise": OFF}
        known: dict[str, Any] = {"noise": self.noise, "epsilon": epsilon, "delta": delta}
        return {**known, "debiased": self.debiased} if self.noise in _BINNED else known

    def spends(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """At most this is charged for a release aimed at (epsilon, delta)."""
        return None if self.noise == OFF else (epsilon, delta if self.noise == "gaussian" else 0.0)

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its mechanism aside."""
        return ()

    def question(self, rows: LabelledRows, least: int, noising: Noising) -> PrivateLabelsQuestion:
        """All rows of every party."""
        return PrivateLabelsQuestion(rows, noising)

    def learn(self, answers: LocalAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw."""
        from aggregator.labels.learners import from_labels

        question, present = answers.question, answers.present
        assert isinstance(question, PrivateLabelsQuestion)
        sizes = answers.array("size")[present]
        held = np.arange(question.rows.most) < sizes[:, None]
        rows, labels = answers.array("rows")[present][held], answers.array("labels")[present, draw][held]
        return from_labels(self.learner, rows, labels, question.rows.label_range, seed)
