"""Least squares for class means against closed forms, and its errors against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.unmixing import Unmixing, centred, given_labels, positive, undistorted


def centring(classes):
    return np.eye(classes) - 1 / classes


def noisy(shares, deviation, random):
    """Shares with Gaussian noise that sums to zero, and its covariance."""
    bags, classes = shares.shape
    drawn = deviation * random.normal(size=shares.shape)
    covariance = np.tile(deviation**2 * centring(classes), (bags, 1, 1))
    return shares + drawn - drawn.mean(axis=1, keepdims=True), covariance


def test_as_many_bags_as_classes_are_inverted_whatever_their_sizes_and_noise():
    shares = skewed(4, 0.1)
    for sizes, noise in ((np.ones(4), None), (np.array([1.0, 5, 2, 9]), np.tile(0.01 * centring(4), (4, 1, 1)))):
        assert Unmixing(shares, sizes, noise).matrix == pytest.approx(np.linalg.inv(shares))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 5), st.integers(0, 20), st.integers(0, 2**32))
def test_it_is_weighted_least_squares_and_recovers_exact_means(classes, further, seed):
    rng = np.random.default_rng(seed)
    shares = np.concatenate([skewed(classes, 0.05), rng.dirichlet(np.ones(classes), further)])
    sizes = rng.integers(1, 100, len(shares)).astype(float)
    found = Unmixing(shares, sizes).matrix
    assert found.T @ shares == pytest.approx(np.eye(classes), abs=1e-9)
    assert found.sum(axis=0) == pytest.approx(1)
    answers = rng.normal(size=len(shares))
    roots = np.sqrt(sizes)
    expected = np.linalg.lstsq(roots[:, None] * shares, roots * answers, rcond=None)[0]
    assert found.T @ answers == pytest.approx(expected)


def test_known_noise_is_corrected_and_ignored_noise_shrinks():
    """Errors in variables: the naive slope is attenuated by reliability, the corrected one is consistent."""
    rng, means = np.random.default_rng(0), np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 3.0]])
    shares = rng.dirichlet(np.full(3, 0.5), 4000)
    released, noise = noisy(shares, 0.15, rng)
    sizes = np.full(len(shares), 30.0)
    naive, corrected = (Unmixing(released, sizes, known).matrix.T @ shares @ means for known in (None, noise))
    assert np.abs(corrected - means).max() < 0.05
    assert np.abs(naive - means).max() > 0.2


@pytest.mark.parametrize("bags", [6, 8, 20])
def test_few_noisy_bags_are_corrected_as_far_as_they_should_be(bags):
    """The bias is of fourth order in the noise; naive least squares has one of second order."""
    rng, answers = np.random.default_rng(bags), np.array([0.0, 1.0, 3.0])
    shares, sizes = np.concatenate([skewed(3, 0.1)] * 7)[:bags], np.ones(bags)
    bias = {False: np.zeros(3), True: np.zeros(3)}
    for _ in range(1000):
        released, noise = noisy(shares, 0.02, rng)
        for mirrored in (released, 2 * shares - released):  # odd orders cancel
            for corrected in bias:
                unmix = Unmixing(mirrored, sizes, noise if corrected else None).matrix
                bias[corrected] += unmix.T @ shares @ answers - answers
    assert np.abs(bias[True]).max() < 0.2 * np.abs(bias[False]).max()


def test_noise_as_large_as_the_signal_leaves_the_classes_in_place():
    rng = np.random.default_rng(1)
    released, noise = noisy(rng.dirichlet(np.full(3, 20.0), 200), 0.3, rng)
    assert np.abs(Unmixing(released, np.ones(200), noise).matrix).max() < 1


@pytest.mark.parametrize("bags", [6, 15])
def test_distorted_products_are_mended(bags):
    """Exact means and noisy proportions: what is left of the noise's effect on mu'mu."""
    rng, means = np.random.default_rng(2), Mixtures(3).means
    shares, sizes = np.concatenate([skewed(3, 0.1)] * 5)[:bags], np.ones(bags)
    truth, raw, mended = centred(means @ means.T), np.zeros((3, 3)), np.zeros((3, 3))
    for _ in range(500):
        released, noise = noisy(shares, 0.03, rng)
        for mirrored in (released, 2 * shares - released):
            known = Unmixing(mirrored, sizes, noise)
            classes = known.matrix.T @ shares @ means
            raw += centred(classes @ classes.T) - truth
            mended += centred(undistorted(classes @ classes.T, known.distortion, known.mean_noise)) - truth
    assert np.abs(mended).max() < 0.4 * np.abs(raw).max()


def test_noise_of_different_sizes_is_weighted_by_bag():
    shares, levels = np.concatenate([skewed(2, 0.2)] * 3), np.array([1.0, 2, 3, 4, 5, 6])
    known = Unmixing(shares, np.ones(6), 1e-9 * levels[:, None, None] * centring(2))
    expected = sum(s * np.outer(b, b) for s, b in zip(levels / 3.5, known.matrix, strict=True))
    assert known.distortion == pytest.approx(expected)
    assert known.mean_noise == pytest.approx(3.5e-9 * centring(2))
    assert not Unmixing(shares, np.ones(6)).distortion.any()


def test_labels_covary_as_those_of_the_rows_do():
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 50, (40, 3))
    sizes = counts.sum(axis=1).astype(float)
    indicators = [np.repeat(np.eye(3), row, axis=0) for row in counts]
    within = np.concatenate([rows - rows.mean(axis=0) for rows in indicators])
    known = Unmixing(counts / sizes[:, None], sizes)
    assert known.label_covariance == pytest.approx(within.T @ within / len(within))


def test_the_labels_share_is_given_back():
    """Q_U = Q - tr(Q L) K for U-statistics, whatever Q, K and L are."""
    rng = np.random.default_rng(4)
    products = centred(np.cov(rng.normal(size=(3, 9))))
    sampling, labels = 0.01 * np.eye(3), 0.2 * centring(3)
    taken = products - np.sum(products * labels) * sampling
    assert centred(given_labels(taken, sampling, labels)) == pytest.approx(centred(products))
    batch = given_labels(np.stack([taken, 2 * taken]), sampling, labels)
    assert batch[1] == pytest.approx(2 * batch[0])


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(2, 6), st.integers(0, 2**32))
def test_positive_changes_what_is_negative_and_nothing_else(classes, seed):
    rng = np.random.default_rng(seed)
    form = rng.normal(size=(classes, classes))
    form = form + form.T
    found = positive(form)
    assert np.linalg.eigvalsh(centred(found)).min() > -1e-9
    assert positive(found) == pytest.approx(found)
    # the nearest semidefinite form has the same positive part
    values, vectors = np.linalg.eigh(centred(form))
    assert centred(found) == pytest.approx((vectors * np.maximum(values, 0)) @ vectors.T)
    square = form @ form
    assert positive(square) == pytest.approx(square)
    difference = rng.normal(size=classes)
    difference -= difference.mean()
    assert difference @ centred(form) @ difference == pytest.approx(difference @ form @ difference)
