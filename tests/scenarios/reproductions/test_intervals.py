"""Paired differences and further splits, held against scipy and by simulation."""

import numpy as np
import pytest
from scipy import stats

from scenarios.reproductions.compare import of_further, paired


def by_split(values):
    return dict(enumerate(values))


def test_a_paired_difference_is_what_scipy_says_of_it():
    random = np.random.default_rng(3)
    one, other = random.normal(0.8, 0.05, 9), random.normal(0.75, 0.05, 9)
    found = paired(by_split(one), by_split(other))
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.p == pytest.approx(stats.wilcoxon(one, other).pvalue)
    assert found.difference == pytest.approx((one - other).mean())


def test_only_common_splits_count_and_few_tell_no_interval():
    found = paired({0: 1.0, 1: 2.0, 5: 9.0}, {0: 0.5, 1: 1.0, 2: 7.0})
    assert (found.difference, found.interval, found.p, found.splits, found.surely) == (0.75, None, None, 2, 0)
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_equal_values_are_no_difference_and_no_error():
    found = paired(by_split([0.5] * 4), by_split([0.5] * 4))
    assert (found.difference, found.p, found.surely) == (0.0, None, 0)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_sign_is_told_where_zero_is_outside(sign):
    assert paired(by_split([sign * v for v in (1.0, 1.1, 0.9, 1.05)]), by_split([0.0] * 4)).surely == sign


def test_the_mean_of_further_splits_lies_there_in_95_of_100_cases():
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(2000):
        low, high = of_further(random.normal(size=6).tolist(), further=2)
        hits += low <= random.normal(size=2).mean() <= high
    assert 0.935 < hits / 2000 < 0.965
