"""Released networks come back as they were, can be read with numpy alone, and refuse what they cannot be.

Estimators in files: descriptions and arrays come back draw by draw, and equal arrays are kept once.
"""

import json

import numpy as np
import pytest

from aggregator.learners.linear_odd.losses import loss
from aggregator.releases.model_files import head
from aggregator.releases.models import ReleasedClassifiers, ReleasedEstimators, ReleasedModels, network
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from federation.queries.marginals import Hypothesis

NO_STEPS = FeatureMap(2, ())


@pytest.mark.parametrize(("proper_loss", "classes", "words"), [
    ("double_hinge", ("no", "yes"), "double_hinge"), ("logstic", ("no", "yes"), "logistic"),
    ("logistic", ("a", "b", "c"), "3"), ({"logistic": 1}, ("no", "yes"), None),
])  # fmt: skip
def test_a_loss_that_tells_nothing_is_refused_and_without_one_there_are_no_probabilities(
    tmp_path, proper_loss, classes, words
):
    stored(tmp_path / "v.npz", proper_loss, classes)
    with pytest.raises(InputError, match=words):
        ReleasedModels.load(tmp_path / "v.npz")
    stored(tmp_path / "v.npz", None)
    assert ReleasedModels.load(tmp_path / "v.npz").probabilities(0, 0, np.ones((3, 2))) is None


def stored(path, proper_loss, classes=("no", "yes")):
    weights = np.arange(1.0, 1 + 2 * len(classes)).reshape(1, len(classes), 2)
    known = (np.ones(1), (weights,), (NO_STEPS,), ({},), proper_loss)
    models = ReleasedModels("v", classes, ("p", "q"), (), *known)
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


def line(*weights, offset=0.0):
    return Hypothesis.of([np.array(weights, dtype=float)[:, None]], [np.array([offset])])


def classifier_models_stored(path, draws, classes=("no", "yes"), epsilons=(1.0,)):
    """Save releases with the same draws."""
    releases = (tuple(draws),) * len(epsilons)
    maps, guarantees = (NO_STEPS,) * len(epsilons), ({},) * len(epsilons)
    known = (np.array(epsilons), releases, maps, guarantees)
    ReleasedClassifiers("exchange", tuple(classes), ("a", "b"), (), *known).save(path)
    return path


def test_hypotheses_of_all_rounds_come_back_and_can_be_read_with_numpy_alone(tmp_path, rng):
    deep = Hypothesis.of([rng.normal(size=(2, 3)), rng.normal(size=(3, 1))], [rng.normal(size=3), rng.normal(size=1)])
    learned = [line(1, 0), deep]
    draws = [network(learned, learned[0], 4), network(learned[:1], Hypothesis.constant(2, 1), 4)]
    found = ReleasedClassifiers.load(classifier_models_stored(tmp_path / "x.npz", draws, epsilons=(1.0, 2.0)))
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
    path = classifier_models_stored(tmp_path / "x.npz", [network(learned, learned[1], 2)])
    with np.load(path, allow_pickle=False) as file:
        [[draw]] = json.loads(str(file["description"]))["releases"]
        arrays = {name: file[f"array_{number}"] for name, number in draw["arrays"].items()}
    assert (draw["learner"], draw["rounds"], draw["chosen"]) == ("network", 2, 2)
    assert arrays["sizes_2"].tolist() == [2, 3, 1]
    numbers = arrays["parameters_2"]
    rows = rng.normal(size=(20, 2))
    by_hand = np.maximum(rows @ numbers[:6].reshape(2, 3) + numbers[6:9], 0) @ numbers[9:12] + numbers[12]
    np.testing.assert_allclose(ReleasedClassifiers.load(path).chosen(0, 0).scores(rows), by_hand, atol=1e-12)


@pytest.mark.parametrize(("change", "said"), [
    (lambda d: d["releases"][0][0].update(learner="forest"), "forest"),
    (lambda d: d["releases"][0][0].pop("learner"), "None"),
    (lambda d: d["releases"][0][0].update(chosen=3), r"sizes_3.*3"),
    (lambda d: d["releases"][0][0]["arrays"].pop("parameters_1"), "parameters_1"),
    (lambda d: d.update(classes=["a", "b", "c"]), "3"), (lambda d: d.update(kind="regression"), r"classifier.*it"),
])  # fmt: skip
def test_damaged_files_and_more_hypotheses_than_rounds_are_refused(tmp_path, change, said):
    path = classifier_models_stored(tmp_path / "x.npz", [network([line(1, 0)], line(1, 0), 1)])
    with np.load(path) as file:
        arrays = dict(file)
    description = json.loads(str(arrays["description"]))
    change(description)
    np.savez(path, **arrays | {"description": np.array(json.dumps(description))})
    with pytest.raises(InputError, match=said):
        ReleasedClassifiers.load(path).hypotheses(0, 0), ReleasedClassifiers.load(path).chosen(0, 0)
    with pytest.raises(InputError, match=r"1.*2"):
        network([line(1, 0), line(2, 0)], line(1, 0), 1)


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


def released_estimators_stored(path, *releases):
    released(*releases).save(path)
    return path


def test_draws_of_every_release_come_back_also_without_arrays(tmp_path):
    releases = [(described(1), described(2, steps=[1, 2])), (described(3, none=None),)]
    found = Sums.load(released_estimators_stored(tmp_path / "v.npz", *releases))
    assert [found.draws(release) for release in (0, 1)] == [2, 1]
    for given, back in zip(releases, found.releases, strict=True):
        for (known, arrays), (read, kept) in zip(given, back, strict=True):
            assert read == known
            assert kept.keys() == arrays.keys()
            for name, array in arrays.items():
                np.testing.assert_array_equal(kept[name], array)
                assert kept[name].dtype == array.dtype
    np.testing.assert_array_equal(found.predicted(0, 1, np.ones((2, 2))), [4.0, 4.0])
    found = Sums.load(released_estimators_stored(tmp_path / "v.npz", (({"name": "nothing"}, {}),)))
    assert found.releases == ((({"name": "nothing"}, {}),),)
    draws = [described(1), described(2)]
    assert Sums.gathered(draws) == tuple(draws)


def test_equal_arrays_are_kept_once_and_a_file_that_lacks_one_is_refused(tmp_path):
    twins = {"first": np.ones(3), "second": np.ones(3), "other": np.ones((3, 1))}
    path = released_estimators_stored(tmp_path / "v.npz", (described(1), described(1)), (({}, twins),))
    with np.load(path) as file:
        assert sorted(name for name in file.files if name.startswith("array_")) == [f"array_{n}" for n in range(4)]
        [first, second], [third] = json.loads(str(file["description"]))["releases"]
    assert first["arrays"] == second["arrays"] == {"offset": 0, "rows": 1}
    assert third["arrays"] == {"first": 2, "second": 2, "other": 3}
    path = released_estimators_stored(tmp_path / "v.npz", (described(1),))
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "array_1"}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="array_1"):
        Sums.load(path)
