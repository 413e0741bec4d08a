"""Premises of guarantees: those of a world, and those of parties that make the noise themselves."""

from __future__ import annotations

import pytest

from aggregator.contract.ledger import ATTENDANCE, COUNTED_ONCE, LOCAL, local_guarantee, plan_premises, summed
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, NoGuarantee, Unit
from federation.mechanisms.noise.additive import calibrate, calibrate_laplace
from federation.mechanisms.sums.shares import weakened

GAUSSIAN = calibrate("gaussian", sensitivity=1.0, dimension=4, epsilon=1.0, delta=1e-6)
PURE = calibrate("pure", sensitivity=1.0, dimension=4, epsilon=1.0)
LAPLACE = calibrate_laplace(l1_sensitivity=1.0, dimension=4, epsilon=1.0)
AT = " at delta 0, and {:.3g} at delta 1e-06, by the continuous law of the noise"
OWN = Assumption("of the mechanism", Check.ENFORCED)
PROMISED = Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "some noise", {"scale": 2.0}, (OWN,))


def test_a_world_says_how_its_classes_are_known(make_plan):
    plan = make_plan(draws=1, class_names="somebody declared them")
    assert plan_premises(plan) == (Assumption("somebody declared them", Check.DECLARED, Keeper.HOLDER),)


@pytest.mark.parametrize("draws", [2, 30])
def test_several_draws_are_a_premise(make_plan, draws):
    _, text = plan_premises(make_plan(draws=draws))
    assert text.text.startswith(f"one of the {draws} draws is published; ")
    assert text.check is Check.DECLARED


@pytest.mark.parametrize("shared", [False, True])
def test_premises_come_after_those_of_the_mechanism_and_change_nothing_else(make_plan, shared):
    plan = make_plan()
    whose = summed(plan, GAUSSIAN) if shared else LOCAL
    found = local_guarantee(plan, PROMISED, whose)
    assert found.assumptions[:2] == (OWN, whose)
    assert {COUNTED_ONCE, ATTENDANCE, *plan_premises(plan)} <= set(found.assumptions)
    assert {**vars(found), "assumptions": (OWN,)} == vars(PROMISED)


def test_who_shares_a_noise_counts_on_a_quorum_less_those_that_collude(make_plan):
    known = summed(make_plan(parties=25, quorum=0.7, colluding=0.1), GAUSSIAN)
    assert "at least 18 of 25 answer, and at most 3 of them collude" in known.text
    assert known.check is Check.DECLARED


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ("one", "a secure summation, which is simulated here, shows"),
        ("one_semi_honest", "by one server that follows the protocol and only looks, which is simulated here, shows"),
        ("two", "by two servers that do not collude, which is simulated here, shows"),
    ],
)
def test_what_is_believed_of_servers_is_a_premise(make_plan, servers, told):
    assert told in summed(make_plan(parties=25, servers=servers), GAUSSIAN).text


@pytest.mark.parametrize(
    ("whole", "colluding", "told"),
    [
        (GAUSSIAN, 0.1, f"; if 6 did, epsilon would be {weakened(GAUSSIAN, 12 / 15):.3g}"),
        (
            PURE,
            0.04,
            f"; if 2 did, epsilon would be {weakened(PURE, 16 / 17):.3g}{AT.format(weakened(PURE, 16 / 17, 1e-6))}",
        ),
        (PURE, 0.1, f"; if 6 did, no epsilon would be promised{AT.format(weakened(PURE, 12 / 15, 1e-6))}"),
        (
            LAPLACE,
            0.1,
            f"; if 6 did, epsilon would be {weakened(LAPLACE, 12 / 15):.3g}, by the continuous law of the noise",
        ),
        (PURE, 0.45, "; if 24 did, no epsilon would be promised"),
        (GAUSSIAN, 0.45, "; if 24 did, no epsilon would be promised"),
        (GAUSSIAN, 0.0, "collude with whoever sees the sum"),
    ],
)
def test_it_is_said_what_twice_as_many_would_leave(make_plan, whole, colluding, told):
    assert summed(make_plan(parties=25, quorum=0.7, colluding=colluding), whole).text.endswith(told)


def test_by_default_parties_trust_nobody(make_plan):
    assert LOCAL in local_guarantee(make_plan(), PROMISED).assumptions


def test_what_promises_nothing_rests_on_nothing(make_plan):
    nothing = NoGuarantee("noise is off")
    assert local_guarantee(make_plan(), nothing) is nothing
