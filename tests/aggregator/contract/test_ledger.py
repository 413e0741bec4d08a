import pytest

from aggregator.contract.ledger import Budget, Ledger
from federation.contract.errors import BudgetExceededError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit


def pure(epsilon, unit=Unit.PARTY):
    return Guarantee(epsilon, 0.0, unit, Adjacency.REPLACE, "l2_gamma")


def test_a_release_within_budget_is_recorded_with_its_checks():
    ledger = Ledger(Budget(1.0, 1e-6))
    ledger.charge("a", pure(1.0), ["votes are one-hot"])
    record = ledger.to_dict(1e-6)
    assert record["releases"][0]["checks"] == ["votes are one-hot"]
    assert record["budget"] == {"epsilon": 1.0, "delta": 1e-6}
    assert not record["non_private"]


def test_a_release_over_budget_is_refused_and_not_recorded():
    ledger = Ledger(Budget(1.0, 1e-6))
    with pytest.raises(BudgetExceededError, match="epsilon=2"):
        ledger.charge("a", pure(2.0))
    assert ledger.entries == []


def test_delta_counts_against_the_budget_too():
    with pytest.raises(BudgetExceededError):
        Ledger(Budget(5.0, 1e-7)).charge("g", Guarantee(1.0, 1e-6, Unit.PARTY, Adjacency.REPLACE, "other"))


def test_totals_add_up_per_unit():
    ledger = Ledger()
    for guarantee in (pure(1.0), pure(2.0), pure(0.5, Unit.LABEL)):
        ledger.charge("v", guarantee)
    totals = {total["unit"]: (total["epsilon"], total["releases"]) for total in ledger.totals(1e-6)}
    assert totals == {"party": (3.0, 2), "label": (3.5, 3)}  # who may change a party may change a label of its


def test_releases_made_of_the_same_noisy_answers_are_paid_for_once():
    ledger = Ledger()
    for source in ("counts", "counts", None, None):
        ledger.charge("v", pure(1.0, Unit.LABEL), source=source)
    [total] = ledger.totals(1e-6)
    assert (total["epsilon"], total["releases"], total["others"]) == (3.0, 4, 0)


@pytest.mark.parametrize(
    ("unit", "covered"),
    [
        (Unit.LABEL, {Unit.LABEL}),
        (Unit.PERSON, {Unit.PERSON, Unit.LABEL}),
        (Unit.ROW, {Unit.ROW, Unit.LABEL}),
        (Unit.PARTY, {Unit.PARTY, Unit.ROW, Unit.LABEL}),
    ],
)
def test_units_cover_their_parts_and_nothing_else(unit, covered):
    assert {other for other in Unit if unit.covers(other)} == covered


def test_what_protects_more_than_a_unit_counts_for_the_unit_too():
    ledger = Ledger()
    for guarantee in (pure(1.0), pure(0.25, Unit.PARTY_AND_AUXILIARY_ROW), pure(0.5, Unit.PARTY_AND_AUXILIARY_ROW)):
        ledger.charge("v", guarantee)
    totals = {total["unit"]: (total["epsilon"], total["releases"], total["others"]) for total in ledger.totals(1e-6)}
    assert totals == {"party": (1.75, 3, 0), "party_and_auxiliary_row": (0.75, 2, 1)}


def test_a_release_without_guarantee_is_one_of_the_others():
    ledger = Ledger()
    ledger.charge("v", pure(1.0))
    ledger.charge("off", NoGuarantee("noise is off"))
    [total] = ledger.totals(1e-6)
    assert (total["releases"], total["others"]) == (1, 1)


def test_a_release_without_guarantee_marks_the_ledger():
    ledger = Ledger(Budget(1.0, 0.0))
    ledger.charge("v", NoGuarantee("noise is off"))
    assert ledger.to_dict(1e-6)["non_private"]
    assert ledger.totals(1e-6) == []
