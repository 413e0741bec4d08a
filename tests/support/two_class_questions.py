"""Questions of the protocols for two classes, as tests ask them."""

from dataclasses import replace

import numpy as np

from aggregator.trial.feature_fitting import fit
from federation.contract.query import ReleaseId
from federation.features.feature_map import completed
from federation.numerics.binning import Bins
from federation.queries.labels import LabelledRows
from federation.queries.marginals import Hypothesis, MarginalsNoise, MarginalsQuestion
from federation.queries.row_sums import MomentNoise, MomentQuestion, RowMomentsNoise, RowMomentsQuestion

ROWS = np.random.default_rng(5).normal(size=(200, 3))


def moment(noise="pure", protect="label", contributors=0, seeded=True, **further):
    known = MomentNoise(noise, **{"epsilon": 1.0, "delta": 1e-5, **further})
    feature_map, release = completed(fit(["standardise"], ROWS)), ReleaseId("a purpose")
    return MomentQuestion(known, feature_map, 1, 50, protect, contributors, release=release, seeded=seeded)


def row_moments(
    noise="gaussian", contributors=0, second=True, feature_map=None, label_range=(0.0, 1.0), protect="row", **further
):
    known = RowMomentsNoise(noise, **{"epsilon": 1.0, "delta": 1e-5, **further})
    rows = LabelledRows(feature_map or completed(fit(["standardise"], ROWS)), *label_range, 67)
    return RowMomentsQuestion(known, rows, contributors, second, protect, release=ReleaseId("a purpose"), seeded=True)


def marginals(
    noise="pure",
    protect="row",
    adjacency="add_remove",
    asks="errors",
    queries=2,
    query=0,
    seeded=True,
    contributors=0,
    **further,
):
    known = MarginalsNoise(noise, **{"epsilon": 1.0, "delta": 1e-5, **further})
    feature_map = fit(["standardise"], ROWS)
    bins = Bins.fit(feature_map.transform(ROWS), 5)
    hypothesis = Hypothesis.of([np.ones((3, 2)), np.ones((2, 1))], [np.zeros(2), np.zeros(1)])
    release = ReleaseId("an exchange", queries, query)
    return MarginalsQuestion(
        known, feature_map, bins, asks, hypothesis, protect, adjacency, contributors, release=release, seeded=seeded
    )


def unseeded(question):
    return replace(question, seeded=False)


def wide(question):
    """The same for parties of up to 100 rows."""
    return replace(question, most=100)
