"""What a party's labels may be, what a node's configuration may say, and what many parties hold, as arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.query import SIMULATED
from parties.party_data.cohort import Cohort, Held, Holdings

CONFIG = {"holdings": "{}", "first-party": 0, "parties": 1, "seed": 1}


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, -1, 1], [0.0, 1.0, 1.0], [[0], [1], [0]]])
def test_class_codes_out_of_form_are_refused(labels):
    with pytest.raises(InputError, match="0"):
        Holdings(4, np.zeros((3, 2)), np.asarray(labels)).class_codes(2)


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_class_codes_are_all_from_zero_to_the_last_class(kind):
    codes = Holdings(4, np.zeros((3, 2)), np.array([0, 2, 1], kind)).class_codes(3)
    assert (codes.tolist(), codes.dtype) == ([0, 2, 1], np.int64)


@pytest.mark.parametrize("labels", [[0.5, -7.0], [3, 4], [True, False]])
def test_real_labels_are_taken_as_they_are(labels):
    assert Holdings(4, np.zeros((2, 2)), np.array(labels)).numbers().tolist() == labels


@pytest.mark.parametrize("labels", [[[0.5], [1.0]], ["a", "b"], [1j, 0], [None, 1.0]])
def test_labels_that_are_not_one_number_per_row_are_refused(labels):
    with pytest.raises(InputError):
        Holdings(4, np.zeros((2, 2)), np.array(labels)).numbers()


@pytest.mark.parametrize("rows", [np.empty((0, 2)), np.array([[np.inf, 0.0]])])
def test_a_party_without_usable_rows_is_refused_unless_that_would_tell_of_a_row(rows, monkeypatch):
    """Whether there is a row, and whether one is infinite, is what the guarantee for a row hides."""
    stuck = SimpleNamespace(holdings=lambda party: Holdings(4, rows, np.zeros(len(rows), int)))  # whoever is asked for
    monkeypatch.setattr(Cohort, "provider", stuck)
    node = Cohort("", 3, 2, seed=1)
    with pytest.raises(InputError, match="4"):
        node.holdings(4)
    assert len(node.holdings(4, private_rows=True).rows) == len(rows)
    with pytest.raises(InputError, match="3"):
        node.holdings(3, private_rows=True)


def test_a_configuration_is_of_a_simulation_and_where_nothing_is_said_features_are_private_and_unpaid():
    """Its user pays for the memory of all parties, and of many behind one node."""
    own = {"holdings": "{}", "first-party": 3, "parties": 2, "partition-id": 1, "seed": 7}
    assert Cohort.from_config({**own, "public-features": True, "paid": True}) == Cohort("{}", 3, 2, 7, limits=SIMULATED)
    for missing in ("holdings", "seed"):
        with pytest.raises(InputError, match=missing):
            Cohort.from_config({name: value for name, value in own.items() if name != missing})
    silent = Cohort("", 0, 1, None)
    assert (silent.public_features, silent.paid) == (False, False)


def test_rows_with_fewer_labels_are_refused():
    with pytest.raises(InputError, match="labels"):
        Holdings(0, np.zeros((2, 2)), np.array([0])).require_usable()


def test_a_cohort_has_company_where_its_configuration_names_more_parties_than_its_own():
    config = {**CONFIG, "first-party": 3, "parties": 2}
    assert Cohort.from_config(config).company is None
    assert Cohort.from_config({**config, "first-of-company": 3, "company": 2}).company is None
    assert Cohort.from_config({**config, "first-of-company": 1, "company": 4}).company == range(1, 5)
    for first, count in ((1, 3), (4, 4), (3, 1), (-1, 9)):  # without them, or of nobody
        with pytest.raises(InputError):
            Cohort.from_config({**config, "first-of-company": first, "company": count})


@pytest.mark.parametrize(
    "changes", [{"first-party": "x"}, {"first-party": -1}, {"first-party": []}, {"parties": 0}, {"parties": 10**12},
                {"parties": float("inf")}, {"seed": "x"}, {"seed": None}],
)  # fmt: skip
def test_numbers_of_a_configuration_that_are_none_are_refused(changes):
    with pytest.raises(InputError):
        Cohort.from_config({**CONFIG, **changes})


def held(counts):
    counts = np.array(counts, dtype=np.int64)
    rows = np.arange(2.0 * counts.sum()).reshape(-1, 2)
    return Held(np.arange(10, 10 + len(counts)), rows, np.arange(counts.sum()) % 3, counts)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
def test_a_part_is_each_chosen_partys_own(counts, data):
    whole = held(counts)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts))))
    part, each = whole.part(chosen), list(whole.each())
    assert part.parties.tolist() == whole.parties[chosen].tolist()
    expected = [each[place] for place in np.flatnonzero(chosen)]
    for (rows, labels), (own_rows, own_labels) in zip(part.each(), expected, strict=True):
        np.testing.assert_array_equal(rows, own_rows)
        np.testing.assert_array_equal(labels, own_labels)
    by_place = whole.part(np.flatnonzero(chosen))
    np.testing.assert_array_equal(by_place.rows, part.rows)


def test_owners_are_places_all_parties_are_no_copy_and_only_shapes_are_shown():
    whole = held([2, 1, 3])
    assert whole.owners.tolist() == [0, 0, 1, 2, 2, 2]
    assert whole.part(np.arange(3)) is whole
    assert "array" not in repr(whole) + str(whole)
    assert repr(Holdings(4, np.full((2, 3), 7.25), np.array([0, 1]))) == "Holdings(party=4, rows=(2, 3))"
