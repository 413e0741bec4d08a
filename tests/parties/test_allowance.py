import json
import os
from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.parametrize(("epsilon", "delta"), [("NaN", 0), (-1, 0), (1, "NaN"), (1, 1)])
def test_an_allowance_is_a_number_that_can_be_exceeded(tmp_path, epsilon, delta):
    with pytest.raises(InputError, match="epsilon from 0"):
        Allowance.from_json(f'{{"ledger": "{tmp_path}/a", "epsilon": {epsilon}, "delta": {delta}}}')


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_is_interrupted_forgets_nothing(tmp_path, monkeypatch, step):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    allowance.spend(0, pure(1.0))
    before = allowance.ledger.read_text()

    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, step, full)
        with pytest.raises(OSError, match="space"):
            allowance.spend(1, pure(1.0))
    assert allowance.ledger.read_text() == before
    with pytest.raises(BudgetExceededError):
        allowance.spend(0, pure(0.1))


@pytest.mark.parametrize("content", ["", '{"0": ['])
def test_a_damaged_ledger_ends_the_answers(tmp_path, content):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    allowance.ledger.write_text(content)
    with pytest.raises(InputError, match="restore it"):
        allowance.spend(0, pure(0.1))


def test_parties_that_spend_at_once_do_not_miss_each_other(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 10.0, 0.0)
    with ThreadPoolExecutor(8) as pool:
        spent = [pool.submit(allowance.spend, 0, pure(1.0)) for _ in range(30)]
    assert sum(one.exception() is None for one in spent) == 10
