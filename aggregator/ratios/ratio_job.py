"""The job of `class_ratio`: asks about bags, fits an estimator to every noisy answer, and releases the estimators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from aggregator.answers.bag_answers import BagAnswers, shared_bags
from aggregator.central.releasing import local_guarantee
from aggregator.ratios.ratio_fitting import Fitting, Labelled, least_rows
from aggregator.ratios.ratio_models import ReleasedRatios
from aggregator.released.released_estimators import Described
from aggregator.world.job import World
from aggregator.world.plan import VariantPlan
from federation.bag_messages import (
    Bags,
    CountsQuestion,
    EmbeddingsQuestion,
    Noising,
    NoisyEmbeddingsQuestion,
    RowsQuestion,
)
from federation.bag_releases import OFF, PUBLISHED, count_mechanism, counts_guarantee, joint_guarantee, joint_mechanism
from federation.errors import InputError
from federation.features import FeatureMap, with_fourier
from federation.grids.codec import bytes_per_party, question_digest
from federation.guarantee import Guarantee, NoGuarantee
from federation.ledger import Ledger
from federation.messages import Question
from federation.numerics.kernels.bandwidth import median_squared_distance

if TYPE_CHECKING:
    from aggregator.class_ratio import ClassRatio

_REACH = 40.0  # standard deviations, or records: Laplace noise goes further with a probability below e^-40
_CHECKS = ("answers about bags were checked on arrival; those out of form were left out",)


@dataclass(frozen=True, eq=False)
class _Release:
    """One release to come: what was asked for it, who collects the answers, and what it promises."""

    epsilon: float
    counts: BagAnswers
    features: BagAnswers
    guarantee: Guarantee | NoGuarantee


class RatioJob:
    """One release per epsilon, a single one with `noise: off`; every noise draw has an estimator of its own."""

    def __init__(self, world: World, variant: VariantPlan, options: ClassRatio) -> None:
        self._world, self._variant, self._options = world, variant, options
        plan = world.plan
        self._bags = Bags(plan.bags, len(plan.classes), plan.rows_per_person)
        if plan.parties * plan.bags < len(plan.classes):
            raise InputError(
                f"{plan.parties} parties with at most {plan.bags} bags cannot tell {len(plan.classes)} classes apart: "
                "class ratios need at least as many bags as classes; raise parties.count or parties.bags"
            )
        self._view = world.views.at(OFF, math.inf)
        epsilons = (math.inf,) if options.noise == OFF else plan.epsilons
        self._releases = [self._ask(epsilon) for epsilon in epsilons]

    def costs(self) -> list[int]:
        """Bytes that one party sends for each release."""
        asked = ({id(one.counts): one.counts, id(one.features): one.features}.values() for one in self._releases)
        return [sum(bytes_per_party(answers.question.fields()) for answers in both) for both in asked]

    def finish(self, ledger: Ledger) -> list[dict[str, float]]:
        """Charge the releases, fit an estimator to each noise draw and write them; returns diagnostics of the first."""
        fitting = Fitting(self._options, self._feature_map, self._view.public.rows, self._world.plan.split)
        described: list[tuple[Described, ...]] = []
        diagnostics: list[dict[str, float]] = []
        for one in self._releases:
            ledger.charge(self._variant.name, one.guarantee, _CHECKS, question_digest(one.counts.question))
            labelled = self._labelled(one)
            described.append(tuple(fitting.fit(labelled, draw).to_arrays() for draw in range(labelled.draws)))
            diagnostics.append(labelled.conditioning())
        self._world.write(
            ReleasedRatios,
            self._variant.name,
            [one.epsilon for one in self._releases],
            described,
            [self._feature_map] * len(self._releases),
            [one.guarantee for one in self._releases],
        )
        return diagnostics

    @cached_property
    def _feature_map(self) -> FeatureMap:
        """What rows pass before the estimator: random Fourier features at the end when embeddings are sent."""
        feature_map, options = self._view.public.feature_map, self._options
        if options.submit == "rows":
            return feature_map
        gamma = (options.bandwidth or 1.0) / median_squared_distance(self._view.public.rows)
        return with_fourier(feature_map, gamma, options.dimensions, self._world.plan.split)

    def _ask(self, epsilon: float) -> _Release:
        noising = self._noising(epsilon)
        if self._options.protect == "row":
            share = self._options.label_share
            # Counts move by sqrt 2 and sums of rows by 2: this weight gives labels their share of the squares.
            weight = math.sqrt(2 * share / (1 - share))
            both = NoisyEmbeddingsQuestion(self._bags, self._feature_map, weight, noising)
            guarantee: Guarantee | NoGuarantee = local_guarantee(self._world.plan, joint_guarantee(both))
            answers = self._collect(both, guarantee)
            return _Release(epsilon, answers, answers, guarantee)
        counts = CountsQuestion(self._bags, noising)
        guarantee = local_guarantee(self._world.plan, counts_guarantee(counts))
        return _Release(epsilon, self._collect(counts, guarantee), self._collect(self._unlabelled, None), guarantee)

    @property
    def _unlabelled(self) -> Question:
        """What bags look like without labels and noise."""
        if self._options.submit == "embedding":
            return EmbeddingsQuestion(self._bags, self._feature_map)
        return RowsQuestion(self._bags, self._feature_map, self._world.plan.largest_bag)

    def _noising(self, epsilon: float) -> Noising:
        plan, options = self._world.plan, self._options
        mechanism: dict[str, str | float] = {"noise": options.noise}
        if options.noise != OFF:
            mechanism |= {"epsilon": epsilon, "delta": plan.delta}
        if options.floor is not None:
            mechanism["floor"] = options.floor
        if options.pseudo_count is not None:
            mechanism["pseudo_count"] = options.pseudo_count
        # Not named after the variant: estimators of the same noisy answers are one release to the parties.
        purpose = f"{plan.world}|{options.protect}|{'|'.join(map(str, mechanism.values()))}"
        if options.protect == "row":  # other features are another release, from which equal noise would cancel
            purpose += f"|{options.label_share}|{options.dimensions}|{options.bandwidth or 1.0}"
        draws = 1 if options.noise == OFF else plan.draws
        return Noising(mechanism, draws, purpose, plan.noise_seed is not None)

    def _collect(self, question: Question, guarantee: Guarantee | NoGuarantee | None) -> BagAnswers:
        plan = self._world.plan
        promise = guarantee if isinstance(guarantee, Guarantee) else None
        counts, sums = self._reaches(question)
        collector = BagAnswers(question, plan.parties, plan.largest_bag, promise, counts, sums)
        return self._world.inquiry.add(question, self._view.training, collector)

    def _reaches(self, question: Question) -> tuple[float, float]:
        """How far noise may take counts and sums of rows: as far as that of no honest party ever will."""
        if isinstance(question, NoisyEmbeddingsQuestion):
            deviation = float(joint_mechanism(question).parameters["scale"])
            return _REACH * deviation / question.label_weight, _REACH * deviation
        if isinstance(question, CountsQuestion) and self._options.noise not in (OFF, PUBLISHED):
            variance = count_mechanism(question).covariance(self._world.plan.largest_bag)[0, 0]
            return _REACH * max(math.sqrt(variance), 1.0), 0.0  # whole records are many deviations of little noise
        return 0.0, 0.0

    def _labelled(self, one: _Release) -> Labelled:
        """The bags of which everything is known, and that are large enough to learn from."""
        party, number = shared_bags(one.counts, one.features, least=least_rows(self._options))
        sizes = one.counts.sizes[party, number]
        counts = one.counts.array("counts").swapaxes(1, 2)[party, number].swapaxes(0, 1)
        covariance, variance = self._noise_of(one, sizes)
        return Labelled(
            sizes=sizes,
            counts=counts,
            count_noise=covariance,
            features=self._features(one, party, number),
            sum_variance=variance,
        )

    def _features(self, one: _Release, party: np.ndarray, number: np.ndarray) -> list[np.ndarray] | np.ndarray:
        """Rows of each bag, or the means (draws or 1, M, D) of all."""
        if self._options.submit == "rows":
            rows, sizes = one.features.array("rows"), one.features.sizes
            return [rows[k, b, : int(sizes[k, b])] for k, b in zip(party, number, strict=True)]
        means = one.features.array("means")
        if self._options.protect == "row":
            return means.swapaxes(1, 2)[party, number].swapaxes(0, 1)
        return means[party, number][None]

    def _noise_of(self, one: _Release, sizes: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Covariances (M, C, C) of the bags' counts, None when not known; variance of a bag's sum of rows."""
        question, classes = one.counts.question, self._bags.classes
        if isinstance(question, NoisyEmbeddingsQuestion):
            variance = float(joint_mechanism(question).parameters["scale"]) ** 2
            centring = np.eye(classes) - 1 / classes
            return np.tile(centring * variance / question.label_weight**2, (len(sizes), 1, 1)), variance
        assert isinstance(question, CountsQuestion)
        if self._options.noise in (OFF, PUBLISHED):
            return None, 0.0
        mechanism = count_mechanism(question)
        distinct, position = np.unique(sizes, return_inverse=True)
        return np.stack([mechanism.covariance(int(size)) for size in distinct])[position], 0.0
