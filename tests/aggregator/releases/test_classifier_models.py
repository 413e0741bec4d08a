"""Released networks come back as they were, can be read with numpy alone, and refuse what they cannot be."""

import json

import numpy as np
import pytest

from aggregator.releases.model_files import head
from aggregator.releases.models import ReleasedClassifiers, network
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from federation.queries.marginals import Hypothesis

NO_STEPS = FeatureMap(2, ())


def line(*weights, offset=0.0):
    return Hypothesis.of([np.array(weights, dtype=float)[:, None]], [np.array([offset])])


def stored(path, draws, classes=("no", "yes"), epsilons=(1.0,)):
    """Save releases with the same draws."""
    releases = (tuple(draws),) * len(epsilons)
    maps, guarantees = (NO_STEPS,) * len(epsilons), ({},) * len(epsilons)
    ReleasedClassifiers(
        "exchange", tuple(classes), ("a", "b"), (), np.array(epsilons), releases, maps, guarantees
    ).save(path)
    return path


@pytest.fixture
def learned(rng):
    deep = Hypothesis.of([rng.normal(size=(2, 3)), rng.normal(size=(3, 1))], [rng.normal(size=3), rng.normal(size=1)])
    return [line(1, 0), deep]


def test_hypotheses_of_all_rounds_come_back(tmp_path, learned, rng):
    draws = [network(learned, learned[0], 4), network(learned[:1], Hypothesis.constant(2, 1), 4)]
    found = ReleasedClassifiers.load(stored(tmp_path / "x.npz", draws, epsilons=(1.0, 2.0)))
    assert head(tmp_path / "x.npz") == ("classifier", [1.0, 2.0])
    rows = rng.normal(size=(50, 2))
    for release in (0, 1):
        assert [found.rounds(release, draw) for draw in (0, 1)] == [4, 4]
        for given, back in zip(learned, found.hypotheses(release, 0), strict=True):
            np.testing.assert_array_equal(back.sizes, given.sizes)
            np.testing.assert_array_equal(back.parameters, given.parameters)
        assert len(found.hypotheses(release, 1)) == 1
        np.testing.assert_array_equal(found.chosen(release, 0).scores(rows), rows[:, 0])
        np.testing.assert_array_equal(found.predict(release, 0, rows), rows[:, 0] >= 0)
        assert found.predict(release, 1, rows).all()


def test_the_file_can_be_read_with_numpy_alone(tmp_path, learned, rng):
    path = stored(tmp_path / "x.npz", [network(learned, learned[1], 2)])
    with np.load(path, allow_pickle=False) as file:
        [[draw]] = json.loads(str(file["description"]))["releases"]
        arrays = {name: file[f"array_{number}"] for name, number in draw["arrays"].items()}
    assert (draw["learner"], draw["rounds"], draw["chosen"]) == ("network", 2, 2)
    assert arrays["sizes_2"].tolist() == [2, 3, 1]
    numbers = arrays["parameters_2"]
    rows = rng.normal(size=(20, 2))
    by_hand = np.maximum(rows @ numbers[:6].reshape(2, 3) + numbers[6:9], 0) @ numbers[9:12] + numbers[12]
    np.testing.assert_allclose(ReleasedClassifiers.load(path).chosen(0, 0).scores(rows), by_hand, atol=1e-12)


def test_equal_arrays_are_kept_once(tmp_path):
    path = stored(tmp_path / "x.npz", [network([line(1, 0), line(2, 0)], line(0, 0), 2)] * 3)
    with np.load(path) as file:
        assert sum(name.startswith("array_") for name in file.files) == 4  # one shape and three lines


def changed(path, change):
    """The file with another description."""
    with np.load(path) as file:
        arrays = dict(file)
    description = json.loads(str(arrays["description"]))
    change(description)
    np.savez(path, **arrays | {"description": np.array(json.dumps(description))})
    return path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["releases"][0][0].update(learner="forest"), "the learner 'forest' .* is not known; update"),
        (lambda d: d["releases"][0][0].pop("learner"), "the learner 'None'"),
        (lambda d: d["releases"][0][0].update(chosen=3), "lacks the array 'sizes_3' of its hypothesis 3"),
        (lambda d: d["releases"][0][0]["arrays"].pop("parameters_1"), "lacks the array 'parameters_1'"),
        (lambda d: d.update(classes=["a", "b", "c"]), "it has 3 classes, a hypothesis tells two"),
        (lambda d: d.update(kind="regression"), "is not a released classifier: it holds regression"),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, said):
    path = changed(stored(tmp_path / "x.npz", [network([line(1, 0)], line(1, 0), 1)]), change)
    with pytest.raises(InputError, match=said):
        ReleasedClassifiers.load(path).hypotheses(0, 0), ReleasedClassifiers.load(path).chosen(0, 0)


def test_more_hypotheses_than_rounds_are_refused():
    with pytest.raises(InputError, match="1 rounds cannot have learned 2 hypotheses"):
        network([line(1, 0), line(2, 0)], line(1, 0), 1)
