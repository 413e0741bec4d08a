import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fuzz.written import written
from scenarios.settings.loader import parse

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False)
    | st.text("ab-:#é", max_size=5)
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3)
)


@given(TREES, st.integers(0, 1000))
def test_what_is_written_is_read_again(tree, number):
    assert parse(written(tree, random.Random(number)), "s")[0] == tree


@pytest.mark.parametrize(
    ("value", "text"), [(float("nan"), ".nan"), (float("-inf"), "-.inf"), ("true", '"true"'), ("a", "a")]
)
def test_words_and_numbers_are_written_as_people_do(value, text):
    assert written(value) == f"{text}\n"
