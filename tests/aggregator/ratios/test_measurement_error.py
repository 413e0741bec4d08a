"""Expected proportions: what noise does to regression on proportions, and what they do against it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aggregator.learners.class_ratios.unmixing import expected_proportions


def centred(classes, variance):
    """Noise of equal variance per class that adds up to zero."""
    return variance * (np.eye(classes) - 1 / classes)


def released(classes, bags, sd, seed):
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(classes), bags)
    errors = rng.normal(scale=sd, size=(bags, classes))
    return true, true + errors - errors.mean(axis=1, keepdims=True), np.tile(centred(classes, sd**2), (bags, 1, 1))


def test_without_noise_they_are_what_was_released():
    proportions = np.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]])
    sizes = np.array([10, 20, 30])
    assert expected_proportions(proportions, sizes, None) is proportions
    assert expected_proportions(proportions, sizes, np.zeros((3, 2, 2))) == pytest.approx(proportions)


def test_two_classes_shrink_by_the_reliability_ratio():
    _, noisy, noise = released(2, 400, 0.2, seed=0)
    sizes = np.full(400, 30)
    shares = noisy[:, 1]
    variance = shares.var()
    added = noise[0, 1, 1] * (1 - 1 / 400)
    reliability = (variance - added) / (variance - added + noise[0, 1, 1])
    expected = shares.mean() + reliability * (shares - shares.mean())
    assert expected_proportions(noisy, sizes, noise)[:, 1] == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 4])
def test_least_squares_on_them_finds_slopes_that_noise_hides(classes):
    true, noisy, noise = released(classes, 20_000, 0.3, seed=1)
    slopes = np.arange(1.0, classes + 1)
    values = true @ slopes
    expected = expected_proportions(noisy, np.full(20_000, 30), noise)
    found = np.linalg.lstsq(expected, values)[0]
    naive = np.linalg.lstsq(noisy, values)[0]
    assert found == pytest.approx(slopes, abs=0.05)
    assert np.abs(naive - slopes).max() > 0.15


def test_they_are_nearer_to_the_truth_than_what_was_released():
    true, noisy, noise = released(3, 300, 0.3, seed=2)
    sizes = np.full(300, 20)
    expected = expected_proportions(noisy, sizes, noise)
    assert np.square(expected - true).mean() < np.square(noisy - true).mean() / 2


def test_bags_of_more_noise_move_further():
    _, noisy, noise = released(2, 200, 0.1, seed=3)
    noise[:100] *= 9
    mean = np.full(200, 1 / 200) @ noisy
    moved = np.abs(expected_proportions(noisy, np.full(200, 30), noise) - mean) / np.abs(noisy - mean)
    assert moved[:100].max() < moved[100:].min() < 1


@pytest.mark.parametrize("bags", [2, 200])
def test_noise_above_the_signal_pulls_bags_together_but_leaves_them_apart(bags):
    proportions = np.tile([[0.1, 0.9], [0.9, 0.1]], (bags // 2, 1))
    found = expected_proportions(proportions, np.full(bags, 5), np.tile(centred(2, 100.0), (bags, 1, 1)))
    assert 0 < found[0, 1] - found[0, 0] < 0.1
    assert found.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("sd", [0.0, 1e-156, 0.1, 1e3])
def test_equal_bags_stay_where_they_are(sd):
    proportions = np.tile([0.25, 0.75], (3, 1))
    found = expected_proportions(proportions, np.array([7, 8, 9]), np.tile(centred(2, sd**2), (3, 1, 1)))
    assert found == pytest.approx(proportions)


@example(classes=2, bags=1, sd=1.1088836576167726e-156, seed=0)
@given(classes=st.integers(2, 5), bags=st.integers(1, 12), sd=st.floats(0, 2), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_they_sum_to_one_keep_the_mean_and_never_move_away(classes, bags, sd, seed):
    _, noisy, noise = released(classes, bags, sd, seed)
    sizes = np.random.default_rng(seed).integers(1, 50, bags)
    found = expected_proportions(noisy, sizes, noise)
    mean = sizes @ noisy / sizes.sum()
    assert found.sum(axis=1) == pytest.approx(1)
    assert sizes @ found / sizes.sum() == pytest.approx(mean, abs=1e-7)
    scale = np.abs(noisy).max()
    assert (
        np.square(sizes[:, None] * (found - mean)).sum()
        <= np.square(sizes[:, None] * (noisy - mean)).sum() * (1 + 1e-6) + 1e-9 * scale
    )
