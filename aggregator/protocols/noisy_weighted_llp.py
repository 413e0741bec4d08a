"""Protocol `noisy_weighted_llp` (Brahmbhatt et al. 2023, Fig. 2): noise on labels in published, weighted bags."""

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
from federation.contract.errors import InputError
from federation.contract.query import ReleaseId
from federation.numerics.bag_weights import noisy_count
from federation.queries.labels import BagSums, BagSumsNoise, BagSumsQuestion, LabelledRows

if TYPE_CHECKING:
    from aggregator.answers.label_answers import LabelAnswers
    from aggregator.regressions.worst_labels import WorstLabels
    from aggregator.releases.released_estimators import Described


@dataclass(frozen=True)
class NoisyWeightedLLP(LabelProtocol):
    """Parties publish bags of their rows with weights, and weighted label sums under noise on some of the labels.

    size: k, rows of a bag.
    bags: m of every party; null for as many as each party can form, with `noisy_rows: fixed` as the one with the
        fewest rows can.
    weights: `signs` (-1 or 1), which lose nothing, or as published `gaussian`, which make some labels loud.
    noisy_rows: `stratified`, the same number in every bag, or as published `fixed`, a set of rows that leaves bags
        without noise.
    rho: share of the labels that get noise.
    noise: `gaussian`, `laplace` (on the sum itself, with signs; pure) or `off` (NON-PRIVATE).
    sigma: of the noise on a label; null for the least that epsilon and delta need. The paper's is 1: where the exact
        delta is beyond the declared one, as for labels with a wide range, the release is NON-PRIVATE.
    learner: `linear` (closed form) or `network` (128-64-1).
    shrink: whether a linear model takes account of how noisy the sums are: the noisier a direction, the closer it stays
        to the middle of the labels' range. That is nearly always more accurate; it needs a constant as the last
        feature, as it is by default. Without it the model is least squares, whose weights are right on average and
        mostly far off; predictions stay within the range either way.
    """

    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "weights: signs, noise on every label of a bag",
            "of all designs of bags of this size the one that needs the least noise, exactly accounted",
            "house values, one party, (1, 1e-6): mean squared error .648, beside 1.12 of published Gaussian weights "
            "and .437 of single labels (private_labels): the smaller the bags, the less error",
        ),
    )

    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = Refused(
        "sums over bags mix the residuals of many labels under the same noise as on one label"
        ": it was behind private_labels wherever both were measured; it is there to reproduce a paper"
    )

    cannot_add: ClassVar[str] = BAGS_APART

    size: int = 64
    bags: int | None = None
    weights: Literal["signs", "gaussian"] = "signs"
    noisy_rows: Literal["stratified", "fixed"] = "stratified"
    rho: float = 1.0
    noise: Literal["gaussian", "laplace", "off"] = "gaussian"
    sigma: float | None = None
    learner: Literal["linear", "network"] = "linear"
    shrink: bool = True

    def __post_init__(self) -> None:
        require_size(self.size, self.bags)
        if not 0 < self.rho <= 1:
            raise InputError(f"rho must lie in (0, 1], got {self.rho}")
        if self.sigma is not None:
            require_positive("sigma", self.sigma)
        if self.noise == "laplace" and self.weights != "signs":
            raise InputError("noise: laplace needs weights: signs, by which a label's change is bounded")
        refuse_misplaced(self, ("noisy_rows", "rho", "sigma"), "noise: gaussian", self.noise == "gaussian")
        refuse_misplaced(self, ("shrink",), "learner: linear", self.learner == "linear")

    def noise_of(self, epsilon: float, delta: float) -> BagSumsNoise:
        """The noise that parties are asked for."""
        return BagSumsNoise(self.noise, epsilon, delta, self.sigma)

    @property
    def spends_delta(self) -> bool:
        """Whether the noise makes use of delta."""
        return self.noise != "laplace"

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside."""
        given = () if self.sigma is None else (self.sigma,)
        return (*given, self.size, self.bags, self.weights, self.noisy_rows, self.rho)

    def question(
        self, rows: LabelledRows, least: int, noise: BagSumsNoise, *, release: ReleaseId, draws: int, seeded: bool
    ) -> BagSumsQuestion:
        """Bags of the rows of every party. Raises `InputError` when parties have too few rows for them."""
        stratified = self.noisy_rows == "stratified"
        # A fixed set of noisy rows protects as many rows as there are: they must be as many at every party.
        wanted = self.bags if stratified else self.bags or max(least // self.size, 1)
        records, bags = bags_of_size(self.size, wanted, least, rows.most)
        per_bag = noisy_count(self.rho, self.size) if stratified else 0
        noisy = 0 if stratified else noisy_count(self.rho, least)
        design = BagSums(records, bags, self.size, self.weights, per_bag, noisy)
        return BagSumsQuestion(noise, rows, design, release=release, draws=draws, seeded=seeded)

    def sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """Rows of bags as they are, weights, and label sums with noise."""
        bags = self.bags or (None if public.largest_bag is None else public.largest_bag // self.size)
        rows = Sent("its public rows in bags, with weights", product(bags, self.size, public.features), False)
        return (rows, Sent("a sum of labels of every bag", bags, self.noise != "off"))

    def worst_case(self, units: int, public: PublicNumbers) -> WorstLabels:
        """One label moves from one end of its range to the other."""
        from aggregator.regressions.worst_labels import RUNS, worst_labels

        # Random weights are often small: there is less to be seen of the label.
        return worst_labels(units, public, 2 * RUNS if self.weights == "gaussian" else RUNS, size=self.size)

    def learn(self, answers: LabelAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw."""
        from aggregator.regressions.models import formed_bags, from_bags

        question, present = answers.question, answers.present
        assert isinstance(question, BagSumsQuestion)
        formed = formed_bags(answers)
        rows, weights, sums = (
            answers.array("rows")[present][formed],
            answers.array("weights")[present, draw][formed],
            answers.array("sums")[present, draw][formed],
        )
        noise = question if self.shrink and question.noise.aims else None
        return from_bags(self.learner, rows, weights, sums, question.rows.label_range, seed, noise)
