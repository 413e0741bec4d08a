"""What a released network says of a file: a class by name for every row."""

import numpy as np
import pytest

from aggregator.releases.classifier_models import ReleasedClassifiers, network
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append
from federation.questions.hypotheses import Hypothesis
from scenarios.commands.predict import predict_command
from scenarios.scores.prediction import Prediction, predict


def bend(sign):
    """1 - |a| of features a, b and a constant, times a sign."""
    return Hypothesis.of(
        [np.array([[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]), np.array([[-sign], [-sign]])], [np.zeros(2), np.array([sign])]
    )


@pytest.fixture
def run(tmp_path):
    """A run directory with two releases of two draws each, and a file with its columns in another order."""
    path = tmp_path / "models" / "error_marginals"
    path.mkdir(parents=True)
    promises = [Guarantee(4.0 * e, 0.0, Unit.ROW, Adjacency.REPLACE, "laplace").to_dict() for e in (0.5, 2.0)]
    draws = (network([first := bend(1.0)], first, 2), network([bend(1.0), second := bend(-1.0)], second, 2))
    maps = (FeatureMap(2, (Append(1.0),)),) * 2
    ReleasedClassifiers(
        "error_marginals", ("ill", "well"), ("a", "b"), (), np.array([0.5, 2.0]), (draws, draws), maps, tuple(promises)
    ).save(path / "split-0.npz")
    file = tmp_path / "new.csv"
    file.write_text("b,other,a\n10,x,0.5\n20,y,2\n0,z,-2\n")
    return tmp_path, file


@pytest.mark.parametrize(("draw", "classes"), [(0, ("well", "ill", "ill")), (1, ("ill", "well", "well"))])
def test_every_row_has_the_name_of_its_class(run, draw, classes):
    found = predict(run[0], "default", run[1], epsilon=0.5, draw=draw)
    assert isinstance(found, Prediction)
    assert found.values == classes
    assert (found.used.epsilon, found.used.guarantee["epsilon"]) == (0.5, 2.0)


def test_the_command_prints_classes_and_the_epsilon_that_is_kept(run, capsys):
    predict_command(run[0], "error_marginals", run[1], None, 0, 0, None, None, False)
    out, err = capsys.readouterr()
    assert out == "row,prediction\n0,well\n1,ill\n2,ill\n"
    assert "epsilon=8, delta=0 for one row (replace), laplace; the largest epsilon of 0.5, 2" in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"by": "other"}, "names the class of every row; omit it"), ({"epsilon": 1.0}, "0.5, 2"), ({"draw": 2}, "0 to 1")],
)
def test_what_is_not_there_is_refused(run, arguments, named):
    with pytest.raises(InputError, match=named):
        predict(run[0], "error_marginals", run[1], **arguments)
