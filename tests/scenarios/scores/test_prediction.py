"""Predictions against plain numpy on the arrays of the npz, and what is said when something is not there."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import released_runs
from support.examples import examples
from support.refusals import refused

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data import tables
from scenarios.scores import prediction
from scenarios.scores.prediction import Prediction, RatioPrediction, find_model, predict


@pytest.fixture
def run(tmp_path, rng):
    return released_runs.vote_run(tmp_path, rng)


@pytest.fixture
def ratios(tmp_path, estimators):
    return released_runs.ratio_run(tmp_path)


@pytest.fixture
def made(request, tmp_path):
    """A run of the kind that a test names, and a file of new rows for it."""
    if request.param == "ratios":
        return request.getfixturevalue("ratios")
    if request.param == "votes":
        return request.getfixturevalue("run")
    return {"networks": released_runs.network_run, "lines": released_runs.line_run}[request.param](tmp_path)


@pytest.fixture
def lines(tmp_path):
    return released_runs.line_run(tmp_path)


def by_hand(path, cells, epsilon, draw):
    """Everything from the file's arrays by the documented steps: indicators, affine, constant, unit norm, argmax."""
    with np.load(path) as stored:
        known = json.loads(str(stored["description"]))
        steps = json.loads(known["feature_maps"][0])["steps"]
        arrays = {name: stored[name] for name in stored.files}
    array = {(step["kind"], field): arrays.get(f"map_0.{name}") for step in steps for field, name in step.items()}
    assert [step["kind"] for step in steps] == ["one_hot", "affine", "append", "unit_norm"]
    labels = []
    for height, colour, weight in cells:
        codes = array["one_hot", "codes"]
        x = np.array([height, weight, *(codes == text_code(colour))], dtype=float)
        x = (x - array["affine", "offset"]) * array["affine", "factor"]
        x = np.append(x, 1.0)
        x /= np.linalg.norm(x)
        index = list(arrays["epsilon"]).index(epsilon)
        scores = [float(np.dot(row, x)) for row in arrays[f"weights_{index}"][draw]]
        labels.append(known["classes"][scores.index(max(scores))])
    return tuple(labels)


@settings(derandomize=True, max_examples=examples(15))
@given(
    seed=st.integers(0, 10**6),
    epsilon=st.sampled_from(released_runs.EPSILONS),
    split=st.integers(0, 1),
    draw=st.integers(0, 3),
)
def test_predictions_are_those_of_plain_numpy(tmp_path_factory, seed, epsilon, split, draw):
    rng, directory = np.random.default_rng(seed), tmp_path_factory.mktemp("run")
    released_runs.store(directory, rng)
    cells, _ = released_runs.table(rng, 30)
    file = released_runs.write_csv(directory / "new.csv", cells)
    found = predict(directory, "soft_vote", file, epsilon=epsilon, split=split, draw=draw)
    assert found.values == by_hand(find_model(directory, "soft_vote", split), cells, epsilon, draw)
    assert len(set(found.values)) > 1
    assert found.used.guarantee == json.loads(json.dumps(released_runs.vote_guarantee(epsilon).to_dict()))


def test_npz_rows_and_the_largest_epsilon(tmp_path, rng):
    released_runs.store(tmp_path, rng)
    cells, rows = released_runs.table(rng, 20)
    np.savez(tmp_path / "new.npz", X=rows)
    found = predict(tmp_path, "default", tmp_path / "new.npz")
    assert found.used.epsilon == 8.0
    assert found.values == by_hand(tmp_path / "models/soft_vote/split-0.npz", cells, 8.0, 0)


def test_a_released_model_is_used_wherever_it_lies(tmp_path, rng):
    """As where a deployment has released it: without a run around it."""
    released_runs.store(tmp_path / "run", rng)
    _, rows = released_runs.table(rng, 20)
    np.savez(tmp_path / "new.npz", X=rows)
    alone = (tmp_path / "run/models/soft_vote/split-1.npz").rename(tmp_path / "released.npz")
    wanted = predict(tmp_path / "run", "soft_vote", tmp_path / "new.npz", split=0).values
    assert predict(alone, "default", tmp_path / "new.npz").values != wanted
    refused(r"gone\.npz.*new\.npz", predict, tmp_path / "gone.npz", "default", tmp_path / "new.npz")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"variant": "soft_vot"}, "there is soft_vote; did you mean 'soft_vote'?"),
        ({"variant": "../models/soft_vote"}, "there is soft_vote"),
        ({"epsilon": 3.0}, "there are 0.5, 2, 8"),
        ({"split": 2}, "there are 0, 1"),
        ({"draw": 4}, "from 0 to 3"),
        ({"draw": -1}, "from 0 to 3"),
        ({"by": "name"}, "--by"),
    ],
)
def test_what_is_not_there_names_what_is(run, changes, named):
    directory, file = run
    arguments = {"variant": "soft_vote", **changes}
    with pytest.raises(InputError, match=r"^[^\n]*$") as caught:
        predict(directory, arguments.pop("variant"), file, **arguments)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("made", "arguments", "named"),
    [
        *((kind, {"epsilon": 1.0}, r"0\.5.*2") for kind in ("networks", "ratios", "lines")),
        *((kind, {"draw": 2}, "0.*1") for kind in ("networks", "ratios", "lines")),
        *(
            (kind, {"by": "region"}, named)
            for kind, named in (("networks", None), ("ratios", "region"), ("lines", None))
        ),
    ],
    indirect=["made"],
)
def test_what_a_model_of_another_kind_does_not_have_is_refused(made, arguments, named):
    refused(named, predict, made[0], "default", made[1], **arguments)


def test_missing_columns_and_models_damaged_models_and_pipes_are_refused(run):
    directory, file = run
    (directory / "other.csv").write_text("height,colour\n1,red\n")
    refused("weight", predict, directory, "soft_vote", directory / "other.csv")
    path = directory / "models/soft_vote/split-0.npz"
    path.write_bytes(path.read_bytes()[:200])
    for place in (directory / "models", directory, Path("x" * 5000)):  # the last is a name that no folder can have
        refused(None, predict, place, "soft_vote", file)
    path = find_model(run[0], "soft_vote", 1)
    path.unlink()
    os.mkfifo(path)
    refused(rf"{path.name}.*model.*it", predict, run[0], "soft_vote", run[1], split=1)


def test_settings_of_a_sweep_are_named(tmp_path, rng):
    for count in (10, 20):
        released_runs.store(tmp_path, rng, f"soft_vote/parties.count={count}", splits=(0,))
    refused(r"soft_vote/parties\.count.*10.*soft_vote/parties\.count.*20", find_model, tmp_path, "default", 0)
    assert find_model(tmp_path, "soft_vote/parties.count=20", 0).parent.name == "parties.count=20"
    (tmp_path / "models" / "soft_vote" / "split-0.npz").touch()  # an exact name wins over its settings
    assert find_model(tmp_path, "soft_vote", 0).parent.name == "soft_vote"
    assert find_model(tmp_path, "soft_vote/parties.count=10", 0).parent.name == "parties.count=10"


def test_the_default_among_all_kept_variants(run, rng):
    directory, _ = run
    released_runs.store(directory, rng, "soft_vote-gaussian")
    results = directory / "results.csv"
    header = "scenario,protocol,variant,default,epsilon,delta,unit,split,noise,metric,value\n"
    line = "s,soft_vote,soft_vote-gaussian,{},1,0,party,0,0,accuracy,1\n"
    results.write_text(header + line.format(1))
    assert find_model(directory, "default", 0).parent.name == "soft_vote-gaussian"
    results.write_text(header + line.format(0))
    refused(r"soft_vote.*soft_vote", find_model, directory, "default", 0)


def test_baselines_keep_no_model_and_a_path_without_a_run_is_refused(tmp_path):
    for name in ("pooled", "individual", "pooled/parties.count=60"):
        refused(f"'{name}'", find_model, tmp_path, name, 0)
    (tmp_path / "file").touch()
    for path in (tmp_path / "absent", tmp_path / "file"):
        for variant in ("default", "soft_vote", "pooled"):
            refused(f"{path}", find_model, path, variant, 0)


@pytest.mark.parametrize(
    ("made", "epsilon", "draw", "values", "promised"),
    [
        ("networks", 0.5, 0, ("well", "ill", "ill"), (0.5, 2.0)),  # which keeps four times of what it aims at
        ("networks", 0.5, 1, ("ill", "well", "well"), (0.5, 2.0)),
        ("lines", None, 0, (21.5, 42.5), (2.0, 2.0)),
        ("lines", 2.0, 1, (7.0, 7.0), (2.0, 2.0)),
        ("lines", 0.5, 0, (1.0, 2.0), (0.5, 0.5)),
        ("lines", 0.5, 1, (10.0, 20.0), (0.5, 0.5)),
    ],
    indirect=["made"],
)
def test_every_row_has_the_name_of_its_class_or_a_number(made, epsilon, draw, values, promised):
    found = predict(made[0], "default", made[1], epsilon=epsilon, draw=draw)
    assert isinstance(found, Prediction)
    assert found.values == values
    assert (found.used.epsilon, found.used.guarantee["epsilon"]) == promised


def shares(found):
    """The shares by set and class."""
    return {name: {ratio.name: ratio.share for ratio in ratios} for name, ratios in found.ratios.items()}


@pytest.mark.parametrize(("epsilon", "draw", "share"), [(None, 0, 0.6), (2.0, 1, 0.7), (0.5, 0, 0.4), (0.5, 1, 0.5)])
def test_the_whole_file_is_one_set(ratios, epsilon, draw, share):
    found = predict(ratios[0], "class_ratio", ratios[1], epsilon=epsilon, draw=draw)
    assert isinstance(found, RatioPrediction)
    assert shares(found) == {"": {"no": pytest.approx(share), "yes": pytest.approx(1 - share)}}
    assert found.ratios[""][0].interval is None  # which this estimator does not have
    assert found.rows == 4
    assert found.used.epsilon == (epsilon or 2.0)


def test_sets_by_a_column_or_an_array_are_predicted_apart(ratios):
    found = predict(ratios[0], "class_ratio", ratios[1], epsilon=0.5, by="place")
    same = {"no": pytest.approx(0.4), "yes": pytest.approx(0.6)}
    assert shares(found) == {"north": same, "south": same}
    assert list(found.ratios) == ["north", "south"]
    values = np.array([(a, b) for a, b, _ in released_runs.ROWS])
    np.savez(ratios[0] / "new.npz", X=values, place=np.array([10, 9, 9, 10]))
    found = predict(ratios[0], "class_ratio", ratios[0] / "new.npz", epsilon=0.5, by="place")
    assert {name: found["no"] for name, found in shares(found).items()} == {
        "9": pytest.approx(0.5), "10": pytest.approx(0.3),
    }  # fmt: skip
    ratios[1].write_text("b,place,a\n1,north,0.2\n1,,0.3\n")  # a row without a set
    refused("place", predict, ratios[0], "class_ratio", ratios[1], by="place")


def changed(run, **arrays):
    """The run with other arrays in its model's file."""
    path = find_model(run[0], "default", 0)
    with np.load(path) as stored:
        known = dict(stored)
    np.savez(path, **{**known, **arrays})
    return path


def description(run):
    """What the model's file says of itself."""
    with np.load(find_model(run[0], "default", 0)) as stored:
        return json.loads(str(stored["description"]))


@pytest.mark.parametrize("kind", ["future", 7, ["linear"]])
def test_a_kind_of_a_later_release_is_told_with_the_file(lines, kind):
    changed(lines, description=np.array(json.dumps(description(lines) | {"kind": kind})))
    told = r"split-0\.npz: kind of model 'future' is .*later release|is not a released model"
    refused(told, predict, lines[0], "slope", lines[1])


@pytest.mark.parametrize("array", ["epsilon", "weights_2", "map_0.features_1_factor", "description"])
def test_objects_in_a_model_are_refused_without_advice_on_pickles(run, array):
    path = changed(run, **{array: np.array([print], dtype=object)})
    with pytest.raises(InputError, match=rf"{path}.*'{array}'") as refusal:
        predict(run[0], "soft_vote", run[1])
    assert "pickle" not in str(refusal.value)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        ("weights_2", np.full((4, 3, 6), np.nan)),  # whose largest score is that of the first class, silently
        ("weights_2", np.ones((4, 2, 6))),
        ("weights_2", np.ones((4, 3, 5))),
        ("weights_2", np.ones((0, 3, 6))),
        ("weights_2", np.ones((4, 3, 6), "M8[s]")),
        ("map", np.array([0, 0, -1])),
        ("map", np.array([0, 0])),
        ("epsilon", np.array([0.5, 2.0, np.nan])),
        ("epsilon", np.array([0.5, 2.0])),
        ("epsilon", np.array(["a", "b", "c"])),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(run, array, values):
    path = changed(run, **{array: values})
    refused(f"{path}", predict, run[0], "soft_vote", run[1])


def test_numbers_and_guarantees_that_cannot_be_told_are_refused(lines):
    known = description(lines)
    promised = known["guarantees"][1]
    for guarantee in (
        {}, {**promised, "epsilon": "2"}, {**promised, "parameters": []}, {"non_private": True, "claimed": ["1", 0]},
        {"non_private": True, "claimed": 1}, {**promised, "unit": "house"},
    ):  # fmt: skip
        known["guarantees"][1] = guarantee
        path = changed(lines, description=np.array(json.dumps(known)))
        refused(f"{path}", predict, lines[0], "slope", lines[1])
    known["guarantees"][1] = promised
    changed(lines, description=np.array(json.dumps(known)), array_2=np.full(3, np.nan))
    refused(f"{path}", predict, lines[0], "slope", lines[1])


@pytest.mark.parametrize(
    ("made", "epsilon"), [("votes", released_runs.EPSILONS[0]), ("networks", 0.5), ("lines", None)], indirect=["made"]
)
def test_predictions_are_the_same_whatever_stands_in_memory_at_a_time(made, epsilon, monkeypatch):
    directory, file = made
    whole = predict(directory, "default", file, epsilon=epsilon)
    monkeypatch.setattr(tables, "_CELLS_READ", 1)
    parts = predict(directory, "default", file, epsilon=epsilon)
    assert len(parts.values) > 1
    assert parts.values == (pytest.approx(whole.values) if isinstance(whole.values[0], float) else whole.values)
    assert (parts.probabilities is None) is (whole.probabilities is None)
    if whole.probabilities is not None:
        np.testing.assert_allclose(parts.probabilities, whole.probabilities)


def test_a_set_that_is_too_large_to_stand_together_is_told(ratios, monkeypatch):
    monkeypatch.setattr(prediction, "MOST_CELLS", 5)
    refused(r"new\.csv.*4.*5", predict, ratios[0], "class_ratio", ratios[1])
