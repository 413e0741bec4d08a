"""Released regressions: linear ones and networks come back as they were, and others are refused."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.releases.estimator_models import ReleasedRegressions, linear, neural
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError

ROWS = np.random.default_rng(0).normal(size=(60, 2))
MAP = fit(["standardise", "constant"], ROWS)


def released(*models):
    """One release, with these models for its draws."""
    return ReleasedRegressions("v", (), ("a", "b"), (), np.ones(1), (models,), (MAP,), ({},))


@pytest.fixture(scope="module")
def network():
    labels = np.tanh(ROWS[:, 0])
    return BagNetwork((-1.0, 1.0), epochs=2).fit_labels(MAP.transform(ROWS), labels)


def test_linear_models_and_networks_come_back_side_by_side(tmp_path, network):
    weights = np.array([1.0, -2.0, 0.5])
    released(linear(weights), neural(network)).save(tmp_path / "v.npz")
    found = ReleasedRegressions.load(tmp_path / "v.npz")
    behind = MAP.transform(ROWS)
    np.testing.assert_array_equal(found.predict(0, 0, behind), behind @ weights)
    np.testing.assert_array_equal(found.predict(0, 1, behind), network.predict(behind))
    for draw in (0, 1):
        np.testing.assert_array_equal(found.predicted(0, draw, ROWS), found.predict(0, draw, behind))


def test_predictions_stay_within_the_range_that_the_release_was_made_with(tmp_path):
    weights = np.array([1.0, -2.0, 0.5])
    released(linear(weights, (-1.0, 2.0)), linear(weights)).save(tmp_path / "v.npz")
    found, behind = ReleasedRegressions.load(tmp_path / "v.npz"), MAP.transform(ROWS)
    predictions = found.predicted(0, 0, ROWS)
    np.testing.assert_array_equal(predictions, np.clip(behind @ weights, -1.0, 2.0))
    assert (predictions.min(), predictions.max()) == (-1.0, 2.0)
    np.testing.assert_array_equal(found.predicted(0, 1, ROWS), behind @ weights)  # as of files that tell no range


def test_a_network_says_that_it_is_one(network):
    description, arrays = neural(network)
    expected, kept = network.to_arrays()
    assert description == {**expected, "learner": BagNetwork.name}
    assert arrays.keys() == kept.keys()
    assert "learner" not in expected


def test_a_learner_that_nobody_knows_is_refused():
    description, arrays = linear(np.ones(3))
    found = released(({**description, "learner": "forest"}, arrays))
    with pytest.raises(InputError, match="the learner 'forest' of a released regression is not known; update"):
        found.predicted(0, 0, ROWS)


def test_rows_of_other_columns_are_refused():
    with pytest.raises(InputError):
        released(linear(np.ones(3))).predicted(0, 0, ROWS[:, :1])
