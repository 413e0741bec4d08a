"""What exchanges spend lasts, is held against one budget, and is not known twice."""

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.contract.ledger import Budget
from aggregator.exchange.exchange import Spent, affordable
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.noise.additive import calibrate


def pure(epsilon, unit=Unit.LABEL):
    return Guarantee(epsilon, 0.0, unit, Adjacency.REPLACE, "laplace")


def test_nothing_is_spent_before_anything_is_written(tmp_path):
    spent = Spent.load(tmp_path / "ledger.json")
    assert spent.guarantees() == []
    assert spent.totals(1e-6) == []
    assert not (tmp_path / "ledger.json").exists()


def test_what_is_charged_is_known_to_the_next_process_and_to_nobody_else(tmp_path):
    path = tmp_path / "ledger.json"
    Spent.load(path).charge("aa", [pure(1.0)], None)
    Spent.load(path).charge("bb", [pure(0.5)], None)
    found = Spent.load(path)
    assert [one.epsilon for one in found.guarantees()] == [1.0, 0.5]
    [total] = found.totals(1e-6)
    assert (total["unit"], total["epsilon"], total["delta"]) == ("label", 1.5, 0.0)
    assert found.totals(1e-6, "bb")[0]["epsilon"] == 0.5
    assert path.stat().st_mode & 0o777 == 0o600


def test_all_exchanges_together_are_held_against_the_budget_and_a_refused_one_leaves_no_trace(tmp_path):
    spent = Spent.load(tmp_path / "ledger.json")
    spent.charge("aa", [pure(1.0)], Budget(2.0, 0.0))
    before = spent.path.read_bytes()
    with pytest.raises(BudgetExceededError, match=r"epsilon=2\.5.*budget is epsilon=2, .*of a new deployment"):
        spent.charge("bb", [pure(1.5)], Budget(2.0, 0.0))
    assert spent.path.read_bytes() == before
    assert Spent.load(spent.path).charged.keys() == {"aa"}
    spent.charge("bb", [pure(1.0)], Budget(2.0, 0.0))


def test_what_an_exchange_turns_out_to_spend_takes_the_place_of_what_was_set_aside(tmp_path):
    spent = Spent.load(tmp_path / "ledger.json")
    spent.charge("aa", [pure(2.0)], Budget(2.0, 0.0))
    spent.charge("aa", [pure(1.25)], Budget(2.0, 0.0))
    assert [one.epsilon for one in Spent.load(spent.path).guarantees()] == [1.25]


def test_gaussian_noise_is_composed_as_such_after_it_was_stored(tmp_path):
    noise = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=1.0, delta=1e-6)
    once = noise.guarantee(Unit.PARTY, Adjacency.REPLACE)
    for exchange in "abcd":
        Spent.load(tmp_path / "ledger.json").charge(exchange, [once], None)
    [total] = Spent.load(tmp_path / "ledger.json").totals(1e-6)
    assert total["epsilon"] < 2.2
    assert math.isclose(total["delta"], 1e-6)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"charged": {"aa": [{"epsilon": 1}]}}', '{"charged": 3}'])
def test_a_damaged_ledger_is_not_taken_for_an_empty_one(tmp_path, text):
    (tmp_path / "ledger.json").write_text(text)
    with pytest.raises(InputError, match=r"ledger.json.*restore it from a copy"):
        Spent.load(tmp_path / "ledger.json")


def test_an_exchange_that_would_be_charged_with_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="releases nothing"):
        Spent.load(tmp_path / "ledger.json").charge("aa", [], None)
    assert not (tmp_path / "ledger.json").exists()


def test_the_ledger_is_plain_json(tmp_path):
    Spent.load(tmp_path / "ledger.json").charge("aa", [pure(1.0)], None)
    [entry] = json.loads((tmp_path / "ledger.json").read_text())["charged"]["aa"]
    assert (entry["epsilon"], entry["unit"], entry["mechanism"]) == (1.0, "label", "laplace")


def test_what_was_set_aside_for_nothing_is_free_again(tmp_path):
    spent = Spent(tmp_path / "ledger.json")
    spent.charge("one", [pure(1.0)], None)
    spent.charge("two", [pure(1.0)], None)
    spent.free("one")
    spent.free("three")
    assert [*Spent.load(tmp_path / "ledger.json").charged] == ["two"]


@given(st.integers(1, 8), st.integers(0, 12))
def test_a_budget_affords_as_many_as_can_be_charged_one_after_another(times, epsilon):
    budget, promised = Budget(float(epsilon), 0.0), [pure(0.25)] * times
    with TemporaryDirectory() as folder:
        spent, count = Spent.load(Path(folder, "ledger.json")), 0
        while count < 5:
            try:
                spent.charge(f"{count}", promised, budget)
            except BudgetExceededError:
                break
            count += 1
    assert affordable(promised, budget, 5) == count
