"""The job of protocols that learn a regression from what parties made private themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from aggregator.answers.label_answers import LabelAnswers
from aggregator.answers.local_answers import CHECKED, LocalAnswers
from aggregator.central.releasing import local_guarantee
from aggregator.released.regression_models import ReleasedRegressions
from aggregator.released.released_estimators import Described
from aggregator.world.job import World
from aggregator.world.plan import VariantPlan
from federation.bag_messages import Noising
from federation.bag_releases import OFF
from federation.errors import BudgetExceededError, InputError
from federation.grids.codec import bytes_per_party, question_digest
from federation.guarantee import Guarantee, NoGuarantee
from federation.label_messages import LabelledRows
from federation.label_releases import LabelQuestion, guarantee_of
from federation.ledger import Ledger

_CHECKS = (CHECKED,)


class RegressionProtocol(Protocol):
    """Options of a protocol with real labels."""

    @property
    def noise(self) -> str:
        """As in a scenario; "off" without any."""
        ...

    def mechanism(self, epsilon: float, delta: float) -> dict[str, Any]:
        """What parties calibrate their noise by, as JSON values; `noise` among them."""
        ...

    def spends(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """At most this is charged for a release aimed at (epsilon, delta); None where no noise is aimed at any."""
        ...

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its mechanism aside: with equal ones, noise is keyed alike."""
        ...

    def question(self, rows: LabelledRows, least: int, noising: Noising) -> LabelQuestion:
        """What parties are asked, of whom each has `least` rows or more. Raises `InputError`."""
        ...

    def learn(self, answers: LocalAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw. Raises `FederationError`s."""
        ...


@dataclass(frozen=True, eq=False)
class _Release:
    """One release to come."""

    epsilon: float
    answers: LabelAnswers
    guarantee: Guarantee | NoGuarantee


class RegressionJob:
    """One release per epsilon, a single one without noise; every draw has a model of its own."""

    def __init__(self, world: World, variant: VariantPlan, options: RegressionProtocol) -> None:
        self._world, self._variant, self._options = world, variant, options
        plan = world.plan
        if plan.label_range is None:
            raise InputError(f"'{variant.name}' needs real labels with a declared range, and the plan has classes")
        self._view = world.views.at(OFF, math.inf)
        self._rows = LabelledRows(self._view.public.feature_map, *plan.label_range, plan.largest_bag)
        unprotected = options.spends(plan.epsilons[0], plan.delta) is None
        epsilons = (math.inf,) if unprotected else plan.epsilons
        self._releases = [self._ask(epsilon) for epsilon in epsilons]

    def costs(self) -> list[int]:
        """Bytes that one party sends for each release."""
        return [bytes_per_party(one.answers.question.fields()) for one in self._releases]

    def finish(self, ledger: Ledger) -> list[dict[str, float]]:
        """Charge the releases, learn from each noise draw and write the models; there are no diagnostics."""
        plan = self._world.plan
        described: list[tuple[Described, ...]] = []
        for one in self._releases:
            ledger.charge(self._variant.name, one.guarantee, _CHECKS, question_digest(one.answers.question))
            draws = range(1 if self._options.noise == OFF else plan.draws)
            described.append(tuple(self._options.learn(one.answers, draw, plan.split) for draw in draws))
        self._world.write(
            ReleasedRegressions,
            self._variant.name,
            [one.epsilon for one in self._releases],
            described,
            [self._view.public.feature_map] * len(self._releases),
            [one.guarantee for one in self._releases],
        )
        return [{} for _ in self._releases]

    def _ask(self, epsilon: float) -> _Release:
        plan, options = self._world.plan, self._options
        mechanism = options.mechanism(epsilon, plan.delta)
        draws = 1 if options.noise == OFF else plan.draws
        name = self._world.release_name(self._variant.kind, (*mechanism.values(), *options.asked()))
        noising = Noising(mechanism, draws, name, plan.noise_seed is not None)
        question = options.question(self._rows, plan.smallest_bag, noising)
        guarantee = local_guarantee(plan, guarantee_of(question))
        if isinstance(guarantee, NoGuarantee) and guarantee.claimed and plan.budget is not None:
            raise BudgetExceededError(
                f"release '{self._variant.name}': {guarantee.reason}; leave sigma to be calibrated or remove the budget"
            )
        promise = guarantee if isinstance(guarantee, Guarantee) else None
        answers = LabelAnswers(question, plan.parties, promise)
        return _Release(epsilon, self._world.inquiry.add(question, self._view.training, answers), guarantee)
