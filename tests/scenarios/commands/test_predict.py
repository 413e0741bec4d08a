"""`federation predict`: what it prints and writes of models of every kind, and what it says that it used."""

import csv
import io
import json
import re

import numpy as np
import pytest
from support import released_runs
from support.fake_estimators import released

from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.releases.estimator_models import ReleasedRatios
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from scenarios.commands.predict import predict_command
from scenarios.scores.prediction import Prediction, Used, predict


@pytest.fixture
def run(tmp_path, rng):
    return released_runs.vote_run(tmp_path, rng)


@pytest.fixture
def ratios(tmp_path, estimators):
    return released_runs.ratio_run(tmp_path)


def test_command_prints_csv_and_says_what_it_used_and_which_texts_the_model_does_not_know(run, capsys):
    command(run, epsilon=2.0, draw=1)
    out, err = capsys.readouterr()
    lines = list(csv.reader(io.StringIO(out)))
    wanted = predict(run[0], "soft_vote", run[1], epsilon=2.0, draw=1).values
    assert lines == [["row", "prediction"], *([str(i), name] for i, name in enumerate(wanted))]
    assert re.search(r"epsilon.*2.*delta.*0.*l2_gamma", err)
    assert "knows none" not in err
    command(run)
    assert re.search(r"epsilon.*0\.5.*2.*8", capsys.readouterr().err)
    file = released_runs.write_csv(run[0] / "loud.csv", [(170, "RED", 70)])
    command((run[0], file), epsilon=2.0, draw=1)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert "the model knows none of the texts in 'colour'" in err


def test_command_writes_files_and_json(run, capsys):
    file = run[0] / "out.csv"
    command(run, epsilon=2.0, draw=1, out=file, as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert set(record) == {"predictions", "guarantee"}
    assert record["guarantee"]["epsilon"] == 2.0
    lines = list(csv.reader(file.open(newline="")))
    assert [name for _, name in lines[1:]] == record["predictions"]
    command(run, epsilon=2.0, draw=1, out=file)
    assert capsys.readouterr().out == ""
    with pytest.raises(InputError, match="--out"):
        command(run, epsilon=2.0, draw=1, out=run[0] / "no" / "out.csv")


def test_a_release_without_noise_is_marked(tmp_path, rng, capsys):
    released_runs.store(tmp_path, rng, "soft_vote-off", non_private=True)
    file = released_runs.write_csv(tmp_path / "new.csv", released_runs.table(rng, 5)[0])
    command((tmp_path, file), "default", as_json=True)
    out, err = capsys.readouterr()
    assert err.startswith("NON-PRIVATE")
    assert json.loads(out)["guarantee"] == {"non_private": True, "reason": "noise is off"}


@pytest.mark.parametrize(("entropy", "said"), [("seed", True), ("system", False)])
def test_a_seeded_simulation_is_said_to_be_one(tmp_path, rng, capsys, monkeypatch, entropy, said):
    plain = released_runs.vote_guarantee(1.0).to_dict()
    plain["parameters"]["entropy"] = entropy
    released_runs.store(tmp_path, rng)
    found = Prediction(("a",), Used(tmp_path / "models/soft_vote/split-0.npz", 1.0, (1.0,), plain))
    monkeypatch.setattr("scenarios.scores.prediction.predict", lambda *_, **__: found)
    command((tmp_path, tmp_path / "new.csv"), as_json=True)
    assert ("(seeded simulation: not to be published)" in capsys.readouterr().err) is said


def test_the_command_prints_classes_and_the_epsilon_that_is_kept(tmp_path, capsys):
    run = released_runs.network_run(tmp_path)
    command(run, "error_marginals")
    out, err = capsys.readouterr()
    head, *lines = csv.reader(io.StringIO(out))
    assert head == ["row", "prediction", "probability_ill", "probability_well"]
    assert [name for _, name, _, _ in lines] == ["well", "ill", "ill"]
    shares = np.array([line[2:] for line in lines], dtype=float)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares[:, 1] >= 0.5).tolist() == [True, False, False]
    assert re.search(r"epsilon.*8.*delta.*0.*epsilon.*0\.5.*2", err)
    command(run, "error_marginals", as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert [set(row) for row in record["probabilities"]] == [{"ill", "well"}] * 3


def test_names_of_classes_do_not_become_formulas(tmp_path, rng, capsys):
    released_runs.store(tmp_path, rng, classes=("=cmd|' /C calc'!A0", "-1", "@x"))
    file = released_runs.write_csv(tmp_path / "new.csv", released_runs.table(rng, 40)[0])
    command((tmp_path, file))
    named = {name for _, name in csv.reader(io.StringIO(capsys.readouterr().out))}
    assert named == {"prediction", "'=cmd|' /C calc'!A0", "-1", "'@x"}


def command(run, variant="soft_vote", *, epsilon=None, draw=0, by=None, out=None, as_json=False):
    predict_command(run[0], run[1], variant, epsilon, 0, draw, by, out, as_json)


def test_the_command_prints_a_line_per_class(ratios, capsys):
    command(ratios, "class_ratio")
    out, err = capsys.readouterr()
    head, *lines = csv.reader(io.StringIO(out))
    assert head == ["class", "ratio"]
    assert [(name, float(ratio)) for name, ratio in lines] == [("no", pytest.approx(0.6)), ("yes", pytest.approx(0.4))]
    assert re.search(r"epsilon.*2.*delta.*1e-06.*discrete_gaussian", err)
    assert re.search(r"epsilon.*0\.5.*2", err)
    assert "class ratios of 4 rows" in err


def test_the_command_names_sets_in_csv_and_json(ratios, capsys):
    command(ratios, "class_ratio", epsilon=0.5, by="place", out=ratios[0] / "out.csv", as_json=True)
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["ratios"][0] == {"set": "north", "class": "no", "ratio": pytest.approx(0.4)}
    assert [line["set"] for line in record["ratios"]] == ["north", "north", "south", "south"]
    assert record["guarantee"]["unit"] == "label"
    assert "class ratios of 4 rows, 2 sets by place" in err
    lines = list(csv.DictReader((ratios[0] / "out.csv").open(newline="")))
    assert [(line["set"], line["class"]) for line in lines] == [(r["set"], r["class"]) for r in record["ratios"]]


def test_a_claim_that_is_not_kept_is_told(ratios, capsys):
    claimed = NoGuarantee("its delta is larger", (0.05, 0.1)).to_dict()
    released([[0.0]], [released_runs.IDENTITY], [claimed]).save(ratios[0] / "models" / "class_ratio" / "split-0.npz")
    command(ratios, "class_ratio")
    err = capsys.readouterr().err
    assert err.startswith("NON-PRIVATE: ")
    assert "protects nobody (its delta is larger); epsilon=0.05, delta=0.1 is claimed and not kept" in err


def test_intervals_are_printed_where_an_estimator_has_them(ratios, rng, capsys, monkeypatch):
    monkeypatch.undo()  # real estimators
    bags, proportions = [], np.array([[0.8, 0.2], [0.3, 0.7]])
    for wanted in proportions:
        labels = rng.random(200) > wanted[0]
        bags.append(np.stack([2 * labels + rng.normal(size=200), rng.normal(size=200)], axis=1))
    estimator = ClassMeans(features=64).fit(bags, proportions)
    model = ReleasedRatios(
        "class_ratio", ("no", "yes"), ("a", "b"), (), np.array([0.5]), ((estimator.to_arrays(),),),
        (released_runs.IDENTITY,), (released_runs.ratio_guarantee(0.5),),
    )  # fmt: skip
    model.save(ratios[0] / "models" / "class_ratio" / "split-0.npz")
    np.savez(ratios[0] / "new.npz", X=np.concatenate(bags), half=np.arange(400) // 200)
    command((ratios[0], ratios[0] / "new.npz"), "class_ratio", by="half")
    out, err = capsys.readouterr()
    lines = list(csv.DictReader(io.StringIO(out)))
    assert list(lines[0]) == ["set", "class", "ratio", "low", "high"]
    for line in lines:
        assert 0 <= float(line["low"]) < float(line["high"]) <= 1
    assert float(lines[0]["low"]) > float(lines[2]["high"])  # the halves differ, and intervals tell
    assert "low to high: 90% interval" in err


def test_the_command_prints_a_line_per_row(tmp_path, capsys):
    run = released_runs.line_run(tmp_path)
    command(run, "slope", epsilon=0.5)
    out, err = capsys.readouterr()
    assert list(csv.reader(io.StringIO(out))) == [["row", "prediction"], ["0", "1.0"], ["1", "2.0"]]
    assert re.search(r"epsilon.*0\.5.*delta.*1e-06.*shaped_gaussian", err)
    command(run, "slope", draw=1, out=tmp_path / "out.csv", as_json=True)
    assert json.loads(capsys.readouterr().out)["predictions"] == [7.0, 7.0]
    assert (tmp_path / "out.csv").read_text() == "row,prediction\n0,7.0\n1,7.0\n"
