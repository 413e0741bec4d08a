"""A session that asks for one noisy X'y over all parties, who share its noise, and learns a regression from it."""

from __future__ import annotations

import math

import numpy as np

from aggregator.answers.shared_label_sums import SharedLabelSums
from aggregator.contract.premises import local_guarantee, summed
from aggregator.contract.session import Asked, OneRound
from aggregator.regressions.models import from_moments, shrunk
from aggregator.regressions.unit_rows import LEAST_PUBLIC_ROWS
from aggregator.releases.released_estimators import Described
from aggregator.world.world import World
from federation.contract.errors import InputError
from federation.contract.query import OFF
from federation.contract.trust import honest
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine
from federation.mechanisms.labels.shaped_gaussian import ShapeKind, fit_shape
from federation.queries.labels import LabelledRows
from federation.queries.row_sums import RowMomentsNoise, RowMomentsQuestion


class LabelTotalsSession(OneRound):
    """One question about the public rows and private labels of every party, and a model from each noise draw.

    The noise has a `shape` that the aggregator's own public rows decide: with shapes of their own parties could not
    share it. Rows pass the shape's linear map, behind which the noise is alike in all directions. `shrunk_model` says
    whether the model takes account of the noise. Raises `InputError` without a range of labels, and for fewer than 10
    public rows.
    """

    def __init__(
        self, world: World, noise: RowMomentsNoise, shape: ShapeKind, *, draws: int, shrunk_model: bool = True
    ) -> None:
        plan, view = world.plan, world.views.at(OFF, math.inf)
        self._range, self._shrunk = world.require_label_range(), shrunk_model
        feature_map = world.once(
            ("shaped rows", shape, id(view)), lambda: _shaped(world, view.public.feature_map, shape)
        )
        question = RowMomentsQuestion(
            noise,
            LabelledRows(feature_map, *self._range, plan.bags * plan.largest_bag),
            honest(plan.parties, plan.quorum, plan.colluding),
            second=False,
            protect="label",
            release=world.release(noise, ("label", "secure", shape)),
            draws=draws,
            seeded=plan.noise_seed is not None,
        )
        promised = local_guarantee(plan, question.promise(), summed(plan, question.mechanism().additive))
        asked = Asked(question, view.training, SharedLabelSums(question, plan))
        super().__init__(feature_map, [asked], promised, question.release)

    @property
    def checks(self) -> tuple[str, ...]:
        """That nobody saw an answer, and how the sum was made."""
        return self._sums.told

    def learn(self, draw: int) -> Described:
        """The model of one noise draw."""
        answers, (low, high) = self._sums, self._range
        half, gram, row_sum = high / 2 - low / 2, answers.total("gram"), answers.total("row_sum")
        moment = half * answers.total("sums")[draw] + (low / 2 + high / 2) * row_sum
        if not self._shrunk:
            return from_moments(gram, moment, self._range)
        noise = half**2 * answers.summed_variance * np.eye(len(gram))
        return shrunk(gram, moment, noise, row_sum, answers.weight, self._range)

    def diagnostics(self) -> dict[str, float]:
        """The mean weight of a row: below 1 where rows lie beyond the public ones that shape the noise."""
        return {"mean_weight": self._sums.weight / self._sums.rows}

    @property
    def _sums(self) -> SharedLabelSums:
        found: SharedLabelSums = self.answers[0]
        return found


def _shaped(world: World, feature_map: FeatureMap, shape: ShapeKind) -> FeatureMap:
    """The map followed by that of the shape, in which no public row is longer than 1."""
    raw = world.views.table.rows
    if len(raw) < LEAST_PUBLIC_ROWS:
        raise InputError(
            f"trust: secure needs {LEAST_PUBLIC_ROWS} public rows or more, to shape the noise that parties share, got "
            f"{len(raw)}; raise data.auxiliary, or use trust: none"
        )
    found = fit_shape(feature_map.transform(raw), shape)
    middle = np.zeros(len(found.transform))
    return FeatureMap(feature_map.columns, (*feature_map.steps, Affine(middle, found.transform)))
