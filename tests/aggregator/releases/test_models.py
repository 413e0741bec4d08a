import json
from pathlib import Path

import numpy as np
import pytest

from aggregator.releases.models import ReleasedModels
from aggregator.world.fitting import fit
from federation.contract.errors import InputError
from federation.contract.reference import Reference
from federation.grids.launch import open_grid, run_server_app
from federation.grids.nodes import Placement


def test_models_of_a_world_round_trip_and_predict(make_plan, public):
    plan = make_plan()
    grid = open_grid("inline")
    grid.assign(Placement(plan.parties, 40, Reference("support.synthetic:Parties"), 1))
    run_server_app(grid, {"plan": str(Path(plan.directory) / "plan.json")})
    models = ReleasedModels.load(Path(plan.directory) / "soft_vote.npz")
    scores = models.scores(public.rows, 1, 0)
    np.testing.assert_array_equal(scores, models.feature_maps[1].transform(public.rows) @ models.weights[1][0].T)
    assert models.guarantees[1]["epsilon"] == 10.0
    copy = Path(plan.directory) / "copy.npz"
    models.save(copy)
    assert copy.read_bytes() == (Path(plan.directory) / "soft_vote.npz").read_bytes()


def test_releases_behind_several_maps_keep_each_map_once(tmp_path, public, rng):
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


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_damaged_models_are_input_errors(tmp_path, content):
    (tmp_path / "x").write_text(content)
    with pytest.raises(InputError):
        ReleasedModels.load(tmp_path / "x")
