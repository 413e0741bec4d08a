"""What is charged and what it comes to: release by release, and all of a plan together.

Premises of guarantees: those of a world, and those of parties that make the noise themselves.
"""

import pytest

from aggregator.contract.ledger import (
    ATTENDANCE,
    COUNTED_ONCE,
    LOCAL,
    Budget,
    Ledger,
    local_guarantee,
    plan_premises,
    require_together,
    summed,
)
from federation.contract.errors import BudgetExceededError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, NoGuarantee, Unit
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.noise.additive import calibrate, calibrate_laplace
from federation.mechanisms.sums.shares import weakened


def pure(epsilon, unit=Unit.PARTY):
    return Guarantee(epsilon, 0.0, unit, Adjacency.REPLACE, "l2_gamma")


def test_a_release_within_budget_is_recorded_and_those_of_the_same_answers_are_paid_for_once():
    ledger = Ledger(Budget(1.0, 1e-6))
    ledger.charge("a", pure(1.0), ["votes are one-hot"])
    record = ledger.to_dict(1e-6)
    assert record["releases"][0]["checks"] == ["votes are one-hot"]
    assert record["budget"] == {"epsilon": 1.0, "delta": 1e-6}
    assert not record["non_private"]
    ledger = Ledger()
    for source in ("counts", "counts", None, None):
        ledger.charge("v", pure(1.0, Unit.LABEL), source=source)
    [total] = ledger.totals(1e-6)
    assert (total["epsilon"], total["releases"], total["others"]) == (3.0, 4, 0)
    # Two releases whose epsilons add up to more than the budget, while both together spend less than that.
    two = [given(1.0, delta=1e-5, mu=0.2)] * 2
    epsilon, _ = compose(two, BUDGET.delta)
    assert epsilon < BUDGET.epsilon < 2.0
    require_together(BUDGET, two)
    with pytest.raises(BudgetExceededError):
        require_together(Budget(0.99 * epsilon, 1e-5), two)


@pytest.mark.parametrize(("budget", "epsilon", "delta", "said"), [
    (Budget(1.0, 1e-6), 2.0, 0.0, "epsilon=2"),
    (Budget(1.0, 1e-6), 1.0000003, 0.0, r"epsilon.*1\.0000003.*delta.*0.*epsilon.*1.*delta.*1e-06"),
    (Budget(5.0, 1e-7), 1.0, 1e-6, None),
])  # fmt: skip
def test_a_release_over_budget_is_refused_and_not_recorded(budget, epsilon, delta, said):
    ledger = Ledger(budget)
    with pytest.raises(BudgetExceededError, match=said):
        ledger.charge("a", Guarantee(epsilon, delta, Unit.PARTY, Adjacency.REPLACE, "other"))
    assert ledger.entries == []


BOTH = Unit.PARTY_AND_AUXILIARY_ROW
OFF = NoGuarantee("noise is off")


@pytest.mark.parametrize(("releases", "expected"), [
    # Who may change a party may change a label of its.
    ([pure(1.0), pure(2.0), pure(0.5, Unit.LABEL)], {"party": (3.0, 2, 1), "label": (3.5, 3, 0)}),
    ([pure(1.0), pure(0.25, BOTH), pure(0.5, BOTH)], {"party": (1.75, 3, 0), BOTH.value: (0.75, 2, 1)}),
    ([pure(1.0), OFF], {"party": (1.0, 1, 1)}), ([OFF], {}),
])  # fmt: skip
def test_totals_add_up_per_unit(releases, expected):
    ledger = Ledger()
    for guarantee in releases:
        ledger.charge("v", guarantee)
    assert {t["unit"]: (t["epsilon"], t["releases"], t["others"]) for t in ledger.totals(1e-6)} == expected
    assert ledger.to_dict(1e-6)["non_private"] == (OFF in releases)


@pytest.mark.parametrize(("unit", "covered"), [
    (Unit.LABEL, {Unit.LABEL}), (Unit.PERSON, {Unit.PERSON, Unit.LABEL}), (Unit.ROW, {Unit.ROW, Unit.LABEL}),
    (Unit.PARTY, {Unit.PARTY, Unit.ROW, Unit.LABEL}),
])  # fmt: skip
def test_units_cover_their_parts_and_nothing_else(unit, covered):
    assert {other for other in Unit if unit.covers(other)} == covered


BUDGET = Budget(1.5, 1e-5)


def given(epsilon, unit=Unit.LABEL, adjacency=Adjacency.REPLACE, delta=0.0, mu=None):
    return Guarantee(epsilon, delta, unit, adjacency, "some noise", gaussian_mu=mu)


SMALL = given(0.1, delta=6e-6)


@pytest.mark.parametrize(("releases", "said"), [
    ([], ""), ([given(1.5)], ""), ([given(0.75)] * 2, ""), ([SMALL], ""), ([OFF] * 2, ""), ([given(1.5), OFF], ""),
    ([given(1.0), given(1.0)], r"epsilon.*2.*delta.*0"), ([given(0.6)] * 3, r"epsilon.*1\.8.*delta.*0"),
    ([given(1.5), given(0.001)], r"epsilon.*1\.501.*delta.*0"), ([SMALL] * 2, r"delta.*1\.2e-05"),
    ([given(1.0), OFF, given(1.0)], "epsilon=2"),
    # Who may change a party may change a label of its.
    ([given(1.0, Unit.PARTY), given(1.0, Unit.LABEL)], r"label.*epsilon.*2"),
    ([given(1.0, Unit.ROW), given(1.0, Unit.PARTY)], r"row.*epsilon.*2"),
    ([given(1.0, Unit.PERSON), given(1.0, Unit.LABEL)], r"label.*epsilon.*2"),
    ([given(1.0, Unit.PERSON), given(1.0, Unit.ROW)], ""), ([given(1.0, Unit.PARTY), given(1.0, Unit.PERSON)], ""),
])  # fmt: skip
def test_epsilons_and_deltas_add_up_and_every_unit_is_held_against_the_budget_by_itself(releases, said):
    if not said:
        require_together(BUDGET, releases)
        return
    with pytest.raises(BudgetExceededError, match=said):
        require_together(BUDGET, releases)


@pytest.mark.parametrize("units", [(Unit.ROW, Unit.ROW), (Unit.ROW, Unit.LABEL), (Unit.PERSON, Unit.ROW)])
def test_two_adjacencies_have_no_total_whatever_the_budget(units):
    first, second = (given(1e-3, *pair) for pair in zip(units, Adjacency, strict=True))
    for alone in (first, second):
        require_together(Budget(100.0, 0.5), [alone, alone])
    with pytest.raises(BudgetExceededError):
        require_together(Budget(100.0, 0.5), [first, second])


def test_what_was_spent_on_the_choice_counts_in_totals_and_budgets():
    choice = pure(2.5, Unit.LABEL)
    ledger = Ledger(Budget(4.0, 0.0, choice=choice), choice)
    ledger.charge("a", pure(1.0, Unit.ROW))
    by_unit = {one["unit"]: (one["epsilon"], one["releases"], one["others"]) for one in ledger.totals(0.0)}
    assert by_unit == {"label": (3.5, 1, 0), "row": (1.0, 1, 0)}
    assert ledger.to_dict(0.0)["choice"]["epsilon"] == 2.5
    with pytest.raises(BudgetExceededError, match=r"'b'.*epsilon.*4\.5"):
        ledger.charge("b", pure(2.0))
    with pytest.raises(BudgetExceededError):
        ledger.charge("c", Guarantee(0.1, 0.0, Unit.ROW, Adjacency.ADD_REMOVE, "laplace"))
    two = [pure(1.0, Unit.LABEL)] * 2
    require_together(Budget(4.5, 0.0, choice=choice), two)
    with pytest.raises(BudgetExceededError, match=r"epsilon=4\.5"):
        require_together(Budget(4.4, 0.0, choice=choice), two)
    assert Budget.of({"epsilon": 1.0, "delta": 0.0}, None, choice.to_dict()).choice == choice
    assert "choice" not in Ledger().to_dict(0.0)


GAUSSIAN = calibrate("gaussian", sensitivity=1.0, dimension=4, epsilon=1.0, delta=1e-6)
PURE = calibrate("pure", sensitivity=1.0, dimension=4, epsilon=1.0)
LAPLACE = calibrate_laplace(l1_sensitivity=1.0, dimension=4, epsilon=1.0)
AT = " at delta 0, and {:.3g} at delta 1e-06, by the continuous law of the noise"
OWN = Assumption("of the mechanism", Check.ENFORCED)
PROMISED = Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "some noise", {"scale": 2.0}, (OWN,))


def test_a_world_says_how_its_classes_are_known_and_by_default_parties_trust_nobody(make_plan):
    plan = make_plan(draws=1, class_names="somebody declared them")
    assert plan_premises(plan) == (Assumption("somebody declared them", Check.DECLARED, Keeper.HOLDER),)
    for draws in (2, 30):
        _, text = plan_premises(make_plan(draws=draws))
        assert text.text.startswith(f"one of the {draws} draws is published; ")
        assert text.check is Check.DECLARED
    assert LOCAL in local_guarantee(make_plan(), PROMISED).assumptions
    assert local_guarantee(make_plan(), OFF) is OFF


@pytest.mark.parametrize("shared", [False, True])
def test_premises_come_after_those_of_the_mechanism_and_change_nothing_else(make_plan, shared):
    plan = make_plan()
    whose = summed(plan, GAUSSIAN) if shared else LOCAL
    found = local_guarantee(plan, PROMISED, whose)
    assert found.assumptions[:2] == (OWN, whose)
    assert {COUNTED_ONCE, ATTENDANCE, *plan_premises(plan)} <= set(found.assumptions)
    assert {**vars(found), "assumptions": (OWN,)} == vars(PROMISED)


@pytest.mark.parametrize(("servers", "told"), [
    ("one", "a secure summation, which is simulated here, shows"),
    ("one_semi_honest", "by one server that follows the protocol and only looks, which is simulated here, shows"),
    ("two", "by two servers that do not collude, which is simulated here, shows"),
])  # fmt: skip
def test_who_shares_a_noise_counts_on_a_quorum_less_those_that_collude_and_on_the_servers(make_plan, servers, told):
    known = summed(make_plan(parties=25, quorum=0.7, colluding=0.1, servers=servers), GAUSSIAN)
    assert "at least 18 of 25 answer, and at most 3 of them collude" in known.text
    assert told in known.text
    assert known.check is Check.DECLARED


@pytest.mark.parametrize(("whole", "colluding", "told"), [
    (GAUSSIAN, 0.1, f"; if 6 did, epsilon would be {weakened(GAUSSIAN, 12 / 15):.3g}"),
    (PURE, 0.04,
     f"; if 2 did, epsilon would be {weakened(PURE, 16 / 17):.3g}{AT.format(weakened(PURE, 16 / 17, 1e-6))}"),
    (PURE, 0.1, f"; if 6 did, no epsilon would be promised{AT.format(weakened(PURE, 12 / 15, 1e-6))}"),
    (LAPLACE, 0.1,
     f"; if 6 did, epsilon would be {weakened(LAPLACE, 12 / 15):.3g}, by the continuous law of the noise"),
    (PURE, 0.45, "; if 24 did, no epsilon would be promised"),
    (GAUSSIAN, 0.45, "; if 24 did, no epsilon would be promised"), (GAUSSIAN, 0.0, "collude with whoever sees the sum"),
])  # fmt: skip
def test_it_is_said_what_twice_as_many_would_leave(make_plan, whole, colluding, told):
    assert summed(make_plan(parties=25, quorum=0.7, colluding=colluding), whole).text.endswith(told)
