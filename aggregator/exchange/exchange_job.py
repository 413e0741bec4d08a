"""The job of `error_marginals`: for each noise draw an exchange with the oracles of all parties, in rounds."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from aggregator.answers.local_answers import CHECKED
from aggregator.answers.marginal_answers import MarginalAnswers
from aggregator.central.releasing import local_guarantee
from aggregator.exchange.learner import ErrorMarginalsLearner, ErrorQuery
from aggregator.exchange.settings import ExchangeSettings
from aggregator.released.classifier_models import ReleasedClassifiers, network
from aggregator.released.released_estimators import Described
from aggregator.world.job import World
from aggregator.world.plan import VariantPlan
from federation.bag_messages import Noising
from federation.bag_releases import OFF
from federation.grids.codec import bytes_per_party
from federation.guarantee import Guarantee
from federation.hypotheses import Hypothesis
from federation.ledger import Ledger
from federation.marginal_messages import Exchange, MarginalsQuestion
from federation.marginal_releases import answer_guarantee, exchange_guarantee, exchange_noise

if TYPE_CHECKING:
    from aggregator.error_marginals import ErrorMarginals


@dataclass(eq=False)
class _Chain:
    """One exchange: its learner, what has been asked, and the answers to come."""

    name: str
    epsilon: float
    learner: ErrorMarginalsLearner
    asked: list[MarginalsQuestion] = field(default_factory=list)
    answers: MarginalAnswers | None = None


class ExchangeJob:
    """One release per epsilon, a single one without noise; as hypotheses follow from answers, every draw asks anew."""

    def __init__(self, world: World, variant: VariantPlan, options: ErrorMarginals) -> None:
        self._world, self._variant, self._options = world, variant, options
        plan = world.plan
        world.require_two_classes(variant.kind)
        self._view = world.views.at(OFF, math.inf)
        unprotected = options.noise == OFF
        self._epsilons = (math.inf,) if unprotected else plan.epsilons
        draws = range(1 if unprotected else plan.draws)
        self._chains = [[self._begin(epsilon, draw) for draw in draws] for epsilon in self._epsilons]
        self._guarantees = [local_guarantee(plan, exchange_guarantee(chains[0].asked[0])) for chains in self._chains]
        for guarantee in self._guarantees:
            world.gate(variant.name, guarantee)

    def costs(self) -> list[int]:
        """Bytes that one party sends for each release, in all rounds of the first draw."""
        return [sum(bytes_per_party(question.fields()) for question in chains[0].asked) for chains in self._chains]

    def proceed(self) -> None:
        """Let every learner take its answers and ask its next question, if it has one."""
        for chain in (chain for chains in self._chains for chain in chains):
            if chain.answers is not None:
                if chain.answers.answered < self._world.plan.parties:
                    chain.learner.count_rows()
                chain.learner.take(chain.answers.errors, chain.answers.rows)
                self._ask(chain)

    def finish(self, ledger: Ledger) -> list[dict[str, float]]:
        """Charge the exchanges and write the hypotheses of all rounds; returns how many queries were asked."""
        described: list[tuple[Described, ...]] = []
        diagnostics: list[dict[str, float]] = []
        for chains, guarantee in zip(self._chains, self._guarantees, strict=True):
            asked = max(len(chain.asked) for chain in chains)
            checks = (
                CHECKED,
                f"at most {asked} of the {chains[0].learner.queries} queries agreed on were asked",
            )
            ledger.charge(self._variant.name, guarantee, checks)
            described.append(
                tuple(
                    network(chain.learner.hypotheses, chain.learner.chosen, self._settings.rounds) for chain in chains
                )
            )
            bins = chains[0].asked[-1].bins
            diagnostics.append({"queries": float(asked), "bins_per_feature": bins.total / len(bins.sizes)})
        maps = [self._view.public.feature_map] * len(self._chains)
        self._world.write(ReleasedClassifiers, self._variant.name, self._epsilons, described, maps, self._guarantees)
        return diagnostics

    @cached_property
    def _settings(self) -> ExchangeSettings:
        return self._options.settings(self._world.plan.shifted)

    def _begin(self, epsilon: float, draw: int) -> _Chain:
        plan, options = self._world.plan, self._options
        name = f"{plan.world}|{self._variant.name}|{epsilon!r}|{draw}"
        if plan.noise_seed is None:  # else deployed parties would take a second run for the exchange of the first
            name = f"{name}|{secrets.token_hex(16)}"
        public = options.neighbours == "replace" or options.noise == OFF
        learner = ErrorMarginalsLearner(
            self._view.public.rows,
            self._settings,
            deviation=self._deviation(epsilon) * math.sqrt(plan.parties),
            rows=plan.private_rows if public else options.expected_rows,
            seed=plan.split,
        )
        chain = _Chain(name, epsilon, learner)
        self._ask(chain)
        return chain

    def _deviation(self, epsilon: float) -> float:
        """Of the noise of one party on one count."""
        options = self._options
        if options.noise == OFF:
            return 0.0
        mechanism, features = options.mechanism(epsilon, self._world.plan.delta), self._view.public.rows.shape[1]
        noise = exchange_noise(mechanism, features, self._settings.queries, options.protect, options.neighbours)
        return noise.deviation

    def _ask(self, chain: _Chain) -> None:
        """Put the learner's next query to the inquiry; nothing when it has none."""
        chain.answers = None
        query = chain.learner.query()
        if query is None:
            return
        plan = self._world.plan
        exchange = Exchange(chain.name, chain.learner.queries, len(chain.asked))
        question = self._question(query, chain.epsilon, exchange)
        promised = answer_guarantee(question)
        promise = promised if isinstance(promised, Guarantee) else None
        collector = MarginalAnswers(question, plan.parties, plan.bags * plan.largest_bag, promise)
        chain.asked.append(question)
        chain.answers = self._world.inquiry.add(question, self._view.training, collector)

    def _question(self, query: ErrorQuery, epsilon: float, exchange: Exchange) -> MarginalsQuestion:
        plan, options = self._world.plan, self._options
        purpose = f"{exchange.name}|query {exchange.query}"
        return MarginalsQuestion(
            self._view.public.feature_map,
            query.bins,
            "rows" if query.hypothesis is None else "errors",
            query.hypothesis or Hypothesis.constant(len(query.bins.sizes), 1),
            exchange,
            options.protect,
            options.neighbours,
            Noising(options.mechanism(epsilon, plan.delta), 1, purpose, plan.noise_seed is not None),
        )
