"""The session of `mean_operator`: asks for the sum of y x, and minimises a linear-odd loss with it."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from aggregator.answers.asked_moments import asked_moments
from aggregator.answers.bag_answers import BagAnswers
from aggregator.contract.session import Asked, OneRound
from aggregator.learners.kernels.distances import median_squared_distance
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.learners.mean_operators.bounds import predicted_accuracy
from aggregator.protocols.mean_operator.moment_estimates import Moments, denoised, of_sums
from aggregator.protocols.mean_operator.moment_options import MomentOptions
from aggregator.protocols.mean_operator.response_weight import response_weight
from aggregator.world.world import World
from federation.contract.query import OFF
from federation.contract.trust import honest
from federation.features.feature_map import FeatureMap, completed, with_fourier, with_polynomial
from federation.mechanisms.sums import row_sums as summed_response
from federation.mechanisms.sums.row_sums import LEAST_EPSILON, regularisation
from federation.numerics.rows import within_norm
from federation.queries.bags import Bags, RowsQuestion
from federation.queries.row_sums import RESPONSE, MomentKind, MomentNoise, MomentQuestion

_FEATURES_OF_A_MEDIAN = 16.0  # from so many on the kernel is as wide as the median distance
_MOST_DENOISED = 1000  # features: the work grows with their cube


class MomentSession(OneRound):
    """The sum of y x and perhaps the parties' own rows, and weights from each noise draw of the sum."""

    def __init__(self, world: World, options: MomentOptions, epsilon: float, draws: int, *, share: bool) -> None:
        """With `share` parties may share one noise."""
        self._world, self._options, self._draws, self._share = world, options, draws, share
        world.require_two_classes()
        self._most = world.plan.bags * world.plan.largest_bag
        self._view = world.views.at(OFF, math.inf)
        self._question = self._noisy_question(epsilon)
        asked, promised = asked_moments(self._question, self._view.training, world.plan)
        super().__init__(self._features, [*self._ask_for_rows(), asked], promised, self._question.release)

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, and how many answers were scaled and clipped."""
        found: tuple[str, ...] = self.answers[-1].told
        return found

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
        """The mean strength of the regularisation, the root mean square norm of the noise, and what to expect by it."""
        norm = math.sqrt(self._noisy.errors[0])
        found = {"regularisation": float(self._strengths.mean()), "noise_norm": norm}
        return {**found, "predicted_accuracy": predicted_accuracy(norm)} if norm else found

    @cached_property
    def _noisy(self) -> Moments:
        """The mean of y x as the answers say it."""
        square = 1.0 if self._rows is None else float(np.square(self._unlabelled).sum(axis=1).mean())
        return of_sums(self.answers[-1], square)

    @cached_property
    def _moments(self) -> Moments:
        """The mean of y x that is learned from."""
        if self._options.denoises and self._features.dimension <= _MOST_DENOISED:
            return denoised(self.answers[-1], self._unlabelled)
        return self._noisy

    @cached_property
    def _strengths(self) -> np.ndarray:
        """Of the regularisation, for each noise draw."""
        given = self._options.regularisation
        return np.array([given or regularisation(error) for error in self._moments.errors])

    @cached_property
    def _weights(self) -> np.ndarray:
        """Of all noise draws (draws, 2, d): what is solved for one is solved for all of the same strength."""
        loss, moments, found = (
            self._options.chosen_loss(),
            self._moments.estimates,
            np.empty_like(self._moments.estimates),
        )
        for strength in np.unique(self._strengths):
            equal = self._strengths == strength
            found[equal] = minimise_linear_odd(loss, self._unlabelled, moments[equal], strength).weights
        return np.stack([-found, found], axis=1) / 2

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

    def _noisy_question(self, epsilon: float) -> MomentQuestion:
        plan, options = self._world.plan, self._options
        if not self._share:
            return self._asking(self._kind, epsilon)
        shares = self._asking(self._kind, epsilon, honest(plan.parties, plan.quorum, plan.colluding))
        if options.noise == "auto" and options.may_respond and epsilon >= LEAST_EPSILON:
            # Responses of all rows against all shares, more of which may come than are the whole noise. Labels then
            # hide themselves, and need no summation.
            harm = self._all_rows * shares.response().label_variance * self._weight(epsilon)
            if harm < shares.mechanism().noise_norm() ** 2 * plan.parties / shares.contributors:
                return self._asking(RESPONSE, epsilon)
        return shares

    @property
    def _all_rows(self) -> int:
        """Of all parties together, at most where the plan does not say it."""
        return self._world.plan.private_rows or self._world.plan.parties * self._most

    def _weight(self, epsilon: float) -> float:
        """How much errors of randomised response harm, by the public rows."""
        variance = summed_response.calibrate_summed_response(epsilon).label_variance / self._all_rows
        rows = self._cut(self._features.transform(self._world.views.table.rows))
        return response_weight(rows, variance)

    @property
    def _kind(self) -> MomentKind:
        """What parties are asked for: `auto` leaves them a choice only where rows are sent as they are."""
        open_choice = self._options.protect == "row" or self._options.may_respond
        return "sums" if self._options.noise == "auto" and not open_choice else self._options.noise

    def _asking(self, kind: MomentKind, epsilon: float, contributors: int = 0) -> MomentQuestion:
        plan, options = self._world.plan, self._options
        noise = MomentNoise(kind, epsilon, options.spent_delta(plan.delta), options.l1_bound)
        return MomentQuestion(
            noise,
            self._features,
            max(1, plan.smallest_bag),
            self._most,
            options.protect,
            contributors,
            self._weight(epsilon) if kind == "auto" and options.may_respond and epsilon >= LEAST_EPSILON else 1.0,
            release=self._world.release(noise, options.asked(self._share)),
            draws=self._draws,
            seeded=plan.noise_seed is not None,
        )
