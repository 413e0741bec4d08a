"""How many bags of which rows a party forms, and options that leave it none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.regressions.bag_options import bags_of_size, require_size
from federation.contract.errors import InputError


@pytest.mark.parametrize(("size", "bags", "words"), [(0, None, "size.*from 1, got 0"), (3, 0, "bags.*got 0")])
def test_a_bag_has_a_row_and_there_is_one(size, bags, words):
    require_size(1, None)
    require_size(1, 1)
    with pytest.raises(InputError, match=words):
        require_size(size, bags)


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 500), st.integers(0, 500))
def test_so_many_bags_as_are_asked_for_take_the_rows_that_every_party_has(size, bags, least, further):
    if least < size * bags:
        with pytest.raises(InputError, match=f"{bags} disjoint bags of size {size} need {bags * size} rows"):
            bags_of_size(size, bags, least, least + further)
    else:
        assert bags_of_size(size, bags, least, least + further) == (least, bags)


@given(st.integers(1, 50), st.integers(1, 500), st.integers(0, 500))
def test_without_a_number_each_party_forms_what_it_can(size, least, further):
    if least < size:
        with pytest.raises(InputError, match=f"some party has {least}; use smaller or fewer bags"):
            bags_of_size(size, None, least, least + further)
    else:
        records, bags = bags_of_size(size, None, least, least + further)
        assert records == 0
        assert bags * size <= least + further < (bags + 1) * size
