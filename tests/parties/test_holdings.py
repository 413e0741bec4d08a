"""What a party's labels may be, and that a refusal says nothing of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.errors import InputError
from parties.holdings import Holdings

ROWS = np.zeros((3, 2))


def held(labels, party=4):
    return Holdings(party, ROWS, np.asarray(labels))


@pytest.mark.parametrize("labels", [[0, 2, 5], [0.0, 2.5, 5.0], np.array([0, 2, 5], dtype=np.float32)])
def test_real_labels_are_float64(labels):
    found = held(labels).real_labels(4, 0.0, 5.0)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, labels)


@pytest.mark.parametrize("labels", [[0, 1, 5.1], [-0.1, 1, 2], [0, np.nan, 1], [0, np.inf, 1], [-np.inf, 0, 1]])
def test_labels_outside_the_range_are_refused_without_being_told(labels):
    with pytest.raises(InputError, match=r"finite and lie in the declared range \[0, 5\]") as refused:
        held(labels).real_labels(4, 0.0, 5.0)
    assert "5.1" not in str(refused.value)
    assert "nan" not in str(refused.value)


@pytest.mark.parametrize("labels", [["a", "b", "c"], np.zeros((3, 1)), np.array([True, False, True])])
def test_labels_of_another_kind_are_refused(labels):
    with pytest.raises(InputError, match="one number per row"):
        held(labels).real_labels(4, 0.0, 5.0)


def test_labels_of_another_party_are_refused():
    for read in (lambda holdings: holdings.real_labels(4, 0, 5), lambda holdings: holdings.class_codes(4, 2)):
        with pytest.raises(InputError, match="asked for party 4, the provider gave the rows of party 5"):
            read(held([0, 1, 1], party=5))


def test_class_codes_are_no_real_numbers():
    assert held([0, 1, 1]).class_codes(4, 2).tolist() == [0, 1, 1]
    for labels in ([0.0, 1.0, 1.0], [0, 1, 2], [-1, 0, 1]):
        with pytest.raises(InputError, match=r"one class code in 0\.\.1"):
            held(labels).class_codes(4, 2)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.floats(allow_nan=True), min_size=3, max_size=3), st.floats(-1e3, 1e3), st.floats(0, 1e3))
def test_what_is_accepted_is_in_the_range(labels, lo, width):
    hi = lo + width
    inside = all(lo <= label <= hi for label in labels)
    try:
        found = held(labels).real_labels(4, lo, hi)
    except InputError:
        assert not inside
    else:
        assert inside
        assert found.tolist() == labels
