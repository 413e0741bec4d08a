import json

import pytest

from federation.errors import BudgetExceededError, InputError
from federation.guarantee import Adjacency, Guarantee, Unit
from parties.allowance import Allowance


def pure(epsilon, unit=Unit.LABEL):
    return Guarantee(epsilon, 0.0, unit, Adjacency.REPLACE, "lattice_laplace")


def test_a_party_answers_while_its_allowance_lasts(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    allowance.spend(0, pure(0.5))
    allowance.spend(0, pure(0.5))
    with pytest.raises(BudgetExceededError, match=r"1\.5"):
        allowance.spend(0, pure(0.5))
    assert len(json.loads((tmp_path / "spent.json").read_text())["0"]) == 2


def test_what_was_spent_is_remembered_by_another_process_and_per_party(tmp_path):
    Allowance(tmp_path / "spent.json", 1.0, 0.0).spend(3, pure(1.0))
    again = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    again.spend(4, pure(1.0))
    with pytest.raises(BudgetExceededError):
        again.spend(3, pure(0.1))


def test_releases_for_different_units_have_no_total(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 9.0, 0.0)
    allowance.spend(0, pure(1.0, Unit.ROW))
    with pytest.raises(InputError, match="unit"):
        allowance.spend(0, pure(1.0))
    allowance.spend(0, pure(1.0, Unit.ROW))  # the refused one left no trace


def test_delta_is_part_of_the_allowance(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 9.0, 1e-6)
    with pytest.raises(BudgetExceededError):
        allowance.spend(0, Guarantee(1.0, 1e-5, Unit.LABEL, Adjacency.REPLACE, "discrete_gaussian"))


@pytest.mark.parametrize("text", ["", "{}", '{"ledger": "a", "epsilon": "x", "delta": 0}', "[1]"])
def test_an_allowance_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="allowance"):
        Allowance.from_json(text)


def test_an_allowance_is_read_from_a_nodes_configuration(tmp_path):
    text = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": 2, "delta": 1e-6})
    assert Allowance.from_json(text) == Allowance(tmp_path / "spent.json", 2.0, 1e-6)
