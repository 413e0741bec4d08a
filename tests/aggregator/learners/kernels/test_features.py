"""Kernels with explicit features: streamed means and covariances, and what the approximations promise.

Kernels and supports survive being written as arrays and JSON.
"""

import io
import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.kernel_approximation import Nystroem

from aggregator.learners.kernels import exact as distances
from aggregator.learners.kernels.exact import ExactSupport, GaussianKernel
from aggregator.learners.kernels.features import KINDS, FourierKernel, LinearKernel, NystromKernel, from_arrays, kernel
from federation.contract.errors import InputError

GAMMA = 0.08
PUBLIC = np.random.default_rng(0).normal(size=(500, 5))
KERNELS = [kernel(kind, PUBLIC, GAMMA, 64, 1) for kind in ("fourier", "nystrom", "linear")]


def bags_of(seed: int, sizes=(700, 1, 256, 40)) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, 5)) + 0.3 * i for i, size in enumerate(sizes)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.kind)
def test_streamed_state_is_that_of_all_features_at_once(kernel):
    bags, rows = bags_of(1), bags_of(2)[0]
    support = kernel.support(bags, covariance=True)
    features = [kernel.features(bag) for bag in bags]
    assert features[0].shape == (700, support.means.shape[1])
    np.testing.assert_allclose(support.means, [f.mean(axis=0) for f in features], atol=1e-14)
    pairs = np.array([[np.mean(f @ g.T) for g in features] for f in features])
    np.testing.assert_allclose(support.gram(), pairs, atol=1e-13)
    cross = [np.mean(f @ kernel.features(rows).T) for f in features]
    np.testing.assert_allclose(support.means @ kernel.mean(rows), cross, atol=1e-13)
    np.testing.assert_allclose(support.self_terms(), [np.mean(np.sum(f * f, axis=1)) for f in features], rtol=1e-14)
    pooled = sum((len(f) - 1) * np.cov(f.T) for f in features if len(f) > 1) / (sum(map(len, features)) - len(bags))
    np.testing.assert_allclose(support.covariance(), pooled, atol=1e-13)
    for i in (0, 2, 3):
        between = features[i] @ features[i].T
        debiased = kernel.support([bags[i]]).unbiased_gram()[0, 0]
        assert debiased == pytest.approx(between[~np.eye(len(between), dtype=bool)].mean(), abs=1e-13)
    for i, bag in enumerate(bags):  # a bag has the same bits whatever comes with it
        np.testing.assert_array_equal(support.means[i], kernel.support([bag.copy(order="F")]).means[0])
        np.testing.assert_array_equal(support.means[i], kernel.mean(bag))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.kind)
def test_memory_does_not_grow_with_the_rows(kernel, tmp_path):
    file = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(60_000, 5))
    file[:] = np.random.default_rng(4).normal(size=file.shape)
    kernel.support([file[:600]], covariance=True)
    tracemalloc.start()
    support = kernel.support([file], covariance=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    tile = 8 * distances.ROWS * max(support.means.shape[1], 8)
    assert peak < 20 * tile  # the features of all rows take 230 times a tile's
    np.testing.assert_allclose(support.means[0], kernel.features(np.asarray(file, dtype=float)).mean(axis=0), atol=1e-6)


def test_covariance_far_from_zero_is_not_lost_and_stored_where_there_is_one():
    rows = np.random.default_rng(5).normal(size=(2000, 3))
    far = LinearKernel().support([rows + 1e7], covariance=True)
    np.testing.assert_allclose(far.covariance(), np.cov(rows.T), atol=1e-7)
    support = kernel("fourier", ROWS, 0.3, 16, 2).support(BAGS, covariance=True)
    np.testing.assert_array_equal(from_arrays(*support.to_arrays()).covariance(), support.covariance())
    for description in ({}, {"kind": "cubic"}, {"kind": "fourier"}, {"kind": "exact", "gamma": "x"}, []):
        with pytest.raises(InputError):
            from_arrays(description, {})


def test_features_of_waves_have_norm_one_and_one_seed_draws_the_same_ones_for_every_gamma():
    features = FourierKernel.draw(5, GAMMA, 512, 0).features(10 * PUBLIC)
    np.testing.assert_allclose([math.fsum(row * row) for row in features], 1, rtol=0, atol=1e-15)
    one, four = FourierKernel.draw(5, 1.0, 64, 7), FourierKernel.draw(5, 4.0, 64, 7)
    np.testing.assert_allclose(four.frequencies, 2 * one.frequencies, rtol=1e-15)
    assert not np.array_equal(FourierKernel.draw(5, 1.0, 64, 8).frequencies, one.frequencies)
    assert one.frequencies.std() == pytest.approx(np.sqrt(2), rel=0.2)


def test_waves_converge_to_the_gaussian_kernel_as_one_over_the_root_of_their_number():
    rows = PUBLIC[:60]
    exact = np.exp(-GAMMA * cdist(rows, rows) ** 2)
    errors = {}
    for features in (64, 1024):
        drawn = [FourierKernel.draw(5, GAMMA, features, seed).features(rows) for seed in range(40)]
        differences = np.array([f @ f.T - exact for f in drawn])
        errors[features] = np.sqrt(np.mean(differences**2))
        assert errors[features] < 1 / np.sqrt(features)
        assert abs(differences.mean()) < 5 * errors[features] / np.sqrt(40)  # no bias
        # var cos(w'z) = (1 + k(2z)) / 2 - k(z)^2 for each of the D/2 pairs (Sutherland and Schneider 2015).
        variances = ((1 + exact**4) / 2 - exact**2) / (features / 2)
        np.testing.assert_allclose(np.mean(differences**2), variances.mean(), rtol=0.25)
    assert 3 < errors[64] / errors[1024] < 5.3


def test_landmarks_reproduce_the_kernel_on_themselves_and_as_scikit_learn_does():
    rows = PUBLIC[:80] + 0.1
    exact = np.exp(-GAMMA * cdist(rows, rows) ** 2)
    errors = []
    for count in (10, 50, 250):
        nystrom = NystromKernel.fit(PUBLIC, GAMMA, count, 0)
        own, features = nystrom.features(nystrom.landmarks), nystrom.features(rows)
        k = np.exp(-GAMMA * cdist(nystrom.landmarks, nystrom.landmarks) ** 2)
        np.testing.assert_allclose(own @ own.T, k, atol=1e-8)
        np.testing.assert_allclose(own @ features.T, np.exp(-GAMMA * cdist(nystrom.landmarks, rows) ** 2), atol=1e-4)
        assert np.linalg.norm(features, axis=1).max() < 1 + 1e-9
        errors.append(np.abs(features @ features.T - exact).max())
    assert errors[0] > 2 * errors[1] > 10 * errors[2]
    ours = NystromKernel.fit(PUBLIC, 0.5, 30, 0)
    oracle = Nystroem(gamma=0.5, n_components=30, random_state=0).fit(ours.landmarks)
    theirs, mine = oracle.transform(PUBLIC), ours.features(PUBLIC)
    np.testing.assert_allclose(mine @ mine.T, theirs @ theirs.T, atol=1e-9)
    assert NystromKernel.fit(np.repeat(PUBLIC[:4], 20, axis=0), GAMMA, 80, 0).factor.shape == (80, 4)


def test_approximations_agree_with_the_exact_means():
    bags, rows = bags_of(6, (400, 300)), bags_of(7)[0]
    exact = GaussianKernel(GAMMA).support(bags)
    for approximate, tolerance in (
        (FourierKernel.draw(5, GAMMA, 4096, 0), 0.03),
        (NystromKernel.fit(PUBLIC, GAMMA, 200, 0), 1e-3),
    ):
        support = approximate.support(bags)
        np.testing.assert_allclose(support.gram(), exact.gram(), atol=tolerance)
        np.testing.assert_allclose(support.means @ approximate.mean(rows), exact.embed(rows), atol=tolerance)


@given(st.lists(st.integers(2, 8), min_size=2, max_size=4), st.integers(0, 2**32 - 1), st.sampled_from(KERNELS))
def test_gram_and_covariance_are_positive_semidefinite(sizes, seed, kernel):
    support = kernel.support(bags_of(seed, sizes), covariance=True)
    assert np.linalg.eigvalsh(support.gram()).min() > -1e-12
    assert np.linalg.eigvalsh(support.covariance()).min() > -1e-12
    # V-statistics exceed the others by the trace of the covariance of a bag's mean.
    assert (np.diag(support.gram()) >= np.diag(support.unbiased_gram()) - 1e-12).all()


@pytest.mark.parametrize(("make", "what"), [
    (lambda: FourierKernel.draw(5, 0.0, 64, 0), "gamma"), (lambda: FourierKernel.draw(5, 1.0, 63, 0), "features"),
    (lambda: FourierKernel.draw(5, 1.0, 64, None), "seed"), (lambda: FourierKernel.draw(0, 1.0, 64, 0), None),
    (lambda: NystromKernel.fit(PUBLIC, 1.0, 0, 0), "1"), (lambda: NystromKernel.fit(PUBLIC, np.nan, 4, 0), "gamma"),
    (lambda: NystromKernel.fit(PUBLIC, 1.0, 4, None), "seed"),
    (lambda: NystromKernel.fit(np.full((3, 2), np.nan), 1.0, 2, 0), None), (lambda: KERNELS[0].support([]), None),
    (lambda: kernel("forier", PUBLIC), "fourier"), (lambda: KERNELS[0].support([np.ones((3, 4))]), r"0.*5"),
    (lambda: KERNELS[1].mean(np.ones((3, 4))), r"rows.*5"),
    (lambda: LinearKernel().support([np.ones((3, 4)), np.ones((3, 5))]), r"1.*0"),
    *((lambda one=one: one.mean(np.full((3, 5), 1e308)), None) for one in KERNELS),
    (lambda: KERNELS[2].support([PUBLIC]).covariance(), "covariance"),
    (lambda: KERNELS[2].support([PUBLIC[:1]], covariance=True).covariance(), None),
])  # fmt: skip
def test_refuses_what_cannot_be_computed(make, what):
    with pytest.raises(InputError, match=what):
        make()


ROWS = np.random.default_rng(0).normal(size=(90, 4))
BAGS = [ROWS[:50], ROWS[50:]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stored", ["kernel", "support"])
def test_round_trip_through_json_and_npz(kind, stored):
    made = kernel(kind, ROWS, 0.3, 16, 2)
    support = made.support(BAGS)
    description, arrays = (made if stored == "kernel" else support).to_arrays()
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    again = from_arrays(json.loads(json.dumps(description)), np.load(file))
    restored = again if stored == "support" else again.support(BAGS)
    assert again.digest() == (made if stored == "kernel" else support).digest()
    np.testing.assert_array_equal(restored.gram(), support.gram())
    pair = [one.embed if isinstance(one, ExactSupport) else one.kernel.mean for one in (restored, support)]
    np.testing.assert_array_equal(*(embed(ROWS[:7]) for embed in pair))
