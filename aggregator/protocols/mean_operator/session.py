"""The session of `mean_operator`: it asks for the sum of y x, and minimises a linear-odd loss with its noisy mean.

`RowTotals` derives noisy means from the summed responses. `of_sums` and `denoised` turn these into estimates of the
mean operator, the mean of y x with y = 1 or -1.

`WorstSums` is the worst pair of neighbours for audits: a row that is as long as any turns into its opposite.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from aggregator.collectors.collectors import Kept, Secure, Summed, asked_openly
from aggregator.collectors.one_query import QuerySession
from aggregator.contract.worst_case import ROWS, TWO_CLASSES, Rows, Seen, SummedWorstCase, in_one_sum
from aggregator.learners.kernels.exact import median_squared_distance
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.learners.mean_operators.accuracy import predicted_accuracy
from aggregator.learners.shrinkage import Shrinkage
from aggregator.protocols.mean_operator.options import MomentOptions, response_weight
from aggregator.trial.trial import World
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.features.feature_map import FeatureMap, completed, with_fourier, with_polynomial
from federation.mechanisms.sums import row_sums as summed_response
from federation.mechanisms.sums.row_sums import LEAST_EPSILON, regularisation
from federation.numerics.rows import within_norm
from federation.queries.bags import Bags, RowsQuestion
from federation.queries.row_sums import RESPONSE, MomentKind, MomentNoise, MomentQuestion, SummedQuestion

_FEATURES_OF_A_MEDIAN = 16.0  # from so many on the kernel is as wide as the median distance
_MOST_DENOISED = 1000  # features: the work grows with their cube


class MomentSession(QuerySession):
    """The sum of y x and perhaps the parties' own rows, and weights from each noise draw of the sum."""

    def __init__(self, world: World, options: MomentOptions, epsilon: float, draws: int, *, share: bool) -> None:
        """With `share` parties may share one noise."""
        self._world, self._options, self._draws, self._share = world, options, draws, share
        world.require_two_classes()
        self._most = world.plan.public.bags * world.plan.public.largest_bag
        self._question, public, before = self._noisy_question(epsilon), world.plan.public, []
        if options.unlabelled_rows == "own":
            rows = RowsQuestion(Bags(public.bags, 2), self._features, public.largest_bag)
            before = [asked_openly(rows, world.view.training, world.plan)]
        super().__init__(world, self._question, feature_map=self._features, before=before)

    @property
    def _features(self) -> FeatureMap:
        """What rows pass before the loss: to norm at most 1, with a constant feature unless the map bounds norms."""
        options = self._options
        key = ("features", options.expansion, options.dimensions, options.bandwidth, options.degree)
        return self._world.once(key, self._expanded)

    @property
    def _rows(self) -> Kept | None:
        """The parties' own rows, asked for before the sums; None where they are not used."""
        found: Kept | None = self.answers[0] if len(self.answers) > 1 else None
        return found

    def learn(self, draw: int) -> np.ndarray:
        """The weights (2, d) of one noise draw."""
        return np.asarray(self._weights[draw])

    def diagnostics(self) -> dict[str, float]:
        """The mean strength of the regularisation, the root mean square norm of the noise, and what to expect by it."""
        norm = math.sqrt(self._noisy.errors[0])
        found = {"regularisation": float(self._strengths.mean()), "noise_norm": norm}
        return {**found, "predicted_accuracy": predicted_accuracy(norm)} if norm else found

    @property
    def _totals(self) -> "RowTotals":
        """The sums over all parties."""
        return RowTotals(self._question, self.collected)

    @cached_property
    def _noisy(self) -> "Moments":
        """The mean of y x as the answers say it."""
        square = 1.0 if self._rows is None else float(np.square(self._unlabelled).sum(axis=1).mean())
        return of_sums(self._totals, square)

    @cached_property
    def _moments(self) -> "Moments":
        """The mean of y x that is learned from."""
        if self._options.denoises and self._features.dimension <= _MOST_DENOISED:
            return denoised(self._totals, self._unlabelled)
        return self._noisy

    @cached_property
    def _strengths(self) -> np.ndarray:
        """Strengths of the regularisation (draws,), one for each noise draw."""
        given = self._options.regularisation
        return np.array([given or regularisation(error) for error in self._moments.errors])

    @cached_property
    def _weights(self) -> np.ndarray:
        """Weights of all noise draws (draws, 2, d): draws of the same strength are solved together."""
        loss, moments = self._options.chosen_loss(), self._moments.estimates
        found = np.empty_like(moments)
        for strength in np.unique(self._strengths):
            equal = self._strengths == strength
            found[equal] = minimise_linear_odd(loss, self._unlabelled, moments[equal], strength).weights
        return np.stack([-found, found], axis=1) / 2

    def _expanded(self) -> FeatureMap:
        options, public = self._options, self._world.view.public
        if options.expansion == "fourier":
            rows = public.rows
            # Few features leave room for structure much finer than the median distance.
            bandwidth = options.bandwidth or max(1.0, _FEATURES_OF_A_MEDIAN / rows.shape[1])
            gamma = bandwidth / median_squared_distance(rows)
            return with_fourier(public.feature_map, gamma, options.dimensions, self._world.plan.task.split)
        bounded = completed(public.feature_map)
        return with_polynomial(bounded, options.degree) if options.expansion == "polynomial" else bounded

    @property
    def _unlabelled(self) -> np.ndarray:
        """The rows of the even term (n, d), of norm at most 1."""
        return self._world.once(("rows", self._options.l1_bound, id(self._rows), id(self._features)), self._even_rows)

    def _even_rows(self) -> np.ndarray:
        if self._rows is None:
            return self._cut(self._features.transform(self._world.views.table.rows))
        sizes = self._rows.array("sizes").astype(np.int64)
        held = np.arange(self._rows.array("rows").shape[2]) < sizes[:, :, None]
        return self._cut(self._rows.array("rows")[held])

    def _cut(self, rows: np.ndarray) -> np.ndarray:
        """Rows shortened to the norms that parties shorten theirs to."""
        return within_norm(rows, self._options.l1_bound)

    def _noisy_question(self, epsilon: float) -> MomentQuestion:
        plan, options = self._world.plan, self._options
        if not self._share:
            return self._asking(self._kind, epsilon)
        shares = self._asking(self._kind, epsilon, plan.terms.honest)
        if options.noise == "auto" and options.may_respond and epsilon >= LEAST_EPSILON:
            # Responses of all rows against all shares, more of which may come than are the whole noise. Labels then
            # hide themselves, and need no summation.
            harm = self._all_rows * shares.response().label_variance * self._weight(epsilon)
            if harm < shares.mechanism().noise_norm() ** 2 * plan.terms.parties / shares.contributors:
                return self._asking(RESPONSE, epsilon)
        return shares

    @property
    def _all_rows(self) -> int:
        """Rows of all parties together; the largest possible number where the plan does not state it."""
        return self._world.plan.public.rows or self._world.plan.terms.parties * self._most

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
        noise = MomentNoise(kind, epsilon, options.spent_delta(plan.public.delta), options.l1_bound)
        return MomentQuestion(
            noise,
            self._features,
            max(1, plan.public.smallest_bag),
            self._most,
            options.protect,
            contributors,
            self._weight(epsilon) if kind == "auto" and options.may_respond and epsilon >= LEAST_EPSILON else 1.0,
            release=self._world.release(noise, options.asked(self._share)),
            **self._world.drawn(self._draws),
        )


RUNS = 200_000
FOURIER = 2  # random features: noise scales with their norm, which is the same for any number
CHANGE = "one row or label changes"
MOST = 2**16  # rows of a party: more than that need noise on their sum only at an epsilon above 13
_LINE = np.append(np.linspace(0.0, 10.0, 10_001), 1e6)  # along which the worst row is sought


@dataclass(frozen=True, eq=False)
class WorstSums(SummedWorstCase[MomentQuestion]):
    """Parties that hold the same row several times, with labels 0 and 1 by turns but for those that change.

    There are `changed` of these, at the first party: all are 0 here and 1 there. Colluders, who tell their shares, are
    not among those who are summed: whoever sees the sum of all takes theirs off it.

    Where the number of rows decides between noise on the sum and randomised response, there is a party for either, and
    every run is of one of them by turns: whoever sees it knows which.
    """

    asks, about = MomentQuestion, "sums is for the mean operator"

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """All parties that are summed, or seen by turns."""
        asked = self.own(question)
        row = worst_row(asked)
        held = [self._held(row, size, there) for size in self._sizes(asked)]
        return (*held, *(self._held(row, ROWS, None) for _ in range(self.added(asked) - 1)))

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All that are summed, or seen by turns."""
        return max(self.added(question), len(self._sizes(self.own(question))))

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """All runs, or those in which a party's turn comes."""
        turns = len(self._sizes(self.own(question)))
        return [replace(question, draws=-(-runs // turns))]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """The sums of shares (runs, d), or those of each party by turns, and how many rows it has (runs,)."""
        [sent] = submissions
        sums, sizes = sent.arrays["sums"], sent.arrays["size"]
        if self.shared:
            sums = sums.sum(axis=0, keepdims=True)
            sizes = sizes[:1]  # no party adds noise by its size
        _, draws, width = sums.shape
        return {"sums": sums.swapaxes(0, 1).reshape(-1, width), "size": np.tile(sizes, draws)}

    def _held(self, row: np.ndarray, size: int, there: bool | None) -> Rows:
        """The rows of one party; None for one where nothing changes."""
        position = np.arange(size)
        labels = ((position - self.changed) % 2 == 0).astype(np.int64)
        if there is not None:
            labels[: self.changed] = int(there)
        return Rows(np.tile(row, (size, 1)), labels)

    def _sizes(self, question: MomentQuestion) -> list[int]:
        """Rows of the parties whose turn comes."""
        below = question.response_below
        few = [self.changed] if self.changed < below else []
        return [*few, max(ROWS, below)] if below <= question.most else few


def worst_sums(units: int, *, shared: bool, options: Mapping[str, Any]) -> WorstSums:
    """Of a party's own sum, or of a sum of shares; for two units two rows change, or half of the shares are missing."""
    return WorstSums(
        in_one_sum(CHANGE, shared),
        np.eye(2),
        RUNS,
        # Of so many rows that shares of noise on their sum are less than randomised response, and all sizes are there.
        world={**TWO_CLASSES, **({"rows": MOST**2} if shared else {"largest_bag": MOST})},
        options=options,
        units=units,
        shared=shared,
    )


def worst_row(question: MomentQuestion) -> np.ndarray:
    """The raw row which behind the map, cut as parties cut it, is the longest in the norm that the noise goes by."""
    columns = question.feature_map.columns
    rows = np.concatenate([np.outer(_LINE, direction) for direction in (np.ones(columns), np.eye(columns)[0])])
    cut = within_norm(question.feature_map.transform(rows), question.noise.l1_bound)
    summing = question.response_below <= question.most
    order = 1 if summing and question.mechanism().name.endswith("laplace") else 2
    return np.asarray(rows[np.argmax(np.linalg.norm(cut, ord=order, axis=1))])


@dataclass(frozen=True, eq=False)
class RowTotals:
    """Responses to a question about all rows, added up, and what follows from their sum and number of rows.

    It makes no difference how the responses were added up: in clear, or by secure aggregation.
    """

    question: SummedQuestion
    collected: Summed | Secure

    @property
    def rows(self) -> float:
        """Rows of the parties that answered."""
        return float(self.collected.total("size"))

    @property
    def moments(self) -> np.ndarray:
        """Means over all rows of what is summed, as estimates of the mean of y x, one per noise draw, (draws, d)."""
        return self.collected.total("sums") / self.rows

    @property
    def noise_variance(self) -> float:
        """Variance in each entry of an estimate of noise on sums: of all shares, or of all parties' own noise."""
        return self.collected.variance / self.rows**2

    @property
    def response_variance(self) -> float:
        """Factor of randomised response: times the mean of x x', it is the covariance of an estimate's error."""
        response = self.question.label_noise()
        rows = self.collected.counted("responding_rows")
        return rows * response.label_variance / self.rows**2 if response else 0.0


_SIGNS = (-1.0, 1.0)
_STRENGTHS = 13  # of the prior: few are enough where labels have one range
_CONSTANT_SHARES = (1.0, 0.1, 0.01)  # classes may be anything from even to nearly one, and are often near even


@dataclass(frozen=True, eq=False)
class Moments:
    """`estimates` (draws, d), one per noise draw, and the expected squared norm of the error of each, (draws,)."""

    estimates: np.ndarray
    errors: np.ndarray


def of_sums(answers: RowTotals, square: float = 1.0) -> Moments:
    """From noisy sums of y x, where rows x of those who answer by randomised response have this mean squared norm.

    Errors are those of the noise: public numbers, and the same for all draws.
    """
    estimates = answers.moments
    variance = estimates.shape[1] * answers.noise_variance + square * answers.response_variance
    return Moments(estimates, np.full(len(estimates), variance))


def denoised(answers: RowTotals, rows: np.ndarray) -> Moments:
    """The same given the parties' own rows (n, d): what linear regression of y on x explains, shrunk by the noise.

    The mean of y x is that of f x, where f is the least-squares fit of y. The noise has the known covariance
    v I + w X'X/n, and the prior knows that y is from -1 to 1. Errors are those that are left a posteriori.
    """
    count = len(rows)
    gram, ones = rows.T @ rows, rows.sum(axis=0)
    noise = answers.noise_variance * np.eye(len(gram)) + answers.response_variance * gram / count
    shrinkage = Shrinkage(
        gram,
        count**2 * noise,
        ones=ones,
        rows=count,
        label_range=_SIGNS,
        grid=_STRENGTHS,
        constant_shares=_CONSTANT_SHARES,
    )
    known = [shrinkage.posterior(count * moment) for moment in answers.moments]
    back = gram / count
    errors = np.array([np.trace(back @ one.covariance @ back) for one in known])
    return Moments(np.array([back @ one.weights for one in known]), errors.clip(0.0))
