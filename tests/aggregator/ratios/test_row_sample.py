"""The rows that stand for all rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.learners.class_ratios.kernel_means import thinned


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=12))
def test_few_rows_are_all_kept_and_many_are_thinned_evenly(sizes):
    bags = [np.arange(size)[:, None] for size in sizes]
    found = thinned(bags)
    assert len(found) == len(bags)
    total = sum(map(len, found))
    if sum(sizes) <= 20_000:
        assert total == sum(sizes)
    else:
        assert 10_000 <= total <= 40_000
    for bag, kept in zip(bags, found, strict=True):
        steps = np.diff(kept[:, 0])
        assert kept[0, 0] == bag[0, 0]
        assert len(set(steps)) <= 1
        assert abs(len(kept) / total - len(bag) / sum(sizes)) < 0.01


def test_of_very_many_small_bags_some_are_kept_whole():
    found = thinned([np.zeros((5, 1))] * 30_000)
    assert len(found) == 1000
    assert {len(bag) for bag in found} == {5}
