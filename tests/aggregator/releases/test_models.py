from pathlib import Path

import numpy as np
import pytest

from aggregator.learners.linear_odd.losses import loss
from aggregator.releases.models import ReleasedModels
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid, run_server_app
from federation.engines.nodes import Placement
from federation.features.feature_map import FeatureMap


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


def stored(path, proper_loss, classes=("no", "yes")):
    weights = np.arange(1.0, 1 + 2 * len(classes)).reshape(1, len(classes), 2)
    models = ReleasedModels(
        "v", classes, ("p", "q"), (), np.ones(1), (weights,), (FeatureMap(2, ()),), ({},), proper_loss
    )
    models.save(path)
    return models


@pytest.mark.parametrize("name", ["logistic", "square", "matsushita"])
def test_probabilities_are_those_that_the_expected_loss_is_least_for(tmp_path, rng, name):
    stored(tmp_path / "v.npz", name)
    found, rows = ReleasedModels.load(tmp_path / "v.npz"), 0.1 * rng.normal(size=(20, 2))
    shares = found.probabilities(0, 0, rows)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares.argmax(axis=1), found.predicted(0, 0, rows))
    assert ((shares > 0) & (shares < 1)).all()
    scores, chosen, step = found.decided(0, 0, rows), loss(name), 1e-5
    for change in (-step, step):  # any other score costs more where the second class has that share
        moved = shares[:, 1] * chosen.value(scores + change) + shares[:, 0] * chosen.value(-scores - change)
        assert (moved > shares[:, 1] * chosen.value(scores) + shares[:, 0] * chosen.value(-scores) - 1e-15).all()


def test_without_a_proper_loss_there_are_no_probabilities(tmp_path):
    stored(tmp_path / "v.npz", None)
    assert ReleasedModels.load(tmp_path / "v.npz").probabilities(0, 0, np.ones((3, 2))) is None


@pytest.mark.parametrize(
    ("proper_loss", "classes", "words"),
    [
        ("double_hinge", ("no", "yes"), "scores of the loss 'double_hinge' stand for no probabilities"),
        ("logstic", ("no", "yes"), "did you mean 'logistic'"),
        ("logistic", ("a", "b", "c"), "a proper loss is for two classes, and it has 3"),
        ({"logistic": 1}, ("no", "yes"), "is not a released linear model"),
    ],
)
def test_a_loss_that_tells_nothing_is_refused(tmp_path, proper_loss, classes, words):
    stored(tmp_path / "v.npz", proper_loss, classes)
    with pytest.raises(InputError, match=words):
        ReleasedModels.load(tmp_path / "v.npz")
