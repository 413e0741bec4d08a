"""Sessions of regressions that send one query about all rows of every party, and learn from summed responses.

- `RowSession` protects whole rows. It asks for one noisy release of X'X, X'y and y'y of private rows.
- `LabelTotalsSession` protects labels. It asks for one noisy X'y over all parties, who share its noise.

`estimate` learns a regression from the sums of private rows and from public rows like them (`PublicMoment`).
`unit_rows` is a public map that gives private rows norm 1 at most, for sums over them that get noise.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aggregator.collectors.one_query import QuerySession
from aggregator.learners.shrinkage import shrink
from aggregator.regressions.models import from_moments, shrunk
from aggregator.releases.estimator_models import linear
from aggregator.releases.models import Described
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import TrialPlan
from aggregator.trial.trial import World
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap, bounds_norms
from federation.features.steps import Affine, Append, ClipNorm
from federation.mechanisms.labels.shaped_gaussian import ShapeKind, fit_shape
from federation.mechanisms.sums.row_sums import RowStatistic
from federation.numerics.rows import Floats, whitening
from federation.queries.labels import LabelledRows
from federation.queries.row_sums import RowMomentsNoise, RowMomentsQuestion


class RowSession(QuerySession):
    """One question about all rows of every party, and a regression from each noise draw of the summed answers.

    X'X is asked for where the public rows, n and the noise say that it is worth its numbers; X'y gets the same noise
    with it and without. `secure` asks for shares of one noise, `shrunk` is as for `estimate`. Raises `InputError`
    without a range of labels, and for too few public rows.
    """

    def __init__(self, world: World, noise: RowMomentsNoise, *, secure: bool, draws: int, shrunk: bool) -> None:
        plan, rows = world.plan, world.views.table.rows
        key = id(world.view)  # which the world holds
        feature_map = world.once(("unit rows", key), lambda: unit_rows(world.feature_map, rows))
        self._public = world.once(("public moment", key), lambda: PublicMoment(feature_map.transform(rows)))
        self._range, self._shrunk = world.require_label_range(), shrunk
        contributors = plan.terms.honest if secure and noise.aims else 0
        labelled = LabelledRows(feature_map, *self._range, plan.public.bags * plan.public.largest_bag)

        def question(second: bool) -> RowMomentsQuestion:
            """With X'X or without."""
            release = world.release(noise, ("row", "secure" if secure else "parties", second))
            return RowMomentsQuestion(noise, labelled, contributors, second, release=release, **world.drawn(draws))

        chosen = question(True)
        if noise.aims and self._public_enough(chosen, plan):
            chosen = question(False)
        self._statistic = chosen.statistic
        # The middle of the range is an intercept beside the columns that are cut with their row.
        released = FeatureMap(feature_map.columns, (*feature_map.steps, Append(1.0)))
        super().__init__(world, chosen, feature_map=released)

    def learn(self, draw: int) -> Described:
        """The model of one noise draw."""
        known = (self._statistic, self._public, self.collected.total("sums")[draw], *self._rows_and_variance)
        low, high = self._range
        weights = (high / 2 - low / 2) * estimate(*known, self._shrunk)
        return linear(np.append(weights, low / 2 + high / 2), self._range)

    def diagnostics(self) -> dict[str, float]:
        """The share of X'X that is public rows': 1 where parties were not asked for theirs."""
        return {"public_share": public_share(self._statistic, self._public, *self._rows_and_variance)}

    @property
    def _rows_and_variance(self) -> tuple[float, float]:
        """Rows of the parties that answered, and the variance of the noise on each number of their sum."""
        return float(self.collected.total("size")), self.collected.variance

    def _public_enough(self, question: RowMomentsQuestion, plan: TrialPlan) -> bool:
        """Whether the second moment of public rows is so near, beside the noise, that no other is wanted."""
        wholes = plan.terms.parties / question.contributors if question.contributors else plan.terms.parties
        rows = plan.public.rows or plan.terms.parties * question.most_rows
        share = public_share(question.statistic, self._public, rows, wholes * question.mechanism().variance())
        return share >= PUBLIC_ENOUGH


class LabelTotalsSession(QuerySession):
    """One question about the public rows and private labels of every party, and a model from each noise draw.

    The noise has a `shape` that the aggregator's own public rows decide: with shapes of their own parties could not
    share it. Rows pass the shape's linear map, behind which the noise is alike in all directions. `shrunk_model` says
    whether the model takes account of the noise. Raises `InputError` without a range of labels, and for fewer than 10
    public rows.
    """

    def __init__(
        self, world: World, noise: RowMomentsNoise, shape: ShapeKind, *, draws: int, shrunk_model: bool
    ) -> None:
        plan = world.plan
        self._range, self._shrunk = world.require_label_range(), shrunk_model
        feature_map = world.once(("shaped rows", shape, id(world.view)), lambda: _shaped(world, shape))
        question = RowMomentsQuestion(
            noise,
            LabelledRows(feature_map, *self._range, plan.public.bags * plan.public.largest_bag),
            plan.terms.honest,
            second=False,
            protect="label",
            release=world.release(noise, ("label", "secure", shape)),
            **world.drawn(draws),
        )
        super().__init__(world, question, feature_map=feature_map)

    def learn(self, draw: int) -> Described:
        """The model of one noise draw."""
        answers, (low, high) = self.collected, self._range
        half, gram, row_sum = high / 2 - low / 2, answers.total("gram"), answers.total("row_sum")
        moment = half * answers.total("sums")[draw] + (low / 2 + high / 2) * row_sum
        if not self._shrunk:
            return from_moments(gram, moment, self._range)
        noise = half**2 * answers.variance * np.eye(len(gram))
        return shrunk(gram, moment, noise, row_sum, float(answers.total("weight")), self._range)

    def diagnostics(self) -> dict[str, float]:
        """The mean weight of a row: below 1 where rows lie beyond the public ones that shape the noise."""
        return {"mean_weight": float(self.collected.total("weight")) / float(self.collected.total("size"))}


def _shaped(world: World, shape: ShapeKind) -> FeatureMap:
    """The map followed by that of the shape, in which no public row is longer than 1."""
    raw, feature_map = world.views.table.rows, world.feature_map
    if len(raw) < LEAST_PUBLIC_ROWS:
        raise InputError(
            f"trust: secure needs {LEAST_PUBLIC_ROWS} public rows or more, to shape the noise that parties share, got "
            f"{len(raw)}; raise data.auxiliary, or use trust: none"
        )
    found = fit_shape(feature_map.transform(raw), shape)
    middle = np.zeros(len(found.transform))
    return FeatureMap(feature_map.columns, (*feature_map.steps, Affine(middle, found.transform)))


PUBLIC_ENOUGH = 0.8  # a share of the public second moment from which on that of private rows is not worth its noise

_LEAST = 0.02  # of the median eigenvalue of public rows: noise may leave nothing, or less
_DEVIATIONS = 2.0  # of the noise in y'y, added to it


@dataclass(frozen=True, eq=False)
class PublicMoment:
    """What public rows (N, d) of norm 1 at most, N >= 2, tell of sums over n private ones."""

    rows: Floats

    def gram(self, rows: float) -> Floats:
        """X'X (d, d) of so many rows like these."""
        return np.asarray(self._mean * rows)

    def variance(self, rows: float) -> float:
        """Of an entry of `gram`, on average over entries: the public rows are a sample."""
        square = np.square(self.rows)
        spread = (square.T @ square) / len(self.rows) - self._mean**2
        return rows**2 * max(float(spread.mean()), 0.0) / len(self.rows)

    @cached_property
    def constant(self) -> Floats:
        """Weights (d,) by which rows come nearest to the answer 1."""
        whiten, _ = whitening(self._mean)
        return np.asarray(whiten @ (whiten.T @ self.rows.mean(axis=0)))

    @cached_property
    def _mean(self) -> Floats:
        return np.asarray(self.rows.T @ self.rows) / len(self.rows)


def public_share(statistic: RowStatistic, public: PublicMoment, rows: float, variance: float) -> float:
    """The share w of the public rows' second moment in the best mixture with a noisy private one, in [0, 1].

    `variance` is that of the noise in each number of the statistic, over all `rows`.
    """
    private = statistic.gram_variance(variance)
    if variance == 0:
        return 0.0
    known = public.variance(rows)
    return 1.0 if known == 0 else 1 / (1 + known / private)


def estimate(
    statistic: RowStatistic, public: PublicMoment, sums: Floats, rows: float, variance: float, shrunk: bool = True
) -> Floats:
    """Weights (d,) for labels from -1 to 1, from noisy `sums` (D,) over so many private rows.

    X'X is mixed with that of public rows by their variances, and its eigenvalues are kept away from 0. With it come the
    posterior means of `aggregator.learners.shrinkage.shrink`, whose range is as wide as y'y leaves it: neither the mean
    label nor what rows explain of labels is larger than their mean square. Unless `shrunk` it is least squares.

    Examples:
        >>> random = np.random.default_rng(0)
        >>> rows = random.uniform(-0.5, 0.5, size=(1000, 3))
        >>> statistic, labels = RowStatistic(3), rows @ [0.9, 0.0, -0.6]
        >>> noise = statistic.noise(epsilon=3.0, delta=1e-6, rows=1000)
        >>> noisy = statistic.of(rows, labels) + noise.variance() ** 0.5 * random.normal(size=statistic.dimension)
        >>> estimate(statistic, PublicMoment(rows[:50]), noisy, 1000, noise.variance()).round(1)
        array([ 0.9,  0.1, -0.5])
    """
    found = statistic.moments(sums)
    share = public_share(statistic, public, rows, variance)
    known = public.gram(rows)
    mixed = known if found.gram is None else share * known + (1 - share) * found.gram
    if share > 0:
        values, vectors = np.linalg.eigh(mixed)
        least = _LEAST * float(np.median(np.linalg.eigvalsh(known)))
        mixed = (vectors * np.maximum(values, least)) @ vectors.T
    if not shrunk or variance == 0:
        whiten, _ = whitening(mixed)
        return np.asarray(whiten @ (whiten.T @ found.moment))
    noise = statistic.moment_variance(variance) * np.eye(statistic.features)
    # The root mean square of labels in [-1, 1], so large that the noise in the sum of squares hardly hides more.
    most = max(float(found.squares), 0.0) + _DEVIATIONS * math.sqrt(statistic.squares_variance(variance))
    far = math.sqrt(min(most / rows, 1.0))
    return shrink(mixed, found.moment, noise, ones=mixed @ public.constant, rows=rows, label_range=(-far, far)).weights


LEAST_PUBLIC_ROWS = 10

_WEAKEST = 1e-3  # of the largest variance: weaker directions hardly vary
_ROWS_PER_DIRECTION = 5  # public rows that a direction's variance is estimated from
_SHORT = 0.95  # of the public rows are not cut


def unit_rows(feature_map: FeatureMap, rows: np.ndarray) -> FeatureMap:
    """The map followed by whitening, a constant column, and norms cut at the 95 % quantile, all fitted on public rows.

    `rows` (N, columns) are raw. Whitened are directions of more than .001 of the largest variance, at most N/5 of them.
    A map whose rows have norm 1 at most already stays as it is. Raises `InputError` for fewer than 10 public rows, and
    for rows that are all equal.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(50, 3)) @ np.diag([1.0, 10.0, 1e-4])
        >>> unit_rows(FeatureMap(3, ()), rows)
        FeatureMap(3 -> 3: affine, append, clip_norm)
    """
    if len(rows) < LEAST_PUBLIC_ROWS:
        raise InputError(
            f"protect: row needs {LEAST_PUBLIC_ROWS} public rows or more, to scale private ones by and to learn from, "
            f"got {len(rows)}; raise data.auxiliary"
        )
    if bounds_norms(feature_map):
        return feature_map
    features = feature_map.transform(rows)
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(features, rowvar=False)))
    kept = int((variances > _WEAKEST * variances[-1]).sum())
    further = fit([{"whiten": max(1, min(kept, len(rows) // _ROWS_PER_DIRECTION))}, "constant"], features)
    norms = np.linalg.norm(further.transform(features), axis=1)
    clip = ClipNorm(float(np.quantile(norms, _SHORT)))
    return FeatureMap(feature_map.columns, (*feature_map.steps, *further.steps, clip))
