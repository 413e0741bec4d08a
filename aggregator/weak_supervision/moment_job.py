"""The job of `mean_operator`: asks for the sum of y x, and minimises a linear-odd loss with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from aggregator.answers.bag_answers import BagAnswers
from aggregator.answers.label_answers import LabelAnswers
from aggregator.answers.local_answers import CHECKED
from aggregator.answers.moment_answers import MomentAnswers
from aggregator.central.releasing import local_guarantee
from aggregator.released.models import ReleasedModels
from aggregator.weak_supervision.moment_estimates import Moments, of_private_labels, of_sums
from aggregator.world.job import World
from aggregator.world.plan import VariantPlan
from aggregator.world.premises import LOCAL, SUMMED
from federation.bag_messages import Bags, Noising, RowsQuestion
from federation.bag_releases import OFF
from federation.features import FeatureMap, completed, with_fourier, with_polynomial
from federation.grids.codec import bytes_per_party, question_digest
from federation.guarantee import Guarantee, NoGuarantee
from federation.label_messages import LabelledRows, PrivateLabelsQuestion
from federation.label_releases import guarantee_of
from federation.ledger import Ledger
from federation.messages import Question
from federation.moment_messages import MomentQuestion
from federation.moment_releases import moment_guarantee
from federation.numerics.kernels.bandwidth import median_squared_distance
from federation.numerics.linear_odd.minimiser import minimise_linear_odd
from federation.numerics.norms import within_norm
from federation.privacy.moments.bounds import regularisation

if TYPE_CHECKING:
    from aggregator.mean_operator import MeanOperator

_FEATURES_OF_A_MEDIAN = 16.0  # from so many on the kernel is as wide as the median distance
_CHECKS = (CHECKED,)
_CHECKS_OF_SHARES = ("shares were checked by the simulated summation, as one with proofs of range would do",)


@dataclass(frozen=True, eq=False)
class _Release:
    """One release to come: what was asked for it, who collects the answers, and what it promises."""

    epsilon: float
    question: Question
    answers: MomentAnswers | LabelAnswers
    guarantee: Guarantee | NoGuarantee

    def moments(self) -> Moments:
        """What the answers say of the mean of y x."""
        return of_sums(self.answers) if isinstance(self.answers, MomentAnswers) else of_private_labels(self.answers)


class MomentJob:
    """One release per epsilon, a single one with `noise: off`; every noise draw has weights of its own."""

    def __init__(self, world: World, variant: VariantPlan, options: MeanOperator) -> None:
        self._world, self._variant, self._options = world, variant, options
        plan = world.plan
        world.require_two_classes(variant.kind)
        self._most = plan.bags * plan.largest_bag
        self._view = world.views.at(OFF, math.inf)
        self._rows = self._ask_for_rows() if options.unlabelled_rows == "own" else None
        epsilons = (math.inf,) if options.noise == OFF else plan.epsilons
        self._releases = [self._ask(epsilon) for epsilon in epsilons]

    def costs(self) -> list[int]:
        """Bytes that one party sends for each release."""
        rows = 0 if self._rows is None else bytes_per_party(self._rows.question.fields())
        return [rows + bytes_per_party(one.question.fields()) for one in self._releases]

    def finish(self, ledger: Ledger) -> list[dict[str, float]]:
        """Charge the releases, minimise for each noise draw and write the models; returns public diagnostics."""
        loss = self._options.chosen_loss()
        weights: list[np.ndarray] = []
        diagnostics: list[dict[str, float]] = []
        for one in self._releases:
            checks = _CHECKS_OF_SHARES if self._options.summation == "secure" else _CHECKS
            ledger.charge(self._variant.name, one.guarantee, checks, question_digest(one.question))
            moments = one.moments()
            strength = self._options.regularisation or regularisation(moments.noise_variance)
            found = minimise_linear_odd(loss, self._unlabelled, moments.estimates, strength).weights
            weights.append(np.stack([-found, found], axis=1) / 2)
            diagnostics.append({"regularisation": strength, "noise_norm": math.sqrt(moments.noise_variance)})
        self._world.write(
            ReleasedModels,
            self._variant.name,
            [one.epsilon for one in self._releases],
            weights,
            [self._feature_map] * len(self._releases),
            [one.guarantee for one in self._releases],
        )
        return diagnostics

    @cached_property
    def _feature_map(self) -> FeatureMap:
        """What rows pass before the loss: to norm at most 1, with a constant feature unless the map bounds norms."""
        options = self._options
        if options.expansion == "fourier":
            rows = self._view.public.rows
            # Few features leave room for structure much finer than the median distance.
            bandwidth = options.bandwidth or max(1.0, _FEATURES_OF_A_MEDIAN / rows.shape[1])
            gamma = bandwidth / median_squared_distance(rows)
            return with_fourier(self._view.public.feature_map, gamma, options.dimensions, self._world.plan.split)
        bounded = completed(self._view.public.feature_map)
        return with_polynomial(bounded, options.degree) if options.expansion == "polynomial" else bounded

    @cached_property
    def _unlabelled(self) -> np.ndarray:
        """The rows of the even term (n, d), of norm at most 1."""
        if self._rows is None:
            return self._cut(self._feature_map.transform(self._world.views.table.rows))
        sizes = self._rows.sizes.astype(np.int64)
        held = np.arange(self._rows.array("rows").shape[2]) < sizes[:, :, None]
        return self._cut(self._rows.array("rows")[held])

    def _cut(self, rows: np.ndarray) -> np.ndarray:
        """As parties do."""
        return within_norm(rows, self._options.l1_bound)

    def _ask_for_rows(self) -> BagAnswers:
        plan = self._world.plan
        question = RowsQuestion(Bags(plan.bags, 2), self._feature_map, plan.largest_bag)
        collector = BagAnswers(question, plan.parties, plan.largest_bag, None)
        return self._world.inquiry.add(question, self._view.training, collector)

    def _ask(self, epsilon: float) -> _Release:
        plan, options = self._world.plan, self._options
        question = self._question(epsilon)
        of_labels, secure = isinstance(question, PrivateLabelsQuestion), options.summation == "secure"
        own = guarantee_of(question) if isinstance(question, PrivateLabelsQuestion) else moment_guarantee(question)
        guarantee = local_guarantee(plan, own, SUMMED if secure else LOCAL)
        self._world.gate(self._variant.name, guarantee)
        promise = guarantee if isinstance(guarantee, Guarantee) and not secure else None
        answers = (LabelAnswers if of_labels else MomentAnswers)(question, plan.parties, promise)  # type: ignore[arg-type]
        return _Release(epsilon, question, self._world.inquiry.add(question, self._view.training, answers), guarantee)

    def _question(self, epsilon: float) -> MomentQuestion | PrivateLabelsQuestion:
        plan, options = self._world.plan, self._options
        draws = 1 if options.noise == OFF else plan.draws
        mechanism = options.mechanism(epsilon, plan.delta)
        name = self._world.release_name(self._variant.kind, (*mechanism.values(), *options.asked()))
        noising = Noising(mechanism, draws, name, plan.noise_seed is not None)
        if options.noise == "randomised_response":
            return PrivateLabelsQuestion(LabelledRows(self._feature_map, 0.0, 1.0, self._most), noising)
        contributors = math.ceil(plan.quorum * plan.parties) if options.summation == "secure" else 0
        return MomentQuestion(self._feature_map, self._most, options.protect, contributors, noising)
