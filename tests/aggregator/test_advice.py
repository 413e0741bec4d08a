"""Every protocol is ranked or refused with a reason, and those that are ranked keep the wish.

A wish: what it needs hidden, the public numbers that protocols are told, and what it refuses.
"""

import math
from dataclasses import dataclass, replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from aggregator import advice as ranking
from aggregator.advice import Protect, Wish, contenders, nearest, rank
from aggregator.contract import registry
from aggregator.contract.protocol import Place, Trust
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.trust import TrustTerms

CLASSES = Wish("binary", "label", Trust.NONE, rows=12_000, features=50, terms=TrustTerms(100))
REAL = Wish("regression", "label", Trust.NONE, rows=16_512, features=8, terms=TrustTerms(1), label_range=(0.15, 5.0))
HIDES = {Unit.PARTY: "party", Unit.ROW: "row", Unit.LABEL: "label", Unit.PERSON: "person"}


def kinds(wish):
    return [one.kind for one in rank(wish).ranked]


def reason(wish, kind):
    return next(one.reason for one in rank(wish).refused if one.kind == kind)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "ratio"])
@pytest.mark.parametrize("trust", Trust)
@pytest.mark.parametrize("public", [True, False])
def test_every_protocol_is_ranked_or_refused_and_what_is_ranked_keeps_the_wish(task, trust, public):
    known = {"rows": 600, "features": 4, "terms": TrustTerms(30), "label_range": (0.0, 1.0), "public_rows": 200}
    known |= {"bags": 2, "bag_rows": 10, "classes": 2 if task == "binary" else 4}
    for protect in get_args(Protect):
        wish = Wish(task, protect, trust, public, **known)
        advice = rank(wish)
        assert {one.kind for one in (*advice.ranked, *advice.refused)} == set(registry.protocol_names())
        assert all(one.reason for one in advice.refused)
        errors = [math.inf if one.expected is None else one.expected.error for one in advice.ranked]
        assert errors == sorted(errors)
        for one in advice.ranked:
            hidden = HIDES[one.guarantee.unit]
            assert hidden == wish.needed or (protect == "person" and hidden in ("row", "label"))
            assert one.place is not Place.NOWHERE
            assert trust is Trust.AGGREGATOR or one.place is not Place.AGGREGATOR
            assert trust is not Trust.NONE or one.place is Place.PARTY
            assert public or one.place is Place.AGGREGATOR or all(sent.private for sent in one.promise.sends)


def test_small_parties_answer_with_random_labels_large_or_trusting_ones_with_sums_and_one_alone_too():
    first = rank(CLASSES).ranked[0]
    assert first.expected.noise == pytest.approx(1 / math.sinh(0.5) / math.sqrt(12_000), rel=1e-6)
    together = rank(replace(CLASSES, terms=TrustTerms(1))).ranked
    assert together[0].expected.noise < first.expected.noise
    assert [dict(one.options) for one in together] == [{}, {"noise": "randomised_response"}]
    row = replace(CLASSES, protect="row", public_features=False)
    alone, shared = rank(row), rank(replace(row, trust=Trust.SECURE))
    assert shared.ranked[0].options == {"protect": "row", "trust": "secure"}
    assert shared.ranked[0].place is Place.SHARES
    assert shared.ranked[0].expected.error < alone.ranked[0].expected.error
    assert kinds(REAL)[0] == "label_sums"
    many = replace(REAL, rows=79_809, features=112, terms=TrustTerms(100), label_range=(0.0, 52.0))
    assert kinds(many)[:2] == ["private_labels", "private_labels"]
    usual = {one.options.get("shape", "optimal"): one for one in rank(REAL).ranked if one.kind == "label_sums"}
    worse = rank(replace(REAL, traces={"optimal": 9.0, "whitened": 0.1, "isotropic": 9.0})).ranked
    assert usual["optimal"].expected.error < usual["whitened"].expected.error
    assert worse[0].options == {"shape": "whitened"}
    assert (worse[0].expected.basis, usual["whitened"].expected.basis) == ("exact", "guess")


def test_examples_in_numbers_stay_true():
    """Response at 120 rows of a party, and sums above 989 at 51 columns; what each leaves of .9 that can be had."""
    own = {str(dict(one.options)): one.expected for one in rank(CLASSES).ranked}
    assert [round(one.noise, 3) for one in own.values()] == [0.018, 0.05]
    assert [round(1 - one.error, 2) for one in own.values()] == [0.89, 0.85]
    summed = rank(replace(CLASSES, trust=Trust.SECURE)).ranked[0].expected
    assert round(1 - summed.error, 2) == 0.90
    for rows, other in ((985, "sums"), (993, "randomised_response")):  # what the default does not take there
        second = rank(replace(CLASSES, rows=100 * rows)).ranked[1]
        assert dict(second.options) == {"noise": other}


def test_a_known_majority_makes_what_falls_back_to_it_the_first_and_of_equal_ones_the_summed_one():
    row = replace(CLASSES, protect="row", public_features=False, public_rows=3000, epsilon=0.1, majority=0.9)
    first = rank(row).ranked[0]
    assert first.kind == "error_marginals"
    assert first.expected.hopeless
    assert rank(replace(row, majority=None)).ranked[0].kind == "mean_operator"
    known = {"rows": 1300, "features": 21, "terms": TrustTerms(100), "classes": 3, "public_rows": 400}
    wish = Wish("multiclass", "party", Trust.AGGREGATOR, False, **known)
    first = {majority: rank(replace(wish, majority=majority)).ranked[0] for majority in (None, 0.6, 0.7)}
    assert [one.kind for one in first.values()] == ["soft_vote", "soft_vote", "parameter_average"]
    assert 0.3 < first[0.7].expected.noise < 0.4
    assert rank(replace(wish, majority=0.7, epsilon=0.5)).ranked[0].kind == "soft_vote"
    found = rank(replace(CLASSES, trust=Trust.SECURE, rows=300, terms=TrustTerms(150), epsilon=3.0)).ranked
    assert found[0].expected.error == found[1].expected.error
    assert [one.place for one in found[:2]] == [Place.SHARES, Place.PARTY]


@pytest.mark.parametrize(("changes", "kind", "part"), [
    ({"protect": "party"}, "mean_operator", "what has to be hidden is all that a party holds"),
    ({"protect": "party", "trust": Trust.AGGREGATOR}, "soft_vote", "give a file of them with --public-rows"),
    ({"protect": "party", "public_rows": 9}, "soft_vote", "choose trust: secure, where all share one noise"),
    ({"task": "multiclass", "classes": 5}, "mean_operator", "there are 5; name those that count as one"),
    ({"public_features": False}, "soft_vote", "as features are private"),
    ({"protect": "person", "rows_per_person": 4}, "mean_operator", "--protect label at epsilon 0.25 hides so many"),
    ({"task": "ratio"}, "class_ratio", "it needs bags"),
    ({"task": "regression"}, "weighted_lba", "to reproduce a paper"),
    ({"task": "regression"}, "soft_vote", "its task is classification, and yours regression"),
    ({"protect": "row", "public_features": False, "delta": 0.0, "task": "regression"}, "label_sums", "needs delta"),
])  # fmt: skip
def test_a_refusal_names_what_is_missing(changes, kind, part):
    assert part in reason(replace(CLASSES, **changes), kind)


def test_people_with_several_rows_need_a_larger_delta_and_persons_who_are_parties_more_than_rows():
    wish = replace(CLASSES, protect="person", rows_per_person=2, epsilon=2.0)
    assert f"at delta {1e-6 * (1 + math.e):.3g}" in reason(wish, "mean_operator")
    one_row = rank(replace(wish, rows_per_person=1)).ranked
    assert one_row[0].kind == "mean_operator"
    wish = Wish("binary", "person", Trust.AGGREGATOR, rows=3000, features=9, terms=TrustTerms(50), public_rows=500)
    reasons = {
        are: {one.kind: one.reason for one in rank(replace(wish, person_is_party=are, rows_per_person=3)).refused}
        for are in (False, True)
    }
    assert "hides so many together" in reasons[False]["mean_operator"]
    assert reasons[True]["mean_operator"] == "it hides one label, and what has to be hidden is all rows of a person"


REGRESSION = {"task": "regression", "protect": "party", "label_range": (0.0, 1.0)}


@pytest.mark.parametrize(("changes", "flags"), [
    ({"protect": "party", "trust": Trust.AGGREGATOR}, {"public-rows": "FILE"}),
    ({"protect": "party", "public_features": False}, {"protect": "row"}),
    ({"task": "multiclass", "classes": 5}, {"positive": "CLASS"}), (REGRESSION, {"protect": "row"}),
    ({**REGRESSION, "public_features": False}, {"protect": "label", "features": "public"}),
])  # fmt: skip
def test_where_nothing_keeps_the_wish_the_nearest_that_can_be_kept_are_found(changes, flags):
    wish = replace(CLASSES, **changes)
    assert rank(wish).ranked == ()
    assert flags in [dict(changed) for changed, _ in nearest(wish)]


def test_a_protocol_of_another_package_is_ranked_by_what_it_says_itself(monkeypatch):
    found = registry.protocol("mean_operator")

    @dataclass(frozen=True)
    class Own(found):
        suggested = ({"noise": "pure"},)

    monkeypatch.setattr(ranking.registry, "protocol_names", lambda: ["own"])
    monkeypatch.setattr(ranking.registry, "protocol", lambda name: Own)
    assert [(one.kind, one.options) for one in rank(CLASSES).ranked] == [("own", {"noise": "pure"})]


@settings(max_examples=examples(8))
@given(
    rows=st.integers(200, 10**6),
    features=st.integers(1, 60),
    parties=st.integers(1, 100),
    epsilon=st.floats(0.05, 8),
    task=st.sampled_from(["binary", "regression"]),
)
def test_more_privacy_never_costs_less(rows, features, parties, epsilon, task):
    known = {"rows": rows, "features": features, "terms": TrustTerms(parties), "epsilon": epsilon}
    wish = Wish(task, "label", Trust.NONE, **known, label_range=(0.0, 1.0) if task == "regression" else None)
    tight, loose = (rank(one).ranked[0].expected for one in (wish, replace(wish, epsilon=2 * epsilon)))
    assert 0 < loose.error <= tight.error * (1 + 1e-9)


def test_contenders_differ_in_more_than_trust_and_keep_the_order():
    known = {"rows": 3000, "features": 9, "terms": TrustTerms(100), "classes": 4, "public_rows": 500}
    ranked = rank(Wish("multiclass", "party", Trust.AGGREGATOR, **known)).ranked
    kept = contenders(ranked)
    assert [one for one in ranked if one in kept] == kept
    assert kept[0] == ranked[0]
    formulas = [one for one in kept if one.expected is not None]
    assert [dict(one.options) for one in formulas if one.kind == "soft_vote"] == [{"noise": "gaussian"}, {}]

    def but_trust(one):
        return one.kind, {name: value for name, value in one.options.items() if name != "trust"}

    for left_out in (one for one in ranked if one not in kept):
        [same] = [one for one in kept if but_trust(one) == but_trust(left_out)]
        assert same.expected.error <= left_out.expected.error
    unknown = [one for one in ranked if one.expected is None]
    assert [one for one in kept if one.expected is None] == unknown


def wish(**changes):
    return Wish(**{"task": "binary", "protect": "label", "trust": Trust.NONE, **changes})


def test_protocols_are_told_the_public_numbers_and_private_features_make_a_label_need_its_row():
    found = wish(rows=101, terms=TrustTerms(10), features=4, majority=0.7).numbers(constant=True)
    assert (found.rows, found.largest_bag, found.features, found.classes, found.majority) == (101, 11, 5, 2, 0.7)
    assert wish(features=4).numbers(constant=False).features == 4
    person = {"protect": "person", "rows_per_person": 3}
    assert wish(**person).numbers(False).rows_per_person == 3
    assert wish(**person, person_is_party=True).numbers(False).rows_per_person == 0
    assert wish().needed == "label"
    assert wish(public_features=False).needed == "row"
    assert wish(protect="party", public_features=False).needed == "party"


@pytest.mark.parametrize(("changes", "message"), [
    ({"rows": 0}, r"rows.*1"), ({"features": 2.5}, "features"), ({"rows": 5, "terms": TrustTerms(6)}, "parties"),
    ({"epsilon": 0.0}, "epsilon"), ({"delta": 1.0}, "delta"), ({"classes": 3}, None),
    ({"task": "multiclass", "classes": 1}, "classes"), ({"task": "sorting"}, "task"), ({"protect": "cell"}, "protect"),
    ({"majority": 1.5}, "majority"), ({"attainable": 0.0}, "attainable"), ({"label_range": (1.0, 0.0)}, "label_range"),
    ({"residual": -1.0}, "residual"),
])  # fmt: skip
def test_numbers_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        wish(**changes)
