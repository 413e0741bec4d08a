"""Models are released as they are decoded unless a protocol refines them."""

from __future__ import annotations

import numpy as np

from aggregator.ensembles.sessions import Refinement
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows


def test_nothing_becomes_of_models():
    rows = np.random.default_rng(0).normal(size=(10, 3))
    feature_map = fit(["unit_norm"], rows)
    plain = Refinement(PublicRows(feature_map, feature_map.transform(rows), ["unit_norm"]))
    assert plain.feature_map is feature_map
    assert plain.checks == ()

    def decode(noisy, mechanism):
        return noisy

    assert plain.refined(decode) is decode
