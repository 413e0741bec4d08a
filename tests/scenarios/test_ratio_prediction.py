"""What a released estimator says of a file: the ratios of all its rows, or of the sets in it."""

import csv
import io
import json

import numpy as np
import pytest
from support.fake_estimators import released

from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.releases.ratio_models import ReleasedRatios
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.features.feature_map import FeatureMap
from scenarios.commands.predict import predict_command
from scenarios.scores.prediction import RatioPrediction, predict

IDENTITY = FeatureMap(2, ())
ROWS = [(0.2, 1.0, "north"), (0.4, 2.0, "south"), (0.6, 3.0, "north"), (0.4, 4.0, "north")]

pytestmark = pytest.mark.usefixtures("estimators")


def guarantee(epsilon):
    return Guarantee(epsilon, 1e-6, Unit.LABEL, Adjacency.REPLACE, "discrete_gaussian", {"scale": 2.0}).to_dict()


@pytest.fixture
def run(tmp_path):
    """A run directory with two releases of two draws each, and a file with a column that no model knows."""
    path = tmp_path / "models" / "class_ratio"
    path.mkdir(parents=True)
    promises = [guarantee(0.5), guarantee(2.0)]
    released([[0.0, 0.1], [0.2, 0.3]], [IDENTITY] * 2, promises).save(path / "split-0.npz")
    file = tmp_path / "new.csv"
    file.write_text("b,place,a\n" + "".join(f"{b},{place},{a}\n" for a, b, place in ROWS))
    return tmp_path, file


def shares(found):
    """The shares by set and class."""
    return {name: {ratio.name: ratio.share for ratio in ratios} for name, ratios in found.ratios.items()}


def command(run, *, epsilon=None, draw=0, by=None, out=None, as_json=False):
    predict_command(run[0], "class_ratio", run[1], epsilon, 0, draw, by, out, as_json)


@pytest.mark.parametrize(("epsilon", "draw", "share"), [(None, 0, 0.6), (2.0, 1, 0.7), (0.5, 0, 0.4), (0.5, 1, 0.5)])
def test_the_whole_file_is_one_set(run, epsilon, draw, share):
    found = predict(run[0], "class_ratio", run[1], epsilon=epsilon, draw=draw)
    assert isinstance(found, RatioPrediction)
    assert shares(found) == {"": {"no": pytest.approx(share), "yes": pytest.approx(1 - share)}}
    assert found.ratios[""][0].interval is None  # which this estimator does not have
    assert found.rows == 4
    assert found.used.epsilon == (epsilon or 2.0)


def test_sets_by_a_column_are_predicted_apart(run):
    found = predict(run[0], "class_ratio", run[1], epsilon=0.5, by="place")
    assert shares(found) == {"north": {"no": pytest.approx(0.4), "yes": pytest.approx(0.6)},
                            "south": {"no": pytest.approx(0.4), "yes": pytest.approx(0.6)}}  # fmt: skip
    assert list(found.ratios) == ["north", "south"]


def test_sets_of_an_npz_file_are_in_an_array(run):
    values = np.array([(a, b) for a, b, _ in ROWS])
    np.savez(run[0] / "new.npz", X=values, place=np.array([10, 9, 9, 10]))
    found = predict(run[0], "class_ratio", run[0] / "new.npz", epsilon=0.5, by="place")
    assert {name: found["no"] for name, found in shares(found).items()} == {
        "9": pytest.approx(0.5), "10": pytest.approx(0.3),
    }  # fmt: skip


def test_the_command_prints_a_line_per_class(run, capsys):
    command(run)
    out, err = capsys.readouterr()
    head, *lines = csv.reader(io.StringIO(out))
    assert head == ["class", "ratio"]
    assert [(name, float(ratio)) for name, ratio in lines] == [("no", pytest.approx(0.6)), ("yes", pytest.approx(0.4))]
    assert "epsilon=2, delta=1e-06 for one label (replace), discrete_gaussian" in err
    assert "the largest epsilon of 0.5, 2" in err
    assert "class ratios of 4 rows" in err


def test_the_command_names_sets_in_csv_and_json(run, capsys):
    command(run, epsilon=0.5, by="place", out=run[0] / "out.csv", as_json=True)
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert record["ratios"][0] == {"set": "north", "class": "no", "ratio": pytest.approx(0.4)}
    assert [line["set"] for line in record["ratios"]] == ["north", "north", "south", "south"]
    assert record["guarantee"]["unit"] == "label"
    assert "class ratios of 4 rows, 2 sets by place" in err
    lines = list(csv.DictReader((run[0] / "out.csv").open(newline="")))
    assert [(line["set"], line["class"]) for line in lines] == [(r["set"], r["class"]) for r in record["ratios"]]


def test_a_claim_that_is_not_kept_is_told(run, capsys):
    claimed = NoGuarantee("its delta is larger", (0.05, 0.1)).to_dict()
    released([[0.0]], [IDENTITY], [claimed]).save(run[0] / "models" / "class_ratio" / "split-0.npz")
    command(run)
    err = capsys.readouterr().err
    assert err.startswith("NON-PRIVATE: ")
    assert "protects nobody (its delta is larger); epsilon=0.05, delta=0.1 is claimed and not kept" in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"by": "region"}, "no column 'region'"),
        ({"epsilon": 1.0}, "there are 0.5, 2"),
        ({"draw": 2}, "from 0 to 1"),
    ],
)
def test_what_is_not_there_is_refused(run, arguments, named):
    with pytest.raises(InputError, match=named):
        predict(run[0], "class_ratio", run[1], **arguments)


def test_a_row_without_a_set_is_refused(run):
    run[1].write_text("b,place,a\n1,north,0.2\n1,,0.3\n")
    with pytest.raises(InputError, match="column 'place' is missing"):
        predict(run[0], "class_ratio", run[1], by="place")


def test_intervals_are_printed_where_an_estimator_has_them(run, rng, capsys, monkeypatch):
    monkeypatch.undo()  # real estimators
    bags, proportions = [], np.array([[0.8, 0.2], [0.3, 0.7]])
    for wanted in proportions:
        labels = rng.random(200) > wanted[0]
        bags.append(np.stack([2 * labels + rng.normal(size=200), rng.normal(size=200)], axis=1))
    estimator = ClassMeans(features=64).fit(bags, proportions)
    model = ReleasedRatios(
        "class_ratio", ("no", "yes"), ("a", "b"), (), np.array([0.5]), ((estimator.to_arrays(),),), (IDENTITY,),
        (guarantee(0.5),),
    )  # fmt: skip
    model.save(run[0] / "models" / "class_ratio" / "split-0.npz")
    np.savez(run[0] / "new.npz", X=np.concatenate(bags), half=np.arange(400) // 200)
    command((run[0], run[0] / "new.npz"), by="half")
    out, err = capsys.readouterr()
    lines = list(csv.DictReader(io.StringIO(out)))
    assert list(lines[0]) == ["set", "class", "ratio", "low", "high"]
    for line in lines:
        assert 0 <= float(line["low"]) < float(line["high"]) <= 1
    assert float(lines[0]["low"]) > float(lines[2]["high"])  # the halves differ, and intervals tell
    assert "low to high: 90% interval" in err
