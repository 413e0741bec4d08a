"""The worst pair of bags: of neighbours, as far apart as they can be, and told apart by what parties really hold.

The worst pair of bags that are the same at all parties: neighbours at one of them, and totals told apart exactly.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS
from support.worst_pairs import pair_of, without_noise

from aggregator.contract.worst_case import PARTIES
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from parties.responses.bags import bags_of
from scenarios.audits.auditor import cohort

ROW = {"noise": "gaussian", "protect": "row", "submit": "embedding", "estimator": "whitened"}


def bags(options=None, classes=4, persons=0, units=1, delta=1e-3):
    return pair_of("class_ratio", options or {}, PublicNumbers(delta, classes=classes, rows_per_person=persons), units)


def counts(pair, there, party=0):
    """What a party holds, by its own code."""
    with cohort(pair.held(there), party + 1) as node:
        return bags_of(node, party, pair.question.bags).counts


def expected_counts(worst, there):
    """Rows that count, (bags, classes): of a person one in each bag, and in no more bags than are declared."""
    found = np.full((worst.rows_per_person + 1, worst.classes), float(worst.least))
    found[: worst.rows_per_person or 1, int(there)] += worst.units
    return found


@pytest.mark.parametrize("persons", [0, 1, 3])
@pytest.mark.parametrize("units", [1, 2])
def test_the_pair_is_of_neighbours(persons, units):
    pair = bags(persons=persons, units=units)
    assert pair.question.bags.rows_per_person == persons
    moved = counts(pair, True) - counts(pair, False)
    counting = max(1, persons)
    assert moved[:counting].tolist() == [[-units, units, 0, 0]] * counting
    assert not moved[counting:].any()
    assert len(moved) == persons + 1
    [before], [after] = pair.held(False), pair.held(True)
    changed = before.labels != after.labels
    if persons:
        assert set(before.persons[changed]) == set(range(units))
    else:
        assert before.persons is None
        assert changed.sum() == units
    np.testing.assert_array_equal(before.rows, after.rows)
    np.testing.assert_array_equal(before.bags, after.bags)
    promised = pair.answers(False, "form", 1)[0].guarantee
    assert promised.unit is (Unit.PERSON if persons else Unit.LABEL)


@pytest.mark.parametrize(("options", "least"), [
    ({"noise": "dirichlet_floor", "floor": 33}, 33), ({"noise": "dirichlet_shifted", "pseudo_count": 33}, 0),
    ({"noise": "pure"}, 10),
])  # fmt: skip
def test_floors_are_reached_and_pseudo_counts_stand_alone(options, least):
    pair = bags(options, classes=3)
    assert counts(pair, False).tolist() == [[least + 1, least, least]]
    assert counts(pair, True).tolist() == [[least, least + 1, least]]


def test_rows_of_the_pair_are_as_far_apart_as_can_be_and_half_of_the_shares_may_be_missing_instead():
    pair = bags(ROW, classes=3)
    before, after = (pair.question.feature_map.transform(pair.held(there)[0].rows) for there in (False, True))
    assert (before != after).any(axis=1).sum() == 1
    assert 1.999 < np.linalg.norm(before.sum(axis=0) - after.sum(axis=0)) <= 2
    for there in (False, True):
        np.testing.assert_array_equal(expected_counts(pair.worst, there), counts(pair, there))
    pair = worst_common_bags(units=2)
    assert (pair.worst.units, pair.worst.shared) == (2, True)
    assert len(pair.held(False)) == 1
    with pytest.raises(InputError, match="counts"):
        replace(worst_common_bags(), question=QUESTIONS["counts"]).held(False)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("persons", [0, 1, 3])
def test_its_counts_are_those_that_a_party_answers_without_noise(persons, units, there):
    for options in ({}, {"noise": "dirichlet_floor", "floor": 33}, {"noise": "dirichlet_shifted", "pseudo_count": 33}):
        pair = bags(options, persons=persons, units=units)
        seen = without_noise(pair, 2, there)["counts"]
        np.testing.assert_array_equal(seen, np.repeat(expected_counts(pair.worst, there)[None], 2, axis=0))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_labels_weigh_in_the_statistic_as_they_do_where_the_noise_is_added(share):
    """There they move by sqrt 2 times their weight and rows by 2, in noise that is the same in all directions."""
    pair = bags(ROW | {"label_share": share}, classes=3)
    here, there = (without_noise(pair, 1, side) for side in (False, True))
    [low], [high] = (pair.statistic(side) for side in (here, there))
    moved = (high - low) * pair.question.mechanism().scale ** 2
    assert moved == pytest.approx(2 * pair.question.label_weight**2 + 4, rel=1e-3)


EMBEDDED = {"trust": "secure", "submit": "embedding", "estimator": "whitened"}
OPTIONS = {
    "rows": {"trust": "secure"},
    "embedding": EMBEDDED,
    "private rows": {**EMBEDDED, "protect": "row", "noise": "gaussian"},
}


def worst_common_bags(name="rows", persons=0, units=1, **more):
    public = PublicNumbers(1e-3, classes=3, rows_per_person=persons)
    return pair_of("class_ratio", {**OPTIONS[name], **more}, public, units)


@pytest.mark.parametrize("name", OPTIONS)
def test_one_row_of_the_first_party_changes_and_nothing_public(name):
    pair = worst_common_bags(name)
    before, after = pair.held(False), pair.held(True)
    assert len(before) == len(after) == pair.question.contributors == 3
    changed = [(one.labels != other.labels).sum() for one, other in zip(before, after, strict=True)]
    assert changed == [1, 0, 0]
    moved = [(one.rows != other.rows).sum() for one, other in zip(before, after, strict=True)]
    assert moved == [int(name == "private rows"), 0, 0]
    assert pair.worst.world["parties"] == PARTIES
    assert "3 of 6 parties, whose answers are seen in one sum only, one row or label changes" in pair.worst.described


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("name", "persons"), [("rows", 0), ("rows", 2), ("embedding", 1), ("private rows", 0)])
def test_its_totals_are_those_that_parties_answer_without_noise(name, persons, there):
    pair = worst_common_bags(name, persons)
    seen, question = without_noise(pair, 2, there), pair.question
    first, *others = [counts(pair, there, party) for party in range(len(pair.held(there)))]
    weight = question.label_weight if name == "private rows" else 1.0
    np.testing.assert_allclose(seen["counts"], np.tile(weight * (first + sum(others)), (2, 1, 1)), atol=1e-6)
    if name == "private rows":
        sums = sum(question.feature_map.transform(held.rows).sum(axis=0) for held in pair.held(there))
        np.testing.assert_allclose(seen["sums"][:, 0], np.tile(sums, (2, 1)), atol=1e-6)
        assert not seen["sums"][:, 1:].any()


@pytest.mark.parametrize(("persons", "moved"), [(0, 2), (2, 4)])
def test_a_person_changes_in_every_bag_that_counts(persons, moved):
    pair = worst_common_bags(persons=persons, noise="pure")
    here, there = (without_noise(pair, 1, side)["counts"] for side in (False, True))
    assert np.abs(here - there).sum() == moved == pair.question.mechanism().additive.sensitivity
