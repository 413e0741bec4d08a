"""Bags of which proportions are known: every bag counts as one, or every row does."""

import numpy as np
import pytest

from federation.contract.randomness import generator
from scenarios.papers.patrini.theory import DRIFTING, EQUAL, SETTINGS, Bags, estimates, in_bags


def drawn(setting, rows=400):
    random = generator(1, "rows of two classes")
    codes = (np.arange(rows) % 5 < 2).astype(int)
    data = random.normal(size=(rows, 3)) / 10 + np.where(codes[:, None] == 1, 1.0, -1.0) * [1.0, 0.5, 0.0]
    return in_bags(data, codes, setting, random)


@pytest.mark.parametrize("setting", SETTINGS)
def test_bags_are_disjoint_and_their_shares_rise(setting):
    bags = drawn(setting)
    rows = np.concatenate(bags.rows)
    assert len(np.unique(rows, axis=0)) == len(rows) > 380
    assert bags.proportions.sum(axis=1) == pytest.approx(1)
    assert bags.proportions[-1, 1] > bags.proportions[0, 1] + 0.2


def test_both_ways_agree_on_equal_bags():
    bags = drawn(EQUAL)
    found = {(series, role): moment for series, role, moment in estimates(bags)}
    for series in ("Mean Map", "Laplacian Mean Map"):
        assert found[series, "published"] == pytest.approx(found[series, "default"], abs=1e-9)


def test_a_bag_whose_rows_are_there_twice_counts_more_by_default_only():
    bags = drawn(EQUAL)
    twice = Bags(
        [*bags.rows[:-1], np.repeat(bags.rows[-1], 2, axis=0)], [*bags.codes[:-1], np.repeat(bags.codes[-1], 2)]
    )
    for (_, role, before), (_, _, after) in zip(estimates(bags), estimates(twice), strict=True):
        assert (np.abs(before - after).max() < 1e-12) == (role == "published")


def test_where_classes_drift_bags_are_in_the_order_of_a_feature():
    bags = drawn(DRIFTING)
    means = [rows[codes == 1, 0].mean() for rows, codes in zip(bags.rows, bags.codes, strict=True)]
    assert means == sorted(means, reverse=True)
