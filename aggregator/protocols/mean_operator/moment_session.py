"""The session of `mean_operator`: asks for the sum of y x, and minimises a linear-odd loss with it."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from aggregator.answers.bag_answers import BagAnswers
from aggregator.answers.label_answers import LabelAnswers
from aggregator.answers.local_answers import CHECKED
from aggregator.contract.premises import LOCAL, SUMMED, local_guarantee
from aggregator.contract.session import Asked, OneRound
from aggregator.learners.kernels.distances import median_squared_distance
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.protocols.mean_operator.moment_answers import MomentAnswers
from aggregator.protocols.mean_operator.moment_estimates import Moments, of_private_labels, of_sums
from aggregator.protocols.mean_operator.moment_options import RANDOMISED_RESPONSE, MomentOptions
from aggregator.world.world import World
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.question import OFF
from federation.features.feature_map import FeatureMap, completed, with_fourier, with_polynomial
from federation.mechanisms.moments.bounds import regularisation
from federation.numerics.norms import within_norm
from federation.questions.bags import Bags, RowsQuestion
from federation.questions.labels import LabelledRows, LabelsNoise, PrivateLabelsQuestion
from federation.questions.moments import MomentNoise, MomentQuestion

_FEATURES_OF_A_MEDIAN = 16.0  # from so many on the kernel is as wide as the median distance
_CHECKS = (CHECKED,)
_CHECKS_OF_SHARES = ("shares were checked by the simulated summation, as one with proofs of range would do",)


class MomentSession(OneRound):
    """The sum of y x and perhaps the parties' own rows, and weights from each noise draw of the sum."""

    def __init__(self, world: World, options: MomentOptions, epsilon: float, draws: int) -> None:
        self._world, self._options, self._draws = world, options, draws
        world.require_two_classes()
        self._most = world.plan.bags * world.plan.largest_bag
        self._view = world.views.at(OFF, math.inf)
        self._question = self._noisy_question(epsilon)
        promised = local_guarantee(world.plan, self._question.promise(), SUMMED if self._secure else LOCAL)
        asked = [*self._ask_for_rows(), self._ask(promised)]
        checks = _CHECKS_OF_SHARES if self._secure else _CHECKS
        super().__init__(self._features, asked, promised, self._question.release, checks)

    @property
    def _features(self) -> FeatureMap:
        """What rows pass before the loss: to norm at most 1, with a constant feature unless the map bounds norms."""
        options = self._options
        key = ("features", options.expansion, options.dimensions, options.bandwidth, options.degree)
        return self._world.once(key, self._expanded)

    @property
    def _rows(self) -> BagAnswers | None:
        """The parties' own rows, asked for before the sums; None where they are not used."""
        found: BagAnswers | None = self.answers[0] if len(self.answers) > 1 else None
        return found

    def learn(self, draw: int) -> np.ndarray:
        """The weights (2, d) of one noise draw."""
        weights: np.ndarray = self._weights[draw]
        return weights

    def diagnostics(self) -> dict[str, float]:
        """The strength of the regularisation and the norm of the noise."""
        return {"regularisation": self._strength, "noise_norm": math.sqrt(self._moments.noise_variance)}

    @cached_property
    def _moments(self) -> Moments:
        """What the answers say of the mean of y x."""
        answers = self.answers[-1]
        return of_sums(answers) if isinstance(answers, MomentAnswers) else of_private_labels(answers)

    @property
    def _strength(self) -> float:
        return self._options.regularisation or regularisation(self._moments.noise_variance)

    @cached_property
    def _weights(self) -> np.ndarray:
        """Of all noise draws (draws, 2, d): what is solved for one is solved for all."""
        loss = self._options.chosen_loss()
        found = minimise_linear_odd(loss, self._unlabelled, self._moments.estimates, self._strength).weights
        return np.stack([-found, found], axis=1) / 2

    @property
    def _secure(self) -> bool:
        return self._options.summation == "secure"

    def _expanded(self) -> FeatureMap:
        options = self._options
        if options.expansion == "fourier":
            rows = self._view.public.rows
            # Few features leave room for structure much finer than the median distance.
            bandwidth = options.bandwidth or max(1.0, _FEATURES_OF_A_MEDIAN / rows.shape[1])
            gamma = bandwidth / median_squared_distance(rows)
            return with_fourier(self._view.public.feature_map, gamma, options.dimensions, self._world.plan.split)
        bounded = completed(self._view.public.feature_map)
        return with_polynomial(bounded, options.degree) if options.expansion == "polynomial" else bounded

    @property
    def _unlabelled(self) -> np.ndarray:
        """The rows of the even term (n, d), of norm at most 1."""
        return self._world.once(("rows", self._options.l1_bound, id(self._rows), id(self._features)), self._even_rows)

    def _even_rows(self) -> np.ndarray:
        if self._rows is None:
            return self._cut(self._features.transform(self._world.views.table.rows))
        sizes = self._rows.sizes.astype(np.int64)
        held = np.arange(self._rows.array("rows").shape[2]) < sizes[:, :, None]
        return self._cut(self._rows.array("rows")[held])

    def _cut(self, rows: np.ndarray) -> np.ndarray:
        """Rows shortened to the norms that parties shorten theirs to."""
        return within_norm(rows, self._options.l1_bound)

    def _ask_for_rows(self) -> list[Asked]:
        """For the parties' own rows, where they are used."""
        if self._options.unlabelled_rows != "own":
            return []
        plan = self._world.plan
        question = RowsQuestion(Bags(plan.bags, 2), self._features, plan.largest_bag)
        return [Asked(question, self._view.training, BagAnswers(question, plan.parties, plan.largest_bag, None))]

    def _ask(self, promised: Guarantee | NoGuarantee) -> Asked:
        parties = self._world.plan.parties
        promise = promised if isinstance(promised, Guarantee) and not self._secure else None
        question = self._question
        if isinstance(question, PrivateLabelsQuestion):
            return Asked(question, self._view.training, LabelAnswers(question, parties, promise))
        return Asked(question, self._view.training, MomentAnswers(question, parties, promise))

    def _noisy_question(self, epsilon: float) -> MomentQuestion | PrivateLabelsQuestion:
        plan, options = self._world.plan, self._options
        asked: dict[str, Any] = {"draws": self._draws, "seeded": plan.noise_seed is not None}
        delta = options.spent_delta(plan.delta)
        if options.noise == RANDOMISED_RESPONSE:
            response = LabelsNoise("one_bit", epsilon, delta)
            asked["release"] = self._world.release(response, options.asked())
            return PrivateLabelsQuestion(response, LabelledRows(self._features, 0.0, 1.0, self._most), **asked)
        noise = MomentNoise(options.noise, epsilon, delta, options.l1_bound)
        contributors = math.ceil(plan.quorum * plan.parties) if self._secure else 0
        return MomentQuestion(
            noise,
            self._features,
            self._most,
            options.protect,
            contributors,
            release=self._world.release(noise, options.asked()),
            **asked,
        )
