"""Protocol `label_sums`: the sum X'y with noise in the shape that costs least squares least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aggregator.labels.label_protocol import LabelProtocol
from federation.bag_messages import Noising
from federation.bag_releases import OFF
from federation.label_messages import LabelledRows, LabelSumsQuestion

if TYPE_CHECKING:
    from aggregator.answers.local_answers import LocalAnswers
    from aggregator.released.released_estimators import Described


@dataclass(frozen=True)
class NoisyLabelSums(LabelProtocol):
    """Parties send X'X of their public rows and X'y with noise that hides every label; the sums give least squares.

    shape: of the noise: `optimal` (of least excess risk), `whitened` or `isotropic`.
    noise: `auto` (the less of the next two, by the number of features, epsilon and delta), `gaussian` (uses delta),
        `pure` (L2-Gamma) or `off` (NON-PRIVATE).
    """

    why_default: ClassVar[str] = (
        "the default: of all mechanisms the least excess risk for linear models at few parties; with many, each of\n"
        "which adds noise, private_labels is ahead (federation advise says from where on)"
    )

    shape: Literal["optimal", "whitened", "isotropic"] = "optimal"
    noise: Literal["auto", "gaussian", "pure", "off"] = "auto"

    def mechanism(self, epsilon: float, delta: float) -> dict[str, Any]:
        """What parties calibrate their noise by."""
        if self.noise == OFF:
            return {"noise": OFF}
        return {"noise": self.noise, "epsilon": epsilon, "delta": delta}

    def spends(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """At most this is charged for a release aimed at (epsilon, delta)."""
        return None if self.noise == OFF else (epsilon, 0.0 if self.noise == "pure" else delta)

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its mechanism aside."""
        return (self.shape,)

    def question(self, rows: LabelledRows, least: int, noising: Noising) -> LabelSumsQuestion:
        """All rows of every party."""
        return LabelSumsQuestion(rows, self.shape, noising)

    def learn(self, answers: LocalAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw: least squares from the sums of all parties."""
        from aggregator.labels.learners import from_moments

        present = answers.present
        gram = answers.array("gram")[present].sum(axis=0)
        return from_moments(gram, answers.array("moment")[present, draw].sum(axis=0))
