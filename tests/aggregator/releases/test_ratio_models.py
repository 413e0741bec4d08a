"""Released estimators of class ratios: what they say of a set of raw rows, and intervals of those that know errors."""

from __future__ import annotations

import numpy as np
import pytest
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.catalogue import estimator_class
from aggregator.learners.class_ratios.drift import intervals
from aggregator.releases.estimator_models import ReleasedRatios
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


def test_intervals_are_those_of_estimators_that_know_their_errors(rows):
    found = released("class_means", "mmd")
    behind = found.feature_maps[0].transform(rows)
    covered = found.intervals(0, 0, rows, 0.9)
    np.testing.assert_array_equal(covered, intervals(found.estimator(0, 0), behind, level=0.9))
    assert covered.shape == (3, 2)
    assert (covered[:, 0] <= SHARES).all()
    assert (covered[:, 1] >= SHARES).all()
    assert found.intervals(1, 0, rows, 0.9) is None


def test_where_too_little_is_known_of_the_errors_there_are_no_intervals(rows, monkeypatch):
    def refusing(*arguments, **options):
        raise InputError("too few rows")

    monkeypatch.setattr("aggregator.learners.class_ratios.drift.intervals", refusing)
    assert released("class_means").intervals(0, 0, rows, 0.9) is None


def test_an_estimator_that_nobody_knows_is_refused():
    found = released("class_means")
    found.releases[0][0][0]["estimator"] = "clas_means"
    with pytest.raises(InputError, match="did you mean 'class_means'"):
        found.estimator(0, 0)
