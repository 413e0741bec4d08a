"""The session of `error_marginals`: for each noise draw an exchange with the oracles of all parties, in rounds.

`WorstExchange` is the worst pair of neighbours for audits. Its queries are about constant classes, 1 and 0 by turns.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from aggregator.collectors.collectors import CHECKED, Secure, collector_of
from aggregator.collectors.robust_sums import Changes
from aggregator.contract.ledger import LOCAL, local_guarantee, summed
from aggregator.contract.session import Asked, Session
from aggregator.contract.worst_case import TWO_CLASSES, Rows, Seen, SummedWorstCase, in_one_sum
from aggregator.learners.error_marginals.estimation import ExchangeSettings
from aggregator.learners.error_marginals.learner import ErrorMarginalsLearner, ErrorQuery
from aggregator.protocols.error_marginals.options import ExchangeOptions
from aggregator.releases.models import Described, network
from aggregator.trial.trial import World
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.query import OFF, PrivateQuestion, Question, ReleaseId, Submission
from federation.features.feature_map import FeatureMap
from federation.mechanisms.marginals.shared_noise import SharedMarginalNoise
from federation.numerics.binning import Bins
from federation.queries.marginals import Hypothesis, MarginalsQuestion, exchange_noise


@dataclass(eq=False)
class _Chain:
    """One exchange, for one noise draw: its name, its learner, what has been asked, and the answers to come."""

    draw: int
    name: str
    learner: ErrorMarginalsLearner
    asked: list[MarginalsQuestion] = field(default_factory=list)
    answers: Any | None = None
    collected: list[Any] = field(default_factory=list)


class ExchangeSession(Session):
    """For each noise draw an exchange with the oracles of all parties: as hypotheses follow from answers, each asks."""

    def __init__(self, world: World, options: ExchangeOptions, epsilon: float, draws: int, *, share: bool) -> None:
        """With `share` parties share one noise."""
        self._world, self._options, self._epsilon = world, options, epsilon
        world.require_two_classes()
        plan = world.plan
        self._contributors = plan.terms.honest if share else 0
        self._view = world.views.at(OFF, math.inf)
        self._noise = options.noise_of(epsilon, world.plan.public.delta)
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
        """Return the last query of the exchange, with the largest hypothesis that the session learns."""
        assert isinstance(question, MarginalsQuestion)
        settings, columns = self._settings, len(question.bins.sizes)
        sizes = (columns, *(settings.hidden if settings.learner == "network" else ()), 1)
        largest = Hypothesis.of([np.ones(shape) for shape in pairwise(sizes)], [np.ones(size) for size in sizes[1:]])
        last = replace(question.release, query=question.release.queries - 1)
        return replace(question, asks="errors", hypothesis=largest, release=last)

    def take(self, answers: Sequence[Any]) -> None:
        """Let every learner take the answers to its query."""
        for chain, collected in zip([one for one in self._chains if one.answers is not None], answers, strict=True):
            if collected.answered < self._world.plan.terms.parties:
                chain.learner.count_rows(self._summed_deviation(collected.answered))
            chain.collected.append(collected)
            fields = chain.asked[-1].fields()
            errors = [collected.total(name) for name in ("errors", "rates") if name in fields]
            chain.learner.take(errors[0] if errors else None, collected.total("rows"))

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """The guarantee of all queries of one exchange together."""
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
        seen = collected[-1].told if isinstance(collected[-1], Secure) else (CHECKED,)
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
        return self._options.settings(self._world.plan.task.shifted)

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
            deviation=self._summed_deviation(plan.terms.parties),
            rows=(plan.public.rows or None) if public else options.expected_rows,
            seed=plan.task.split,
        )
        return _Chain(draw, name, learner)

    def _summed_deviation(self, answered: int) -> float:
        """Deviation of the noise on one count over so many parties: of their own noises, or of their shares of one."""
        return self._deviation * math.sqrt(answered / (self._contributors or 1))

    @cached_property
    def _deviation(self) -> float:
        """Standard deviation of the noise of one party on one count, or of the whole noise that is shared."""
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
        chain.answers = collector_of(question, plan, question.promise())
        yield Asked(question, self._view.training, chain.answers, chain.draw)

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
            seeded=self._world.plan.run.noise_seed is not None,
        )


RUNS = 200_000
RUNS_OF_SHARES = 60_000  # each of which is drawn by every party
CHANGE = "one row or label changes"

Change = Literal["add_remove", "replace", "label"]


@dataclass(frozen=True, eq=False)
class WorstExchange(SummedWorstCase[MarginalsQuestion]):
    """One party, and for each run two bins of every column, in which nothing lies but `changed` rows of class 0.

    They lie in the first of the two. There they are gone if one is added or removed; if it is replaced, they are in the
    second with class 1, and if a label changes, in the first with class 1. One row is in a bin beyond all of these. One
    party says it all: every bin has noise of its own, so what it says of the bins of one run is an exchange about one
    unit alone. Where parties share the noise, all others have nothing but the row beyond. Constant classes are the
    worst that can be asked: whatever a query is chosen by, a unit moves no more cells than so, where it is an error or
    a correct row.
    """

    asks, about = MarginalsQuestion, "an exchange is for error marginals"

    change: Change = "add_remove"

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """The bins of all runs, and those who share the noise."""
        asked = self.own(question)
        bins = np.repeat(2 * np.arange(runs), self.changed)
        if there and self.change == "add_remove":
            bins = bins[:0]
        elif there and self.change == "replace":
            bins = bins + 1
        rows = np.append(bins, 2 * runs).astype(np.float64)
        labels = np.append(np.full(len(bins), int(there)), 0)
        rows = np.tile(rows[:, None], asked.feature_map.columns)
        others = Rows(rows[-1:], labels[-1:])
        return (Rows(rows, labels), *(others for _ in range(self.parties(asked, runs) - 1)))

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """All queries of one exchange, about the bins of all runs."""
        asked = self.own(question)
        columns, release = asked.feature_map.columns, asked.release
        bins = Bins(np.tile(np.arange(2 * runs) + 0.5, columns), np.full(columns, 2 * runs + 1))
        return [
            replace(
                asked,
                bins=bins,
                asks="errors",
                hypothesis=Hypothesis.constant(columns, 1 - query % 2),
                release=replace(release, query=query),
            )
            for query in range(release.queries)
        ]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """What all say together of the two bins of every column and run, (runs, queries, columns, 2)."""
        columns = self.public.shape[1]

        def pairs(cells: np.ndarray) -> np.ndarray:
            whole = cells.reshape(columns, -1)[:, :-1]
            return whole.reshape(columns, -1, 2).swapaxes(0, 1)

        totals = [{name: array.sum(axis=0) for name, array in sent.arrays.items()} for sent in submissions]
        return {name: np.stack([pairs(total[name]) for total in totals], axis=1) for name in totals[0]}


def worst_exchange(units: int, change: Change, *, shared: bool) -> WorstExchange:
    """Of one party's counts, or of a sum of shares; for two units two change, or half of the shares are missing."""
    return WorstExchange(
        in_one_sum(CHANGE, shared),
        np.eye(2),
        RUNS_OF_SHARES if shared else RUNS,
        world=TWO_CLASSES,
        units=units,
        shared=shared,
        change=change,
    )
