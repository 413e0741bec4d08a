"""Questions of the protocols for two classes, as tests ask them."""

from __future__ import annotations

import numpy as np

from federation.questions.bags import Noising
from federation.features import completed, fit
from federation.hypotheses import Hypothesis
from federation.questions.marginals import Exchange, MarginalsQuestion
from federation.questions.moments import MomentQuestion
from federation.numerics.binning import Bins

ROWS = np.random.default_rng(5).normal(size=(200, 3))


def noising(noise, epsilon=1.0, delta=1e-5, seeded=True, **further):
    known = {"noise": noise} if noise == "off" else {"noise": noise, "epsilon": epsilon, "delta": delta, **further}
    return Noising(known, 1, "a purpose", seeded)


def moment(noise="pure", protect="label", contributors=0, **further):
    return MomentQuestion(completed(fit(["standardise"], ROWS)), 50, protect, contributors, noising(noise, **further))


def marginals(noise="pure", protect="row", adjacency="add_remove", asks="errors", queries=2, query=0):
    feature_map = fit(["standardise"], ROWS)
    bins = Bins.fit(feature_map.transform(ROWS), 5)
    hypothesis = Hypothesis.of([np.ones((3, 2)), np.ones((2, 1))], [np.zeros(2), np.zeros(1)])
    exchange = Exchange("an exchange", queries, query)
    return MarginalsQuestion(feature_map, bins, asks, hypothesis, exchange, protect, adjacency, noising(noise))
