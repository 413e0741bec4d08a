"""The session of `error_marginals`: for each noise draw an exchange with the oracles of all parties, in rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from aggregator.answers.local_answers import CHECKED
from aggregator.answers.robust_sums import Changes, Robustness
from aggregator.contract.premises import LOCAL, local_guarantee, summed
from aggregator.contract.session import Asked, Session
from aggregator.learners.error_marginals.exchange_settings import ExchangeSettings
from aggregator.learners.error_marginals.learner import ErrorMarginalsLearner, ErrorQuery
from aggregator.protocols.error_marginals.exchange_options import ExchangeOptions
from aggregator.protocols.error_marginals.marginal_answers import MarginalAnswers
from aggregator.protocols.error_marginals.shared_marginals import SharedMarginals
from aggregator.releases.classifier_models import network
from aggregator.releases.released_estimators import Described
from aggregator.world.world import World
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.query import OFF, Question, ReleaseId
from federation.contract.trust import honest
from federation.features.feature_map import FeatureMap
from federation.mechanisms.marginals.shared_noise import SharedMarginalNoise
from federation.queries.marginals import Hypothesis, MarginalsQuestion, exchange_noise


@dataclass(eq=False)
class _Chain:
    """One exchange, for one noise draw: its name, its learner, what has been asked, and the answers to come."""

    draw: int
    name: str
    learner: ErrorMarginalsLearner
    asked: list[MarginalsQuestion] = field(default_factory=list)
    answers: MarginalAnswers | SharedMarginals | None = None
    collected: list[MarginalAnswers | SharedMarginals] = field(default_factory=list)


class ExchangeSession(Session):
    """For each noise draw an exchange with the oracles of all parties: as hypotheses follow from answers, each asks."""

    def __init__(self, world: World, options: ExchangeOptions, epsilon: float, draws: int, *, share: bool) -> None:
        """With `share` parties share one noise."""
        self._world, self._options, self._epsilon = world, options, epsilon
        world.require_two_classes()
        plan = world.plan
        self._contributors = honest(plan.parties, plan.quorum, plan.colluding) if share else 0
        self._view = world.views.at(OFF, math.inf)
        self._noise = options.noise_of(epsilon, world.plan.delta)
        self._chains = [self._begin(draw) for draw in range(draws)]
        self._first = self._question(self._chains[0], self._chains[0].learner.query())

    @property
    def feature_map(self) -> FeatureMap:
        """The public map that every query goes through."""
        return self._view.public.feature_map

    def questions(self) -> Sequence[Asked]:
        """The next query of every exchange that has one."""
        return [asked for chain in self._chains for asked in self._ask(chain)]

    def longest(self, question: Question) -> Question:
        """With the largest hypothesis that it learns, in the last query."""
        assert isinstance(question, MarginalsQuestion)
        settings, columns = self._settings, len(question.bins.sizes)
        sizes = (columns, *(settings.hidden if settings.learner == "network" else ()), 1)
        largest = Hypothesis.of([np.ones(shape) for shape in pairwise(sizes)], [np.ones(size) for size in sizes[1:]])
        last = replace(question.release, query=question.release.queries - 1)
        return replace(question, asks="errors", hypothesis=largest, release=last)

    def take(self, answers: Sequence[Any]) -> None:
        """Let every learner take the answers to its query."""
        for chain, collected in zip([one for one in self._chains if one.answers is not None], answers, strict=True):
            if collected.answered < self._world.plan.parties:
                chain.learner.count_rows(self._summed_deviation(collected.answered))
            chain.collected.append(collected)
            chain.learner.take(collected.errors, collected.rows)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """Of all queries of one exchange."""
        plan = self._world.plan
        noise = self._first.mechanism() if self._noise.aims else None
        whose = summed(plan, noise.additive) if isinstance(noise, SharedMarginalNoise) else LOCAL
        return local_guarantee(plan, self._first.payment(), whose)

    @property
    def checks(self) -> tuple[str, ...]:
        """Answers are checked when they arrive, queries counted, and so are answers that were scaled and clipped.

        Of shares, how the last sum was made.
        """
        asked = f"at most {self._most_asked} of the {self._settings.queries} queries agreed on were asked"
        collected = [one for chain in self._chains for one in chain.collected]
        seen = collected[-1].told if isinstance(collected[-1], SharedMarginals) else (CHECKED,)
        return (*seen, asked, *Changes.of([one.changes for one in collected]))

    def learn(self, draw: int) -> Described:
        """The hypotheses of all rounds, and the one that is chosen."""
        learner = self._chains[draw].learner
        return network(learner.hypotheses, learner.chosen, self._settings.rounds)

    def diagnostics(self) -> dict[str, float]:
        """How many queries were asked, and about how many bins."""
        bins = self._chains[0].asked[-1].bins
        return {"queries": float(self._most_asked), "bins_per_feature": bins.total / len(bins.sizes)}

    @property
    def _most_asked(self) -> int:
        return max(len(chain.asked) for chain in self._chains)

    @cached_property
    def _settings(self) -> ExchangeSettings:
        return self._options.settings(self._world.plan.shifted)

    def _begin(self, draw: int) -> _Chain:
        plan, options = self._world.plan, self._options
        name = self._world.named(self._world.own.name, repr(self._epsilon), draw)
        if self._contributors:
            name += "|secure"
        if self._settings.queries == 1:  # a release of one query: its noise keeps the key of a numbered one
            name += "|query 0"
        public = options.neighbours == "replace" or options.noise == OFF
        learner = ErrorMarginalsLearner(
            self._view.public.rows,
            self._settings,
            deviation=self._summed_deviation(plan.parties),
            rows=(plan.private_rows or None) if public else options.expected_rows,
            seed=plan.split,
        )
        return _Chain(draw, name, learner)

    def _summed_deviation(self, answered: int) -> float:
        """Of the noise on one count over so many parties: of their own noises, or of their shares of one."""
        return self._deviation * math.sqrt(answered / (self._contributors or 1))

    @cached_property
    def _deviation(self) -> float:
        """Of the noise of one party on one count, or of the whole noise that is shared."""
        if not self._noise.aims:
            return 0.0
        options, features = self._options, self._view.public.rows.shape[1]
        known = (self._noise, features, self._settings.queries, options.protect, options.neighbours)
        return exchange_noise(*known, self._contributors).deviation

    def _ask(self, chain: _Chain) -> Iterator[Asked]:
        """The learner's next query; nothing when it has none."""
        chain.answers = None
        query = chain.learner.query()
        if query is None:
            return
        plan = self._world.plan
        question = self._question(chain, query)
        chain.asked.append(question)
        chain.answers = self._collector(question, plan.bags * plan.largest_bag)
        yield Asked(question, self._view.training, chain.answers, chain.draw)

    def _collector(self, question: MarginalsQuestion, most: int) -> MarginalAnswers | SharedMarginals:
        plan = self._world.plan
        if question.shared:
            return SharedMarginals(question, plan, most)
        promised = question.promise()
        promise = promised if isinstance(promised, Guarantee) else None
        return MarginalAnswers(question, plan.parties, most, promise, Robustness(plan.robust, plan.alike))

    def _question(self, chain: _Chain, query: ErrorQuery | None) -> MarginalsQuestion:
        assert query is not None, "every exchange begins with a query"
        options = self._options
        return MarginalsQuestion(
            self._noise,
            self._view.public.feature_map,
            query.bins,
            "rows" if query.hypothesis is None else "errors",
            query.hypothesis or Hypothesis.constant(len(query.bins.sizes), 1),
            options.protect,
            options.neighbours,
            self._contributors,
            release=ReleaseId(chain.name, self._settings.queries, len(chain.asked)),
            seeded=self._world.plan.noise_seed is not None,
        )
