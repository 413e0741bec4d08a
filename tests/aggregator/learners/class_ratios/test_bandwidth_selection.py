"""The bandwidth that held-out bags choose, and the groups that are held out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.class_means import ClassMeans
from aggregator.learners.class_ratios.kernel_means import CANDIDATES, MMD, selected_bandwidth, two_groups


def test_the_published_layout_is_split_into_its_two_copies():
    shares = np.concatenate([skewed(4, 0.05)] * 2)
    first, second = two_groups(shares)
    for group in (first, second):
        assert np.linalg.matrix_rank(shares[group]) == 4
    assert sorted([*first, *second]) == list(range(8))
    assert {*(first % 4)} == {*(second % 4)} == set(range(4))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 5), st.integers(0, 6), st.integers(0, 2**32))
def test_groups_are_disjoint_and_identify_all_classes_in_any_order(classes, further, seed):
    rng = np.random.default_rng(seed)
    shares = np.concatenate([skewed(classes, 0.02)] * 2 + [rng.dirichlet(np.ones(classes), further)])
    shares = rng.permutation(shares)
    first, second = two_groups(shares)
    assert not set(first) & set(second)
    for group in (first, second):
        assert len(group) == classes
        assert np.linalg.cond(shares[group]) < 1e3


@pytest.mark.parametrize(
    "shares",
    [
        skewed(3, 0.1),
        np.concatenate([skewed(3, 0.1), skewed(3, 0.1)[:2]]),
        np.vstack([skewed(2, 0.1), [[0.9, 0.1]] * 3]),
    ],
)
def test_without_two_groups_there_is_none(shares):
    assert two_groups(shares) is None
    bags = Mixtures(shares.shape[1]).bags(shares, 20, np.random.default_rng(0))
    assert selected_bandwidth(MMD("fourier", features=16), bags, shares, None) == 1.0


@pytest.mark.parametrize("estimator", [MMD("exact"), MMD("fourier", features=32), ClassMeans(features=32)])
def test_the_selected_bandwidth_predicts_held_out_bags_best_in_both_roles(estimator):
    world, shares = Mixtures(2, columns=3), np.concatenate([skewed(2, 0.1)] * 2)
    bags = world.bags(shares, 40, np.random.default_rng(1))

    def error(bandwidth):
        total = 0.0
        for train, held_out in (((0, 1), (2, 3)), ((2, 3), (0, 1))):
            fitted = clone(estimator).set_params(bandwidth=bandwidth)
            fitted.fit([bags[i] for i in train], shares[list(train)])
            total += sum(np.abs(fitted.predict(bags[i]) - shares[i]).sum() for i in held_out)
        return total

    errors = [error(candidate) for candidate in CANDIDATES]
    fitted = clone(estimator).set_params(bandwidth="auto").fit(bags, shares)
    assert errors[CANDIDATES.index(fitted.bandwidth_)] == pytest.approx(min(errors), abs=1e-9)
    assert fitted.get_params()["bandwidth"] == "auto"


def test_a_structure_of_small_scale_is_found():
    """Two classes that differ in parity only: wide kernels see nothing."""
    rng = np.random.default_rng(2)

    def bag(ones, size=400):
        parity = np.repeat([0, 1], [size - ones, ones])
        return (2 * rng.integers(0, 4, size) + parity + 0.1 * rng.normal(size=size))[:, None]

    shares = np.array([[0.1, 0.9], [0.9, 0.1]] * 2)
    bags = [bag(round(400 * share)) for share in shares[:, 1]]
    fitted = MMD("exact", "auto").fit(bags, shares)
    assert fitted.bandwidth_ >= 4
    found = fitted.predict(bag(200))
    assert found == pytest.approx([0.5, 0.5], abs=0.1)


def test_noisy_proportions_are_compared_on_the_simplex():
    shares = np.concatenate([np.eye(2)] * 2) + np.outer([0.1, -0.1, -0.2, 0.2], [1, -1])
    noise = np.tile(0.01 * (np.eye(2) - 0.5), (4, 1, 1))
    bags = Mixtures(2).bags(np.concatenate([np.eye(2)] * 2), 30, np.random.default_rng(3))
    assert selected_bandwidth(MMD("fourier", features=16), bags, shares, noise) in CANDIDATES
