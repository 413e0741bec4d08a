"""Skewed partitions: every row at most once, sizes as asked, and exactly as much skew as the law implies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.simulated.dealing import dealt_by_class, quantities


def parts(labels, sizes, alpha, seed=1, split=0, shuffle=False):
    """The labels of each party's rows, in a list; checks that no row is dealt twice."""
    sizes = np.asarray(sizes)
    dealt = dealt_by_class(np.asarray(labels), sizes, alpha, seed, split, shuffle=shuffle)
    assert len(np.unique(dealt)) == len(dealt) == sizes.sum()
    assert dealt.size == 0 or (dealt.min() >= 0 and dealt.max() < len(labels))
    return np.split(dealt, np.cumsum(sizes)[:-1])


def concentration(labels, dealt, classes):
    """Mean over parties of the sum of their squared class shares: 1/C without skew, 1 for one class each."""
    shares = np.array([np.bincount(labels[rows], minlength=classes) / len(rows) for rows in dealt])
    squares = (shares**2).sum(axis=1)
    return squares.mean(), squares.std() / np.sqrt(len(squares))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    cuts=st.lists(st.integers(1, 8), min_size=1, max_size=20),
    alpha=st.sampled_from([1e-6, 0.01, 0.3, 1.0, 50.0, 1e6]),
    seed=st.integers(0, 2**40),
    shuffle=st.booleans(),
)
def test_every_row_is_dealt_at_most_once_and_sizes_are_exact(labels, cuts, alpha, seed, shuffle):
    sizes = []
    for size in cuts:  # as many parties as there are rows for, often all rows
        if sum(sizes) + size <= len(labels):
            sizes.append(size)
    if not sizes:
        return
    first = parts(labels, sizes, alpha, seed, shuffle=shuffle)
    again = parts(labels, sizes, alpha, seed, shuffle=shuffle)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    if not shuffle:  # more parties change nothing for the first ones
        fewer = parts(labels, sizes[:1], alpha, seed)
        np.testing.assert_array_equal(fewer[0], first[0])


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1.0, 10.0, 1e6])
def test_skew_is_that_of_dirichlet_proportions(alpha):
    """Rows drawn by Dirichlet(alpha * 1) proportions q: E sum (n_c/n)^2 = 1/n + (1 - 1/n) E sum q_c^2."""
    classes, rows, count = 5, 8, 3000
    labels = np.arange(classes * count * rows) % classes  # more than enough of every class
    mean, error = concentration(labels, parts(labels, np.full(count, rows), alpha), classes)
    expected = 1 / rows + (1 - 1 / rows) * (alpha + 1) / (classes * alpha + 1)
    assert abs(mean - expected) < 5 * max(error, 1e-4)


def test_all_rows_dealt_out_are_as_skewed():
    classes, rows, count = 5, 10, 2000
    labels = np.random.default_rng(0).permutation(np.arange(rows * count) % classes)
    found = [concentration(labels, parts(labels, np.full(count, rows), a, shuffle=True), classes)[0] for a in
             (0.05, 0.5, 5.0, 1e6)]  # fmt: skip
    expected = [1 / rows + (1 - 1 / rows) * (a + 1) / (classes * a + 1) for a in (0.05, 0.5, 5.0, 1e6)]
    np.testing.assert_allclose(found, expected, rtol=0.03)  # leftovers of used-up classes meet the last ones to choose
    assert found == sorted(found, reverse=True)


def test_without_skew_parties_are_like_the_whole_whatever_its_shares():
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [60_000, 3_000, 1_000]))
    dealt = parts(labels, np.full(3000, 10), 1e6)
    shares = np.array([60, 3, 1]) / 64
    mean, error = concentration(labels, dealt, 3)
    assert abs(mean - (0.1 + 0.9 * (shares**2).sum())) < 5 * error
    held = np.bincount(labels[np.concatenate(dealt)]) / 30_000
    assert np.abs(held - shares).max() < 5 * np.sqrt(0.25 / 30_000)


def test_left_over_classes_meet_no_party_in_particular():
    """With a shuffled order the first and the last parties are equally concentrated on average."""
    labels = np.arange(6000) % 3
    early, late = [], []
    for split in range(20):
        dealt = parts(labels, np.full(1000, 6), 0.3, split=split, shuffle=True)
        early.append(concentration(labels, dealt[:100], 3)[0])
        late.append(concentration(labels, dealt[-100:], 3)[0])
    difference = np.array(early) - np.array(late)
    assert abs(difference.mean()) < 5 * difference.std() / np.sqrt(20)


def test_a_class_without_rows_is_no_class():
    dealt = parts([0, 2, 2, 0, 2, 2], [2, 2, 2], 0.1)
    assert sorted(np.concatenate(dealt)) == list(range(6))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    parties=st.integers(1, 50),
    more=st.integers(0, 500),
    sigma=st.sampled_from([1e-6, 0.1, 1.3, 5.0, 1e6]),
    seed=st.integers(0, 2**40),
)
def test_quantities_sum_up_and_leave_nobody_empty(parties, more, sigma, seed):
    sizes = quantities(parties + more, parties, sigma, seed, 0)
    assert sizes.dtype == np.int64
    assert len(sizes) == parties
    assert sizes.sum() == parties + more
    assert sizes.min() >= 1
    np.testing.assert_array_equal(sizes, quantities(parties + more, parties, sigma, seed, 0))
    if sigma == 1e-6 and more % parties == 0:
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("sigma", [0.3, 1.3])
def test_logarithms_of_quantities_have_the_deviation_asked_for(sigma):
    logarithms = np.log(quantities(5_000_000, 2000, sigma, 3, 0) - 1)
    assert abs(logarithms.std() - sigma) < 5 * sigma / np.sqrt(2 * 2000)


def test_a_hundred_thousand_parties():
    labels = np.arange(600_000) % 10
    dealt = dealt_by_class(labels, np.full(100_000, 6), 0.3, 1, 0, shuffle=True)
    assert len(np.unique(dealt)) == 600_000
    assert quantities(600_000, 100_000, 1.3, 1, 0).sum() == 600_000
