import copy
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fuzz.mutation import Mutation, deep, npy_bytes

TREE = {"data": {"source": "digits", "auxiliary": 0.5}, "parties": {"count": [3, 4]}, "trials": None}


@given(st.integers(0, 10**6))
def test_changes_follow_the_source_alone_and_leave_what_was_given(number):
    before = copy.deepcopy(TREE)
    found = [Mutation(random.Random(number), {"count": [7]}).plain(TREE) for _ in range(2)]
    assert repr(found[0]) == repr(found[1])
    assert before == TREE


def test_most_changes_change_something_and_values_that_are_known_of_a_key_are_put_in_its_place():
    found = [Mutation(random.Random(number), {"source": ["iris"]}).plain(TREE) for number in range(300)]
    assert sum(repr(one) != repr(TREE) for one in found) > 270
    assert len({repr(one) for one in found}) > 200
    data = [one["data"] for one in found if isinstance(one, dict) and isinstance(one.get("data"), dict)]
    assert "iris" in [one.get("source") for one in data]


@given(st.integers(0, 10**6), st.binary(max_size=60))
def test_bytes_and_texts_may_become_anything_of_their_kind(number, content):
    assert isinstance(Mutation(random.Random(number)).raw(content), bytes)
    assert isinstance(Mutation(random.Random(number)).text(content.decode(errors="replace")), str)


@pytest.mark.parametrize(
    "array", [np.zeros((3, 2)), np.array(["a", "b"]), np.array(1), np.zeros((0, 2)), np.arange(3) > 1]
)
def test_arrays_become_other_arrays_and_none_of_objects(array):
    found = [Mutation(random.Random(number)).array(array) for number in range(300)]
    assert all(isinstance(one, np.ndarray) and not one.dtype.hasobject for one in found)
    assert len({(one.shape, one.dtype.str) for one in found}) > 5
    assert all(npy_bytes(one)[:6] == b"\x93NUMPY" for one in found)


def test_a_deep_text_is_deeper_than_pythons_parsers():
    assert len(deep(random.Random(1))) >= 3000
