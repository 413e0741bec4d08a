"""What a released regression says of a file: a number for every row."""

import csv
import io
import json

import pytest
from support.released_lines import stored

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from scenarios.commands.predict import predict_command
from scenarios.scores.prediction import Prediction, predict

WEIGHTS = [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[1.0, 2.0, 0.5], [0.0, 0.0, 7.0]]]  # of a, b and a constant


@pytest.fixture
def run(tmp_path):
    """A run directory with two releases of two draws each, and a file with its columns in another order."""
    path = tmp_path / "models" / "slope"
    path.mkdir(parents=True)
    promises = [Guarantee(e, 1e-6, Unit.LABEL, Adjacency.REPLACE, "shaped_gaussian").to_dict() for e in (0.5, 2.0)]
    stored(path / "split-0.npz", WEIGHTS, promises, FeatureMap(2, (Append(1.0),)))
    file = tmp_path / "new.csv"
    file.write_text("b,other,a\n10,x,1\n20,y,2\n")
    return tmp_path, file


@pytest.mark.parametrize(
    ("epsilon", "draw", "values"),
    [(None, 0, (21.5, 42.5)), (2.0, 1, (7.0, 7.0)), (0.5, 0, (1.0, 2.0)), (0.5, 1, (10.0, 20.0))],
)
def test_every_row_has_a_number(run, epsilon, draw, values):
    found = predict(run[0], "slope", run[1], epsilon=epsilon, draw=draw)
    assert isinstance(found, Prediction)
    assert found.values == values
    assert found.used.epsilon == (epsilon or 2.0)


def test_the_command_prints_a_line_per_row(run, capsys):
    predict_command(run[0], "slope", run[1], 0.5, 0, 0, None, None, False)
    out, err = capsys.readouterr()
    assert list(csv.reader(io.StringIO(out))) == [["row", "prediction"], ["0", "1.0"], ["1", "2.0"]]
    assert "epsilon=0.5, delta=1e-06 for one label (replace), shaped_gaussian" in err


def test_the_command_prints_json_and_writes_csv(run, capsys):
    predict_command(run[0], "slope", run[1], None, 0, 1, None, run[0] / "out.csv", True)
    assert json.loads(capsys.readouterr().out)["predictions"] == [7.0, 7.0]
    assert (run[0] / "out.csv").read_text() == "row,prediction\n0,7.0\n1,7.0\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"by": "other"}, "predicts a number for every row; omit it"),
        ({"epsilon": 1.0}, "there are 0.5, 2"),
        ({"draw": 2}, "from 0 to 1"),
    ],
)
def test_what_is_not_there_is_refused(run, arguments, named):
    with pytest.raises(InputError, match=named):
        predict(run[0], "slope", run[1], **arguments)
