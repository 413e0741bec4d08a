"""The session of `class_ratio`: asks about bags, and fits an estimator to every noisy answer."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from aggregator.answers.bag_answers import BagAnswers, shared_bags
from aggregator.answers.count_range import CountRange
from aggregator.answers.honest_range import REACH
from aggregator.answers.robust_sums import Changes
from aggregator.contract.premises import local_guarantee
from aggregator.contract.session import Asked, OneRound
from aggregator.learners.kernels.distances import median_squared_distance
from aggregator.protocols.class_ratio.ratio_fitting import Fitting, Labelled, least_rows
from aggregator.protocols.class_ratio.ratio_options import RatioOptions
from aggregator.releases.released_estimators import Described
from aggregator.world.world import World
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.query import OFF, Noise, Question, ReleaseId
from federation.features.feature_map import FeatureMap, with_fourier
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.numerics.rows import Floats
from federation.queries.bags import (
    PUBLISHED,
    Bags,
    CountsNoise,
    CountsQuestion,
    EmbeddingsQuestion,
    JointNoise,
    NoisyEmbeddingsQuestion,
    RowsQuestion,
)

_count_range = lru_cache(CountRange)  # variants that ask the same have the same
_CHECKS = ("answers about bags were checked on arrival; those out of form were left out",)


class RatioSession(OneRound):
    """Counts of all bags and what the bags look like, and an estimator from each noise draw of the answers."""

    def __init__(self, world: World, options: RatioOptions, epsilon: float, draws: int) -> None:
        self._world, self._options, self._draws = world, options, draws
        self._found: dict[str, float] = {}
        plan = world.plan
        self._bags = Bags(plan.bags, len(plan.classes), plan.rows_per_person)
        self._require_bags()
        self._view = world.views.at(OFF, math.inf)
        asked, promised, release = self._ask(epsilon)
        super().__init__(self._features, asked, promised, release, _CHECKS)

    def _require_bags(self) -> None:
        plan = self._world.plan
        if plan.parties * plan.bags < len(plan.classes):
            raise InputError(
                f"{plan.parties} parties with at most {plan.bags} bags cannot tell {len(plan.classes)} classes apart: "
                "class ratios need at least as many bags as classes; raise parties.count or parties.bags"
            )

    def _ask(self, epsilon: float) -> tuple[list[Asked], Guarantee | NoGuarantee, ReleaseId]:
        """The questions with their collectors, what answers promise together, and the release of the noisy ones."""
        self._noised = self._noisy_question(epsilon)
        promised = local_guarantee(self._world.plan, self._noised.promise())
        asked = [self._collected(self._noised, promised)]
        if not isinstance(self._noised, NoisyEmbeddingsQuestion):
            asked.append(self._collected(self._unlabelled, None))
        return asked, promised, self._noised.release

    @property
    def _features(self) -> FeatureMap:
        """What rows pass before the estimator: random Fourier features at the end when embeddings are sent."""
        return self._world.once(("features", self._options), self._fit_features)

    @property
    def _counts(self) -> BagAnswers:
        found: BagAnswers = self.answers[0]
        return found

    @property
    def _shapes(self) -> BagAnswers:
        """What bags look like; in one with the counts where rows are protected."""
        found: BagAnswers = self.answers[-1]
        return found

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, and how many answers were scaled."""
        return (*super().checks, *Changes.of([self._counts.changes]))

    def learn(self, draw: int) -> Described:
        """The estimator of one noise draw."""
        estimator = self._fitting.fit(*self._of_draw(draw))
        if draw == 0:
            self._found = dict(estimator.diagnostics_)
        return estimator.to_arrays()

    def diagnostics(self) -> dict[str, float]:
        """How well the first draw's proportions tell classes apart, and what its estimator found about the bags."""
        return {**self._of_draw(0)[0].conditioning(), **self._found}

    def _of_draw(self, draw: int) -> tuple[Labelled, int]:
        """What is known of the bags, and which of its noisy versions is that of the draw."""
        return self._labelled, draw

    @property
    def _fitting(self) -> Fitting:
        fitting = partial(Fitting, self._options, self.feature_map, self._view.public.rows, self._world.plan.split)
        return self._world.once(("fitting", self._options), fitting)

    def _fit_features(self) -> FeatureMap:
        feature_map, options = self._view.public.feature_map, self._options
        if options.submit == "rows":
            return feature_map
        gamma = options.embedded_bandwidth / median_squared_distance(self._view.public.rows)
        return with_fourier(feature_map, gamma, options.dimensions, self._world.plan.split)

    @property
    def _answered(self) -> dict[str, Any]:
        """How often noisy answers are given, and from which bits."""
        return {"draws": self._draws, "seeded": self._world.plan.noise_seed is not None}

    @property
    def _label_weight(self) -> float:
        """Of counts beside sums of rows: counts move by sqrt 2 and sums by 2, and labels get their share of squares."""
        share = self._options.label_share
        return math.sqrt(2 * share / (1 - share))

    def _noisy_question(self, epsilon: float) -> CountsQuestion | NoisyEmbeddingsQuestion:
        options, delta, asked = self._options, self._world.plan.delta, self._answered
        if options.protect == "row":
            weight = self._label_weight
            joint = JointNoise("gaussian", epsilon, delta)
            # Other features are another release, from which equal noise would cancel.
            parts = (options.label_share, options.dimensions, options.embedded_bandwidth)
            release = self._named(joint, *parts)
            return NoisyEmbeddingsQuestion(joint, self._bags, self._features, weight, release=release, **asked)
        noise = CountsNoise(options.noise, epsilon, delta, options.floor, options.pseudo_count)
        extra = [value for value in (options.floor, options.pseudo_count) if value is not None]
        return CountsQuestion(noise, self._bags, release=self._named(noise, *extra), **asked)

    def _named(self, noise: Noise, *parts: Any) -> ReleaseId:
        """Not named after the variant: estimators of the same noisy answers are one release to the parties."""
        return ReleaseId(self._world.named(self._options.protect, *noise.named, *parts))

    @property
    def _unlabelled(self) -> EmbeddingsQuestion | RowsQuestion:
        """What bags look like without labels and noise."""
        if self._options.submit == "embedding":
            return EmbeddingsQuestion(self._bags, self._features)
        return RowsQuestion(self._bags, self._features, self._world.plan.largest_bag)

    def _collected(self, question: Question, guarantee: Guarantee | NoGuarantee | None) -> Asked:
        plan = self._world.plan
        promise = guarantee if isinstance(guarantee, Guarantee) else None
        counts, sums = self._reaches(question)
        known = self._range if question is self._noised else None
        collector = BagAnswers(question, plan.parties, plan.largest_bag, promise, counts, sums, known)
        return Asked(question, self._view.training, collector)

    @property
    def _range(self) -> CountRange | None:
        """What honest counts reach; None where their noise is none, that of rows, or of another law than integers'."""
        question, plan = self._noised, self._world.plan
        if not plan.robust or not isinstance(question, CountsQuestion) or self._options.noise in (OFF, PUBLISHED):
            return None
        mechanism = question.mechanism()
        return _count_range(mechanism, plan.bags) if isinstance(mechanism, AdditiveCounts) else None

    def _reaches(self, question: Question) -> tuple[float, float]:
        """How far noise may take counts and sums of rows: as far as that of no honest party ever will."""
        if isinstance(question, NoisyEmbeddingsQuestion):
            deviation = float(question.mechanism().parameters["scale"])
            return REACH * deviation / question.label_weight, REACH * deviation
        if isinstance(question, CountsQuestion) and self._options.noise not in (OFF, PUBLISHED):
            variance = question.mechanism().covariance(self._world.plan.largest_bag)[0, 0]
            return REACH * max(math.sqrt(variance), 1.0), 0.0  # whole records are many deviations of little noise
        return 0.0, 0.0

    @cached_property
    def _labelled(self) -> Labelled:
        """The bags of which everything is known, and that are large enough to learn from."""
        party, number = shared_bags(self._counts, self._shapes, least=least_rows(self._options))
        sizes = self._counts.sizes[party, number]
        counts = self._counts.array("counts").swapaxes(1, 2)[party, number].swapaxes(0, 1)
        covariance, variance = self._noise_of(sizes)
        return Labelled(
            sizes=sizes,
            counts=counts,
            count_noise=covariance,
            features=self._looks(party, number),
            sum_variance=variance,
            groups=self._groups(number if self._world.plan.common_bags else party),
        )

    def _groups(self, place: np.ndarray) -> np.ndarray:
        """Parties, or bags that are the same at all, are persons or places where there are enough to leave some out.

        Else each bag is one.
        """
        return place if len(np.unique(place)) >= self._bags.classes + 2 else np.arange(len(place))

    def _looks(self, party: np.ndarray, number: np.ndarray) -> list[Floats] | Floats:
        """Rows of each bag, or the means (draws or 1, M, D) of all."""
        if self._options.submit == "rows":
            rows, sizes = self._shapes.array("rows"), self._shapes.sizes
            return [rows[k, b, : int(sizes[k, b])] for k, b in zip(party, number, strict=True)]
        means: Floats = self._shapes.array("means")
        if self._options.protect == "row":
            means = means.swapaxes(1, 2)[party, number].swapaxes(0, 1)
        else:
            means = means[party, number][None]
        return means

    def _noise_of(self, sizes: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Covariances (M, C, C) of the bags' counts, None when not known; variance of a bag's sum of rows."""
        question, classes = self._noised, self._bags.classes
        if isinstance(question, NoisyEmbeddingsQuestion):
            variance = float(question.mechanism().parameters["scale"]) ** 2
            centring = np.eye(classes) - 1 / classes
            return np.tile(centring * variance / question.label_weight**2, (len(sizes), 1, 1)), variance
        if self._options.noise in (OFF, PUBLISHED):
            return None, 0.0
        mechanism = question.mechanism()
        distinct, position = np.unique(sizes, return_inverse=True)
        return np.stack([mechanism.covariance(int(size)) for size in distinct])[position], 0.0
