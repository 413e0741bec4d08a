"""What files of all kinds of models have in common: there and back, feature maps, and other or damaged files."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.releases.estimator_models import ReleasedRegressions
from aggregator.releases.model_files import head, kept_once
from aggregator.releases.models import ReleasedClassifiers, ReleasedModels, network
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from federation.queries.marginals import Hypothesis

NO_STEPS = FeatureMap(2, ())


def linear(epsilons=(1.0, np.inf), maps=(NO_STEPS, NO_STEPS)):
    weights = tuple(np.full((draws + 1, 3, 2), draws, dtype=float) for draws in range(len(epsilons)))
    guarantees = tuple({"epsilon": epsilon} for epsilon in range(len(epsilons)))
    return ReleasedModels("v", ("a", "b", "c"), ("p", "q"), (1,), np.array(epsilons), weights, tuple(maps), guarantees)


def test_all_that_is_said_of_releases_comes_back_and_maps_of_several_are_kept_once(tmp_path, public, rng):
    given_ = linear()
    given_.save(tmp_path / "v.npz")
    found = ReleasedModels.load(tmp_path / "v.npz")
    for name in ("variant", "classes", "columns", "text_columns", "guarantees"):
        assert getattr(found, name) == getattr(given_, name)
    np.testing.assert_array_equal(found.epsilons, [1.0, np.inf])
    assert [found.draws(release) for release in (0, 1)] == [1, 2]
    assert found.intervals(0, 0, np.ones((3, 2)), 0.9) is None
    assert head(tmp_path / "v.npz") == ("linear", [1.0, np.inf])
    maps = [fit([{"whiten": 2}], public.rows), fit([{"whiten": 3}], public.rows), fit([{"whiten": 3}], public.rows)]
    weights = tuple(rng.normal(size=(4, 3, one.dimension)) for one in maps)
    epsilons = np.array([0.1, 1.0, 10.0])
    stored = ReleasedModels("v", ("a", "b", "c"), public.columns, (), epsilons, weights, tuple(maps), ({}, {}, {}))
    stored.save(tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz") as file:
        np.testing.assert_array_equal(file["map"], [0, 1, 1])
        assert {name.split(".")[0] for name in file.files if name.startswith("map_")} == {"map_0", "map_1"}
        assert len(json.loads(str(file["description"]))["feature_maps"]) == 2
    models = ReleasedModels.load(tmp_path / "v.npz")
    for index, one in enumerate(maps):
        expected = one.transform(public.rows) @ weights[index][3].T
        np.testing.assert_array_equal(models.scores(public.rows, index, 3), expected)


@given(st.lists(st.sampled_from("abcd"), max_size=12))
def test_names_are_kept_once_in_the_order_of_their_first_places(names):
    numbers, kept = kept_once(names)
    assert [names[kept[number]] for number in numbers] == names
    assert len({names[place] for place in kept}) == len(kept) == len(set(names))
    assert all(first < second for first, second in pairwise(kept))
    assert all(names.index(names[place]) == place for place in kept)


@pytest.mark.parametrize("missing", ["description", "epsilon", "map", "weights_1"])
def test_a_file_that_lacks_an_array_is_refused_with_its_path(tmp_path, missing):
    path = tmp_path / "v.npz"
    linear().save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != missing}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"v\.npz is not a released linear model: .*" + missing):
        ReleasedModels.load(path)


def test_damaged_descriptions_and_missing_empty_and_truncated_files_are_refused(tmp_path):
    path = tmp_path / "v.npz"
    with pytest.raises(InputError):
        head(path)
    linear().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    text, whole = str(arrays["description"]), path.read_bytes()
    known = json.loads(text)
    lacking = {key: value for key, value in known.items() if key != "classes"}
    for damaged in (text[:-1], *map(json.dumps, ([text], {**known, "feature_maps": []}, lacking))):
        np.savez(path, **arrays | {"description": np.array(damaged)})
        with pytest.raises(InputError):
            ReleasedModels.load(path)
    for content in (whole[:100], b"", b"{}", b"[1]"):
        path.write_bytes(content)
        with pytest.raises(InputError):
            ReleasedModels.load(path)


def test_other_kinds_of_files_are_told_apart(tmp_path):
    path, learned = tmp_path / "x.npz", Hypothesis.constant(2, 1)
    draws = (network([learned], learned, 1),)
    ReleasedClassifiers("exchange", ("no", "yes"), ("a", "b"), (), np.ones(1), (draws,), (NO_STEPS,), ({},)).save(path)
    with pytest.raises(InputError):
        ReleasedRegressions.load(path)
    with pytest.raises(InputError, match=r"model.*it"):
        ReleasedModels.load(path)
    linear = ReleasedModels("x", ("a", "b"), ("p", "q"), (), np.ones(1), (np.ones((3, 2, 2)),), (NO_STEPS,), ({},))
    linear.save(path)
    assert (head(path), ReleasedModels.load(path).draws(0)) == (("linear", [1.0]), 3)
    with pytest.raises(InputError, match=r"classifier.*it"):
        ReleasedClassifiers.load(path)
    (tmp_path / "no.npz").write_text("no")
    with pytest.raises(InputError):
        head(tmp_path / "no.npz")
