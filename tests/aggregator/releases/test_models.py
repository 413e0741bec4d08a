from pathlib import Path

import numpy as np
import pytest

from aggregator.releases.models import ReleasedModels
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


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_damaged_models_are_input_errors(tmp_path, content):
    (tmp_path / "x").write_text(content)
    with pytest.raises(InputError):
        ReleasedModels.load(tmp_path / "x")
