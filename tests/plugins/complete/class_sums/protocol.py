"""The protocol: what it promises, what it asks, and what it learns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from aggregator.collectors.collectors import CHECKED, SummedAnswers
from aggregator.contract.ledger import local_guarantee
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Rule, Sent, Trust
from aggregator.contract.session import Asked, OneRound, Session
from aggregator.contract.worst_case import PrivateWorstCase, Rows, Seen, Statistic, WorstCase
from aggregator.releases.models import Described
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.trial import World
from class_sums.model import described
from class_sums.question import ClassSumsQuestion, SumsNoise
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import OFF, PrivateQuestion, Question


@dataclass(frozen=True)
class ClassSums(Protocol):
    """Parties send noisy numbers and sums of their rows of either class; a row belongs to the nearer mean.

    noise: `pure`, `gaussian` or `off` (NON-PRIVATE).
    shrinkage: rows at the origin that are added to either class.
    """

    requires: ClassVar[Requires] = Requires(two_classes=True, single_rows=True, features=("standardise", "unit_norm"))
    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "nearest_mean"
    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule("noise: pure", "it needs no delta", "two clusters of 2 features, not beyond"),
    )

    noise: Literal["pure", "gaussian", "off"] = "pure"
    shrinkage: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= 1e9:
            raise InputError(f"shrinkage must be a number from 0 to 1e9, got {self.shrinkage}")

    def noise_at(self, trust: Trust) -> Place | Refused:
        return Place.NOWHERE if self.noise == OFF else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        numbers = None if public.features is None else 2 * (public.features + 1)
        sends = (Sent("numbers and sums of its rows of either class", numbers, self.noise != OFF),)
        if self.noise == OFF:
            return Promise(NoGuarantee("noise is off"), sends)
        delta = public.delta if self.noise == "gaussian" else 0.0
        return Promise(Guarantee(epsilon, delta, Unit.ROW, Adjacency.REPLACE, "class_sums"), sends)

    def begin(self, world: World, epsilon: float, draws: int) -> Session:
        return ClassSumsSession(world, self, epsilon, draws)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstCase:
        world = {"largest_bag": 2, "private_rows": 2}
        one_column = np.array([[0.0], [1.0]])
        return WorstClassSums("one party, one row changes its class", one_column, 100_000, world=world, units=units)


class ClassSumsSession(OneRound):
    """Asks once."""

    question_type: ClassVar[type[ClassSumsQuestion]] = ClassSumsQuestion

    def __init__(self, world: World, options: ClassSums, epsilon: float, draws: int) -> None:
        world.require_two_classes()
        plan, view = world.plan, world.views.at(OFF, math.inf)
        self._options = options
        noise = SumsNoise(options.noise, epsilon, plan.delta)
        question = self.question_type(
            noise,
            view.public.feature_map,
            release=world.release(noise, ()),
            draws=draws,
            seeded=plan.noise_seed is not None,
        )
        promised = local_guarantee(plan, question.promise())
        answers = SummedAnswers(question, plan.parties, promised if isinstance(promised, Guarantee) else None)
        asked = [Asked(question, view.training, answers)]
        super().__init__(view.public.feature_map, asked, promised, question.release, (CHECKED,))

    def learn(self, draw: int) -> Described:
        sums = self.answers[0].total("sums")[draw].reshape(2, -1)
        counts = np.maximum(sums[:, -1:], 0.0) + self._options.shrinkage
        return described(sums[:, :-1] / np.maximum(counts, 1.0))


@dataclass(frozen=True, eq=False)
class WorstClassSums(PrivateWorstCase):
    """Rows (1) of class 0 here, of which `units` are of class 1 there; a party holds two."""

    units: int = 1

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        labels = ((np.arange(2) < self.units) & there).astype(np.int64)
        return (Rows(np.ones((2, 1)), labels),)

    def statistic(self, question: PrivateQuestion) -> Statistic:
        assert isinstance(question, ClassSumsQuestion)
        centres = []
        for there in (False, True):
            [held] = self.side(there, question, 1)
            rows = np.column_stack([question.feature_map.transform(held.rows), np.ones(2)])
            centres.append(np.concatenate([rows[held.labels == label].sum(axis=0) for label in (0, 1)]))
        power = 2 if question.noise.kind == "gaussian" else 1

        def ratio(seen: Seen) -> np.ndarray:
            near, far = (np.linalg.norm(seen["sums"] - centre, axis=1) ** power for centre in centres)
            return far - near

        return ratio
