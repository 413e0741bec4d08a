"""Protocol `weighted_lba` (Brahmbhatt et al. 2023, Fig. 1): sums of rows and labels with secret Gaussian weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aggregator.contract.option_rules import refuse_misplaced, require_positive
from aggregator.contract.promise import Sent
from aggregator.contract.protocol import Refused, Rule
from aggregator.regressions.bag_options import BAGS_APART, bags_of_size, require_size
from aggregator.regressions.label_protocol import LabelProtocol
from aggregator.world.public_numbers import PublicNumbers, product
from federation.contract.query import ReleaseId
from federation.queries.labels import BagSums, LabelledRows, WeightedSumsNoise, WeightedSumsQuestion

if TYPE_CHECKING:
    from aggregator.answers.label_answers import LabelAnswers
    from aggregator.regressions.worst_labels import WorstLabels
    from aggregator.releases.released_estimators import Described


@dataclass(frozen=True)
class WeightedLBA(LabelProtocol):
    """Parties release weighted sums of rows and labels over bags, and neither bags nor weights.

    size: k, rows of a bag.
    bags: m of every party; null for as many as each party can form.
    noise: `gaussian` on the label sums, without which nothing holds for all data; `published`, none (NON-PRIVATE: what
        it protects depends on the data), which `off` is, too.
    solver: `exact`, in closed form, or as published `adam`, which has come no farther than its steps allow. Steps
        count rows, so that its error falls with `bags` times `size`, where an exact one does not depend on `size`.
    epochs: of Adam, passes over all bags.
    learning_rate: of Adam at first, which decays to a thousandth: about so far a weight moves in a step, in units of
        the label over those of the feature.
    batch_rows: of one step of Adam, rounded down to whole bags but at least one: 1024 or, for the census, 8192 in the
        paper.
    shrink: whether an exact model takes account of how noisy the sums are: the noisier a direction, the closer it stays
        to the middle of the labels' range. That is nearly always more accurate; it needs a constant as the last
        feature, as it is by default. Without it the model is least squares, whose weights are right on average and
        mostly far off; predictions stay within the range either way.
    """

    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "noise: gaussian",
            "with noise on the label sums it has a guarantee for all data, which the published release has not",
            "house values, one party, (1, 1e-6): mean squared error 1.13, .425 of label_sums; a reference, no advice",
        ),
        Rule(
            "solver: exact",
            "it is where Adam would come with enough steps, whatever the size and the number of bags",
            "squared errors: 26.6 to 27.3 and 122 to 132 in the paper's 32 cells on other data, 26.8 to 70.4 and 123 "
            "to 881 with Adam; house values, epsilon 1 and 4: 1.30 and .559, with Adam 2.05 and 1.49",
        ),
    )

    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = Refused(
        "it needs far more noise than what was published for it to keep what it promises,"
        " and was behind label_sums wherever both were measured; it is there to reproduce a paper"
    )

    cannot_add: ClassVar[str] = BAGS_APART

    size: int = 64
    bags: int | None = None
    noise: Literal["gaussian", "published", "off"] = "gaussian"
    solver: Literal["exact", "adam"] = "exact"
    epochs: int = 200
    learning_rate: float = 1e-3
    batch_rows: int = 1024
    shrink: bool = True

    def __post_init__(self) -> None:
        require_size(self.size, self.bags)
        for name in ("epochs", "learning_rate", "batch_rows"):
            require_positive(name, getattr(self, name))
        refuse_misplaced(self, ("epochs", "learning_rate", "batch_rows"), "solver: adam", self.solver == "adam")
        refuse_misplaced(self, ("shrink",), "solver: exact", self.solver == "exact")

    def noise_of(self, epsilon: float, delta: float) -> WeightedSumsNoise:
        """The noise that parties are asked for."""
        return WeightedSumsNoise(self.noise, epsilon, delta)

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside."""
        return (self.size, self.bags)

    def question(
        self, rows: LabelledRows, least: int, noise: WeightedSumsNoise, *, release: ReleaseId, draws: int, seeded: bool
    ) -> WeightedSumsQuestion:
        """Bags of the rows of every party. Raises `InputError` when parties have too few rows for them."""
        records, bags = bags_of_size(self.size, self.bags, least, rows.most)
        design = BagSums(records, bags, self.size, "gaussian", 0, 0)
        return WeightedSumsQuestion(noise, rows, design, release=release, draws=draws, seeded=seeded)

    @property
    def unprotected(self) -> str | None:
        """Without noise nothing holds for all data."""
        return "without noise nothing holds for all data" if self.noise == "published" else super().unprotected

    def sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """Sums with secret weights."""
        bags = self.bags or (None if public.largest_bag is None else public.largest_bag // self.size)
        rows = Sent("sums of its rows with secret weights", product(bags, public.features), False)
        return (rows, Sent("sums of its labels with the same weights", bags, self.noise == "gaussian"))

    def worst_case(self, units: int, public: PublicNumbers) -> WorstLabels:
        """One label moves from one end of its range to the other."""
        from aggregator.regressions.worst_labels import RUNS, worst_labels

        return worst_labels(units, public, RUNS, size=self.size)

    def learn(self, answers: LabelAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw."""
        from aggregator.regressions.models import by_steps, formed_bags, from_sums

        question, present, formed = answers.question, answers.present, formed_bags(answers)
        assert isinstance(question, WeightedSumsQuestion)
        row_sums, label_sums = (answers.array(name)[present, draw][formed] for name in ("row_sums", "label_sums"))
        if self.solver == "adam":
            steps = {"epochs": self.epochs, "learning_rate": self.learning_rate, "batch_rows": self.batch_rows}
            return by_steps(row_sums, label_sums, question.rows.label_range, self.size, seed, **steps)
        noise = question if self.shrink and question.noise.aims else None
        return from_sums(row_sums, label_sums, question.rows.label_range, noise)
