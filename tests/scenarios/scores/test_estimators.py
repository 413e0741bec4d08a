"""Released models as estimators: against the command's predictions, plain numpy and scikit-learn's own tools."""

import math
import pickle
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.special import expit
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from support import released_runs
from support.refusals import refused

from aggregator.releases.models import ReleasedClassifiers, ReleasedModels, network
from federation.contract.guarantee import NoGuarantee
from federation.features.feature_map import FeatureMap, text_code
from federation.features.steps import OneHot
from federation.queries.marginals import Hypothesis
from scenarios.scores.estimators import load
from scenarios.scores.prediction import predict


@pytest.fixture
def run(tmp_path, rng):
    return released_runs.vote_run(tmp_path, rng)


def frame(cells, names=released_runs.COLUMNS):
    return pyarrow.table({name: [row[released_runs.COLUMNS.index(name)] for row in cells] for name in names})


def kept(path, kind, releases, classes, columns=("a", "b"), texts=(), steps=(), **known):
    """The estimator of a file with one release of a kind."""
    promised = (FeatureMap(len(columns), steps),), (released_runs.ratio_guarantee(1.0),)
    kind("x", classes, columns, texts, np.array([1.0]), (releases,), *promised, **known).save(path / "x.npz")
    return load(path / "x.npz")


def test_it_says_what_the_command_says_of_files_frames_and_arrays(run, rng):
    directory, _ = run
    cells, _ = released_runs.table(rng, 50)
    file = released_runs.write_csv(directory / "many.csv", cells)
    model = load(directory, epsilon=2, split=1, draw=3)
    wanted = predict(directory, "soft_vote", file, epsilon=2.0, split=1, draw=3).values
    assert tuple(model.predict(frame(cells))) == wanted
    assert tuple(model.predict(np.array(cells, dtype=object))) == wanted
    assert model.feature_names_in_.tolist() == list(released_runs.COLUMNS)
    assert model.n_features_in_ == 3
    assert model.classes_.tolist() == ["a", 'b"', "c,d"]
    scores = model.decision_function(frame(cells))
    assert scores.shape == (50, 3)
    assert tuple(model.classes_[scores.argmax(axis=1)]) == wanted
    direct = load(directory / "models" / "soft_vote" / "split-1.npz", epsilon=2, draw=3)
    np.testing.assert_array_equal(direct.decision_function(frame(cells)), scores)
    assert (model.guarantee_["unit"], model.guarantee_["epsilon"], model.epsilon_) == ("party", 2.0, 2.0)
    assert repr(model) == "ReleasedClassifier('soft_vote', epsilon=2, draw=3)"


@pytest.mark.parametrize("classes", [("c", "a", "b"), ("z", "a")])
def test_classes_stand_by_alphabet_whatever_their_order_in_the_release(tmp_path, rng, classes):
    around = 2 * np.pi * np.arange(len(classes)) / len(classes)
    rows, weights = rng.normal(size=(200, 2)), np.stack([np.cos(around), np.sin(around)], axis=1)[None]
    model = kept(tmp_path, ReleasedModels, weights, classes)
    assert model.classes_.tolist() == sorted(classes)
    scores = model.decision_function(rows)
    wanted = np.array(classes)[(rows @ weights[0].T).argmax(axis=1)]
    codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    assert model.classes_[codes].tolist() == model.predict(rows).tolist() == wanted.tolist()
    assert len(set(wanted)) == len(classes)
    truth = np.where(np.arange(200) % 10, wanted, classes[0])
    assert CalibratedClassifierCV(FrozenEstimator(model)).fit(rows, truth).score(rows, truth) > 0.8


def test_probabilities_stand_by_alphabet_too_and_a_linear_model_of_a_proper_loss_tells_them(tmp_path):
    sloped = network([], Hypothesis.of([np.array([[2.0]])], [np.array([0.5])]), 1)
    model = kept(tmp_path, ReleasedClassifiers, (sloped,), ("well", "ill"), ("a",))
    assert model.classes_.tolist() == ["ill", "well"]
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[expit(2.5), expit(-2.5)]])
    assert model.predict([[1.0]]).tolist() == ["ill"]
    np.testing.assert_allclose(model.decision_function([[1.0]]), [-2.5])
    weights = np.array([[[-0.5, 0.0], [0.5, 0.0]]])
    model = kept(tmp_path, ReleasedModels, weights, ("well", "ill"), proper_loss="logistic")
    rows = np.array([[2.0, 9.0], [-1.0, 9.0]])
    np.testing.assert_allclose(model.predict_proba(rows)[:, 0], expit([2.0, -1.0]))
    assert model.classes_.tolist() == ["ill", "well"]
    assert model.predict(rows).tolist() == ["ill", "well"]
    np.testing.assert_allclose(model.decision_function(rows), [-2.0, 1.0])


def test_columns_of_a_frame_are_found_by_name_and_all_missing_ones_are_named_at_once(run, rng):
    model = load(run[0])
    cells, _ = released_runs.table(rng, 20)
    wanted = model.predict(frame(cells)).tolist()
    reordered = frame(cells, released_runs.COLUMNS[::-1]).append_column("name", pyarrow.array(["x"] * 20))
    assert model.predict(reordered).tolist() == wanted
    for columns, named in ((2, "weight"), (1, r"2.*3")):
        refused(named, model.predict, frame(cells, released_runs.COLUMNS[:columns]))


@pytest.mark.parametrize(
    ("made", "odd"), [(pandas.DataFrame, [1, "one", None, 2]), (polars.DataFrame, [object() for _ in range(4)])]
)
def test_further_columns_may_hold_anything(run, rng, made, odd):
    model, (cells, _) = load(run[0]), released_runs.table(rng, 4)
    wanted = made(frame(cells).to_pydict() | {"note": odd})
    assert model.predict(wanted).tolist() == model.predict(frame(cells)).tolist()


@pytest.mark.parametrize("missing", [None, math.nan, "NA", " ", "<NA>", "NaT"])
def test_a_missing_text_is_written_in_many_ways(tmp_path, missing):
    # The one text is missing: what the model knows of it decides.
    codes = OneHot(np.array([0]), np.array([text_code("")]), np.array([0, 1]))
    weights = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    classes, columns = ("known", "missing"), ("colour", "size")
    model = kept(tmp_path, ReleasedModels, weights, classes, columns, (0,), (codes,))
    cells = np.array([[missing, 0.5], ["red", 0.5]], dtype=object)
    with pytest.warns(UserWarning, match="'colour'"):
        assert model.predict(cells).tolist() == ["missing", "known"]


def test_columns_that_a_model_leaves_out_may_be_missing_or_hold_anything(tmp_path):
    left_out = OneHot(np.array([0, 2]), np.empty(0), np.zeros(3, dtype=np.int64))
    weights, names, wanted = np.array([[[-1.0], [1.0]]]), ("id", "size", "note"), ["large", "small"]
    model = kept(tmp_path, ReleasedModels, weights, ("small", "large"), names, (2,), (left_out,))
    assert model.feature_names_in_.tolist() == list(names)
    whole = pyarrow.table({"note": ["b", None], "id": ["A7", "A8"], "size": [1.0, -1.0]})
    for rows in (whole, whole.select(["size"]), np.array([["A7", 1.0, None], [None, -1.0, "b"]], dtype=object)):
        assert model.predict(rows).tolist() == wanted
    refused("size", model.predict, whole.drop_columns("size"))


def test_texts_of_which_the_model_knows_none_are_told(run, rng):
    model, (cells, _) = load(run[0]), released_runs.table(rng, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(frame([[170, "mauve", 70], *cells]))  # one new text among others is usual
        model.predict(np.array([[170, None, 70]], dtype=object))  # and a missing one is no text
    with pytest.warns(UserWarning, match="the model knows none of the texts in 'colour': it takes them for unknown"):
        model.predict(frame([[170, "RED", 70], [160, "BLUE", 60]]))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ({"height": [170]}, "X"),
        (SimpleNamespace(collect=None), "SimpleNamespace"),
        (np.zeros((2, 2)), r"X.*3.*2.*2"),
        ([170.0, 70.0, 1.0], "3"),
        (np.zeros((2, 3)), "X"),
        (np.array([[170, "red", None]], dtype=object), r"0.*0.*weight"),
        (np.array([[170, "red", 7], [math.inf, "red", 7]], dtype=object), r"1.*height"),
        (np.array([["tall", "red", 7]], dtype=object), "X"),
    ],
)
def test_rows_of_another_kind_are_refused(run, X, words):
    refused(words, load(run[0]).predict, X)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"variant": "soft_vot"}, r"soft_vote.*soft_vote"),
        ({"epsilon": 3}, r"epsilon.*3.*0\.5.*2.*8"),
        ({"draw": 4}, r"draw.*0.*3"),
        ({"draw": "0"}, r"draw.*0.*'0'"),
        ({"split": None}, r"split.*0"),
        ({"epsilon": "2"}, r"epsilon.*'2'"),
        ({"variant": None}, r"None.*soft_vote"),
        ({"split": 2}, r"2.*soft_vote.*0.*1"),
        ({"source": "nowhere"}, None),
        ({"source": "nowhere.npz"}, r"nowhere\.npz"),
        ({"source": "nowhere.npz", "split": 1}, None),
    ],
)
def test_what_is_not_there_names_what_is(run, changes, words):
    source = changes.pop("source", run[0])
    refused(words, load, source, **changes)


def test_a_linear_model_has_scores_and_no_probabilities_and_a_constant_knows_none(run, tmp_path):
    model = load(run[0])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(np.zeros((1, 3)))
    assert "has scores and no probabilities; with labelled rows of your own" in str(caught.value.__cause__)
    constant, off = network([], Hypothesis.constant(1, 1), 1), NoGuarantee("noise is off").to_dict()
    known = ("a",), (), np.array([math.inf]), ((constant,),), (FeatureMap(1, ()),), (off,)
    ReleasedClassifiers("x", ("no", "yes"), *known).save(tmp_path / "x.npz")
    model = load(tmp_path / "x.npz")
    assert not hasattr(model, "predict_proba")
    assert model.predict([[1.0], [-5.0]]).tolist() == ["yes", "yes"]
    assert model.guarantee_["non_private"]


def test_a_damaged_model_is_told(tmp_path):
    path = released_runs.line_run(tmp_path)[0] / "models" / "slope" / "split-0.npz"
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    weights = {name: np.full_like(array, np.nan) for name, array in arrays.items() if name.startswith("array_")}
    np.savez(path, **arrays | weights)
    refused(r"split-0\.npz", load(path, epsilon=2).predict, [[1.0, 2.0]])
    path.write_bytes(b"no zip")
    refused(r"split-0\.npz", load, path)


def test_a_network_tells_the_shares_that_it_was_trained_for(tmp_path):
    directory, _ = released_runs.network_run(tmp_path)
    model = load(directory, epsilon=0.5)
    rows = np.array([[0.5, 10.0], [2.0, 20.0], [-2.0, 0.0]])
    outputs = model.decision_function(rows)
    np.testing.assert_allclose(outputs, 1 - np.abs(rows[:, 0]))
    np.testing.assert_allclose(model.predict_proba(rows), np.column_stack([expit(-outputs), expit(outputs)]))
    assert model.predict(rows).tolist() == [model.classes_[int(share >= 0.5)] for share in expit(outputs)]
    wanted = predict(directory, "error_marginals", tmp_path / "new.csv", epsilon=0.5)
    np.testing.assert_allclose(wanted.probabilities, model.predict_proba(rows))


def test_numbers_of_rows_and_shares_of_a_set(tmp_path, estimators):
    line = load(released_runs.line_run(tmp_path)[0], epsilon=2)
    assert is_regressor(line)
    assert not hasattr(line, "predict_proba")
    rows = np.array([[1.0, 10.0], [2.0, 20.0]])
    np.testing.assert_allclose(line.predict(rows), rows @ [1.0, 2.0] + 0.5)
    (tmp_path / "ratios").mkdir()
    directory, file = released_runs.ratio_run(tmp_path / "ratios")
    wanted = predict(directory, "class_ratio", file, epsilon=0.5).ratios[""]
    ratios, rows = load(directory, epsilon=0.5), np.array([row[:2] for row in released_runs.ROWS])
    assert ratios.classes_.tolist() == [ratio.name for ratio in wanted]
    np.testing.assert_allclose(ratios.predict(rows), [ratio.share for ratio in wanted])
    assert ratios.predict_interval(rows) is None


def test_tools_of_scikit_learn_take_it(tmp_path, rng):
    released_runs.store(tmp_path, rng)
    cells, _ = released_runs.table(rng, 60)
    model, rows = load(tmp_path), np.array(cells, dtype=object)
    truth = np.where(np.arange(60) % 10, model.predict(rows), "a")
    assert is_classifier(model)
    assert clone(model) is model
    assert model.fit(rows, truth) is model
    calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(rows, truth)
    np.testing.assert_allclose(calibrated.predict_proba(rows).sum(axis=1), 1)
    assert make_pipeline("passthrough", model).score(rows, truth) == model.score(rows, truth)
    assert permutation_importance(model, rows, truth, n_repeats=2).importances.shape == (3, 2)
    assert pickle.loads(pickle.dumps(model)).predict(rows).tolist() == model.predict(rows).tolist()
    assert "ReleasedClassifier" in model._repr_html_()


@pytest.mark.slow
def test_nothing_of_a_simulation_is_needed(run):
    code = (
        "import sys\n"
        "absent = ('flwr', 'ray', 'matplotlib', 'typer', 'parties')\n"
        "sys.modules.update(dict.fromkeys(absent))  # as if they were not installed\n"
        "import numpy, scenarios\n"
        f"model = scenarios.load({str(run[0])!r}, epsilon=2)\n"
        "print(model.predict(numpy.array([[170, 'red', 70]], dtype=object))[0] in model.classes_)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "True\n"
