"""What does not go together with protocols that protect single rows or labels of two classes."""

import pytest

from federation.contract.errors import InputError
from scenarios.runs.runner import run
from scenarios.settings.schema import resolve


@pytest.mark.parametrize("kind", ["mean_operator", "error_marginals"])
@pytest.mark.parametrize(
    ("data", "parties", "words"),
    [
        ({"person": "who"}, {}, "knows single rows only"),
        ({"label": "y"}, {"partition": {"by": "y"}, "count": None}, "names the column of the labels"),
        ({"label": "y"}, {"bags": {"by": "y"}}, "names the column of the labels"),
    ],
)
def test_protocols_that_protect_single_rows_of_two_classes(kind, data, parties, words):
    given = {
        "data": {"source": "own.csv", "label": "y", **data},
        "parties": {"count": 2, **parties},
        "protocols": [{"kind": kind}],
        "privacy": {"epsilon": 1},
    }
    with pytest.raises(InputError, match=words):
        resolve(given)


def test_more_than_two_classes_are_refused_before_anything_is_run(tmp_path):
    scenario = {
        "data": {"source": ["breast_cancer", "digits"]},
        "parties": {"count": 2},
        "protocols": [{"kind": "mean_operator"}],
        "privacy": {"epsilon": 1},
    }
    with pytest.raises(
        InputError, match=r"data.positive: missing; mean_operator is for two classes, and 'digits' has 10"
    ):
        run(scenario, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("loss", ["hinge", "exponential"])
def test_a_loss_that_is_not_linear_odd_is_refused_with_the_reason(loss):
    given = {
        "data": {"source": "breast_cancer"},
        "parties": {"count": 1},
        "protocols": [{"kind": "mean_operator", "loss": ["square", loss]}],
        "privacy": {"epsilon": 1},
    }
    with pytest.raises(InputError, match=rf"loss.1.*'{loss}'.*off by"):
        resolve(given)


def test_a_linear_learner_needs_no_layers():
    given = {
        "data": {"source": "breast_cancer"},
        "parties": {"count": 1},
        "protocols": [{"kind": "error_marginals", "learner": "linear"}],
        "privacy": {"epsilon": 1},
    }
    assert resolve(given).protocols[0].options["learner"] == "linear"
