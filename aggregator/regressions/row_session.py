"""A session that asks for what a regression needs of private rows, and learns from it and from public rows."""

from __future__ import annotations

import math

import numpy as np

from aggregator.answers.asked_moments import asked_moments
from aggregator.answers.moment_answers import MomentTotals
from aggregator.contract.session import OneRound
from aggregator.regressions.row_estimate import PUBLIC_ENOUGH, PublicMoment, estimate, public_share
from aggregator.regressions.unit_rows import unit_rows
from aggregator.releases.regression_models import linear
from aggregator.releases.released_estimators import Described
from aggregator.world.plan import WorldPlan
from aggregator.world.world import World
from federation.contract.query import OFF
from federation.contract.trust import honest
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from federation.queries.labels import LabelledRows
from federation.queries.row_sums import RowMomentsNoise, RowMomentsQuestion


class RowSession(OneRound):
    """One question about all rows of every party, and a regression from each noise draw of the summed answers.

    X'X is asked for where the public rows, n and the noise say that it is worth its numbers; X'y gets the same noise
    with it and without. `secure` asks for shares of one noise, `shrunk` is as for `estimate`. Raises `InputError`
    without a range of labels, and for too few public rows.
    """

    def __init__(self, world: World, noise: RowMomentsNoise, *, secure: bool, draws: int, shrunk: bool = True) -> None:
        plan, view = world.plan, world.views.at(OFF, math.inf)
        key = id(view)  # which the world holds
        rows = world.views.table.rows
        feature_map = world.once(("unit rows", key), lambda: unit_rows(view.public.feature_map, rows))
        self._public = world.once(("public moment", key), lambda: PublicMoment(feature_map.transform(rows)))
        self._range, self._shrunk = world.require_label_range(), shrunk
        contributors = honest(plan.parties, plan.quorum, plan.colluding) if secure and noise.aims else 0
        labelled = LabelledRows(feature_map, *self._range, plan.bags * plan.largest_bag)
        seeded = plan.noise_seed is not None

        def question(second: bool) -> RowMomentsQuestion:
            """With X'X or without."""
            release = world.release(noise, ("row", "secure" if secure else "parties", second))
            return RowMomentsQuestion(
                noise, labelled, contributors, second, release=release, draws=draws, seeded=seeded
            )

        chosen = question(True)
        if noise.aims and self._public_enough(chosen, plan):
            chosen = question(False)
        self._statistic = chosen.statistic
        asked, promised = asked_moments(chosen, view.training, plan)
        # The middle of the range is an intercept beside the columns that are cut with their row.
        released = FeatureMap(feature_map.columns, (*feature_map.steps, Append(1.0)))
        super().__init__(released, [asked], promised, chosen.release)

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, and how many answers were scaled and clipped."""
        return self._sums.told

    def learn(self, draw: int) -> Described:
        """The model of one noise draw."""
        answers = self._sums
        known = (self._statistic, self._public, answers.total("sums")[draw], answers.rows, answers.summed_variance)
        low, high = self._range
        weights = (high / 2 - low / 2) * estimate(*known, self._shrunk)
        return linear(np.append(weights, low / 2 + high / 2), self._range)

    def diagnostics(self) -> dict[str, float]:
        """The share of X'X that is public rows': 1 where parties were not asked for theirs."""
        answers = self._sums
        return {"public_share": public_share(self._statistic, self._public, answers.rows, answers.summed_variance)}

    @property
    def _sums(self) -> MomentTotals:
        """What parties answered, summed."""
        found: MomentTotals = self.answers[0]
        return found

    def _public_enough(self, question: RowMomentsQuestion, plan: WorldPlan) -> bool:
        """Whether the second moment of public rows is so near, beside the noise, that no other is wanted."""
        wholes = plan.parties / question.contributors if question.contributors else plan.parties
        rows = plan.private_rows or plan.parties * question.most_rows
        share = public_share(question.statistic, self._public, rows, wholes * question.mechanism().variance())
        return share >= PUBLIC_ENOUGH
