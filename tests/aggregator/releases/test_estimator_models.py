"""Released estimators of class ratios: what they say of a set of raw rows, and intervals of those that know errors.

Released regressions: linear ones and networks come back as they were, and others are refused.
"""

import numpy as np
import pytest
from support.mixtures import Mixtures, skewed

from aggregator.learners.bag_regression.network import BagNetwork
from aggregator.learners.class_ratios.catalogue import estimator_class
from aggregator.learners.class_ratios.drift import intervals
from aggregator.releases.estimator_models import ReleasedRatios, ReleasedRegressions, linear, neural
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError

WORLD = Mixtures(3)
SHARES = np.array([0.6, 0.3, 0.1])
PROPORTIONS = skewed(3, 0.1)


@pytest.fixture(scope="module")
def rows():
    return WORLD.rows(SHARES, 500, np.random.default_rng(7))


def released(*names):
    """A release of one draw by each of these estimators, behind a map that scales."""
    bags = WORLD.bags(PROPORTIONS, 200, np.random.default_rng(1))
    feature_map = fit(["standardise"], np.concatenate(bags))
    fitted = [
        estimator_class(name)().fit([feature_map.transform(bag) for bag in bags], PROPORTIONS).to_arrays()
        for name in names
    ]
    draws, columns = tuple((one,) for one in fitted), tuple("abcdef")
    maps, guarantees = (feature_map,) * len(names), ({},) * len(names)
    return ReleasedRatios("v", ("x", "y", "z"), columns, (), np.ones(len(names)), draws, maps, guarantees)


def test_a_set_passes_the_feature_map_before_its_ratios_are_estimated(rows, tmp_path):
    given = released("class_means", "mmd")
    given.save(tmp_path / "v.npz")
    found = ReleasedRatios.load(tmp_path / "v.npz")
    for release in (0, 1):
        ratios = found.predicted(release, 0, rows)
        np.testing.assert_array_equal(ratios, given.predicted(release, 0, rows))
        behind = found.feature_maps[release].transform(rows)
        np.testing.assert_array_equal(ratios, found.estimator(release, 0).predict(behind))
        assert ratios.sum() == pytest.approx(1)
        assert np.abs(ratios - SHARES).sum() < 0.2


def test_intervals_are_those_of_estimators_that_know_their_errors(rows, monkeypatch):
    found = released("class_means", "mmd")
    behind = found.feature_maps[0].transform(rows)
    covered = found.intervals(0, 0, rows, 0.9)
    np.testing.assert_array_equal(covered, intervals(found.estimator(0, 0), behind, level=0.9))
    assert covered.shape == (3, 2)
    assert (covered[:, 0] <= SHARES).all()
    assert (covered[:, 1] >= SHARES).all()
    assert found.intervals(1, 0, rows, 0.9) is None

    def refusing(*arguments, **options):
        raise InputError("too few rows")

    monkeypatch.setattr("aggregator.learners.class_ratios.drift.intervals", refusing)
    assert found.intervals(0, 0, rows, 0.9) is None


def test_refused():
    found = released("class_means")
    found.releases[0][0][0]["estimator"] = "clas_means"
    with pytest.raises(InputError, match="class_means"):
        found.estimator(0, 0)
    description, arrays = linear(np.ones(3))
    with pytest.raises(InputError, match="forest"):
        regression_models_released(({**description, "learner": "forest"}, arrays)).predicted(0, 0, ROWS)
    with pytest.raises(InputError):
        regression_models_released((description, arrays)).predicted(0, 0, ROWS[:, :1])


ROWS = np.random.default_rng(0).normal(size=(60, 2))
MAP = fit(["standardise", "constant"], ROWS)


def regression_models_released(*models):
    """One release, with these models for its draws."""
    return ReleasedRegressions("v", (), ("a", "b"), (), np.ones(1), (models,), (MAP,), ({},))


def test_linear_models_and_networks_come_back_side_by_side_and_predict_within_their_range(tmp_path):
    network = BagNetwork((-1.0, 1.0), epochs=2).fit_labels(MAP.transform(ROWS), np.tanh(ROWS[:, 0]))
    weights = np.array([1.0, -2.0, 0.5])
    regression_models_released(linear(weights), neural(network)).save(tmp_path / "v.npz")
    found = ReleasedRegressions.load(tmp_path / "v.npz")
    behind = MAP.transform(ROWS)
    np.testing.assert_array_equal(found.predict(0, 0, behind), behind @ weights)
    np.testing.assert_array_equal(found.predict(0, 1, behind), network.predict(behind))
    for draw in (0, 1):
        np.testing.assert_array_equal(found.predicted(0, draw, ROWS), found.predict(0, draw, behind))
    description, arrays = neural(network)
    expected, kept = network.to_arrays()
    assert description == {**expected, "learner": BagNetwork.name}
    assert arrays.keys() == kept.keys()
    assert "learner" not in expected
    regression_models_released(linear(weights, (-1.0, 2.0)), linear(weights)).save(tmp_path / "v.npz")
    found, behind = ReleasedRegressions.load(tmp_path / "v.npz"), MAP.transform(ROWS)
    predictions = found.predicted(0, 0, ROWS)
    np.testing.assert_array_equal(predictions, np.clip(behind @ weights, -1.0, 2.0))
    assert (predictions.min(), predictions.max()) == (-1.0, 2.0)
    np.testing.assert_array_equal(found.predicted(0, 1, ROWS), behind @ weights)  # as of files that tell no range
