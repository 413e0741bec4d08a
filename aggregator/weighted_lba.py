"""Protocol `weighted_lba` (Brahmbhatt et al. 2023, Fig. 1): sums of rows and labels with secret Gaussian weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aggregator.labels.bag_options import bags_of_size, require_size
from aggregator.labels.label_protocol import LabelProtocol
from federation.bag_messages import Noising
from federation.bag_releases import OFF
from federation.label_messages import BagSums, LabelledRows, WeightedSumsQuestion
from federation.label_releases import DATA_DEPENDENT

if TYPE_CHECKING:
    from aggregator.answers.local_answers import LocalAnswers
    from aggregator.released.released_estimators import Described


@dataclass(frozen=True)
class WeightedLBA(LabelProtocol):
    """Parties release weighted sums of rows and labels over bags, and neither bags nor weights.

    size: k, rows of a bag.
    bags: m of every party; null for as many as each party can form.
    noise: `gaussian` on the label sums, without which nothing holds for all data; `published`, none (NON-PRIVATE: what
        it protects depends on the data), which `off` is, too.
    """

    why_default: ClassVar[str] = "the default: with noise on the label sums it has a guarantee for all data"

    size: int = 64
    bags: int | None = None
    noise: Literal["gaussian", "published", "off"] = "gaussian"

    def __post_init__(self) -> None:
        require_size(self.size, self.bags)

    def mechanism(self, epsilon: float, delta: float) -> dict[str, Any]:
        """What parties calibrate their noise by."""
        if self.noise in (OFF, DATA_DEPENDENT):
            return {"noise": self.noise}
        return {"noise": self.noise, "epsilon": epsilon, "delta": delta}

    def spends(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """At most this is charged for a release aimed at (epsilon, delta)."""
        return None if self.noise in (OFF, DATA_DEPENDENT) else (epsilon, delta)

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its mechanism aside."""
        return (self.size, self.bags)

    def question(self, rows: LabelledRows, least: int, noising: Noising) -> WeightedSumsQuestion:
        """Bags of the rows of every party. Raises `InputError` when parties have too few rows for them."""
        records, bags = bags_of_size(self.size, self.bags, least, rows.most)
        return WeightedSumsQuestion(rows, BagSums(records, bags, self.size, "gaussian", 0, 0), noising)

    def learn(self, answers: LocalAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw: least squares on the sums."""
        from aggregator.labels.learners import formed_bags, from_sums

        present, formed = answers.present, formed_bags(answers)
        return from_sums(
            answers.array("row_sums")[present, draw][formed], answers.array("label_sums")[present, draw][formed]
        )
