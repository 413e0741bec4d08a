"""A wish: what it needs hidden, the public numbers that protocols are told, and what it refuses."""

from __future__ import annotations

import pytest

from aggregator.advice import Wish
from aggregator.contract.protocol import Trust
from federation.contract.errors import InputError


def wish(**changes):
    return Wish(**{"task": "binary", "protect": "label", "trust": Trust.NONE, **changes})


def test_private_features_make_a_label_need_its_row():
    assert wish().needed == "label"
    assert wish(public_features=False).needed == "row"
    assert wish(protect="party", public_features=False).needed == "party"


def test_protocols_are_told_the_public_numbers_that_a_run_has():
    found = wish(rows=101, parties=10, features=4, majority=0.7).numbers(constant=True)
    assert (found.rows, found.largest_bag, found.features, found.classes, found.majority) == (101, 11, 5, 2, 0.7)
    assert wish(features=4).numbers(constant=False).features == 4
    person = {"protect": "person", "rows_per_person": 3}
    assert wish(**person).numbers(False).rows_per_person == 3
    assert wish(**person, person_is_party=True).numbers(False).rows_per_person == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "rows must be a whole number from 1"),
        ({"features": 2.5}, "features must be a whole number"),
        ({"rows": 5, "parties": 6}, "parties must be at most rows"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"classes": 3}, "task binary has two classes"),
        ({"task": "multiclass", "classes": 1}, "classes must be"),
        ({"task": "sorting"}, "task"),
        ({"protect": "cell"}, "protect"),
        ({"majority": 1.5}, "majority must be a share"),
        ({"attainable": 0.0}, "attainable must be a share"),
        ({"label_range": (1.0, 0.0)}, "label_range"),
        ({"residual": -1.0}, "residual"),
    ],
)
def test_numbers_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        wish(**changes)
