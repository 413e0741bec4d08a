"""Estimators in files: descriptions and arrays come back draw by draw, and equal arrays are kept once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from aggregator.releases.models import ReleasedEstimators
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap

NO_STEPS = FeatureMap(2, ())


class Sums(ReleasedEstimators):
    kind = "sums"
    what = "a released sum"
    predicts = "numbers"

    def predicted(self, release, draw, rows):
        return rows.sum(axis=1) + self.releases[release][draw][1]["offset"]


def released(*releases):
    count = len(releases)
    return Sums("v", (), ("a", "b"), (), np.ones(count), tuple(releases), (NO_STEPS,) * count, ({},) * count)


def described(offset, **known):
    return {"name": "sum", **known}, {"offset": np.array(float(offset)), "rows": np.arange(6.0).reshape(2, 3)}


def stored(path, *releases):
    released(*releases).save(path)
    return path


def test_draws_of_every_release_come_back(tmp_path):
    releases = [(described(1), described(2, steps=[1, 2])), (described(3, none=None),)]
    found = Sums.load(stored(tmp_path / "v.npz", *releases))
    assert [found.draws(release) for release in (0, 1)] == [2, 1]
    for given, back in zip(releases, found.releases, strict=True):
        for (known, arrays), (read, kept) in zip(given, back, strict=True):
            assert read == known
            assert kept.keys() == arrays.keys()
            for name, array in arrays.items():
                np.testing.assert_array_equal(kept[name], array)
                assert kept[name].dtype == array.dtype
    np.testing.assert_array_equal(found.predicted(0, 1, np.ones((2, 2))), [4.0, 4.0])


def test_equal_arrays_are_kept_once_whatever_they_are_called(tmp_path):
    twins = {"first": np.ones(3), "second": np.ones(3), "other": np.ones((3, 1))}
    path = stored(tmp_path / "v.npz", (described(1), described(1)), (({}, twins),))
    with np.load(path) as file:
        assert sorted(name for name in file.files if name.startswith("array_")) == [f"array_{n}" for n in range(4)]
        [first, second], [third] = json.loads(str(file["description"]))["releases"]
    assert first["arrays"] == second["arrays"] == {"offset": 0, "rows": 1}
    assert third["arrays"] == {"first": 2, "second": 2, "other": 3}


def test_estimators_without_arrays_and_releases_of_one_draw_are_kept(tmp_path):
    found = Sums.load(stored(tmp_path / "v.npz", (({"name": "nothing"}, {}),)))
    assert found.releases == ((({"name": "nothing"}, {}),),)


def test_draws_are_gathered_in_their_order():
    draws = [described(1), described(2)]
    assert Sums.gathered(draws) == tuple(draws)


def test_a_file_that_lacks_an_array_of_an_estimator_is_refused(tmp_path):
    path = stored(tmp_path / "v.npz", (described(1),))
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "array_1"}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"is not a released sum: .*array_1"):
        Sums.load(path)
