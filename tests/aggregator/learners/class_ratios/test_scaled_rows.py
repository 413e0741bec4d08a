"""Rows as linear classifiers take them: centred, of unit mean square, and nothing lost between bags and sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from aggregator.learners.class_ratios.bag_classifier import ScaledRows
from federation.contract.errors import InputError


@dataclass(eq=False, repr=False)
class Means(ScaledRows):
    """Knows of a set the mean of its scaled rows."""

    name = "means"

    features: int | None = None
    bandwidth: float = 1.0
    seed: int = 0

    def _fit(self, bags, proportions, noise):
        self.learned = self._fit_rows(bags, self.bandwidth)

    def embed(self, rows):
        return np.concatenate(list(self._tiles(rows))).mean(axis=0)

    def scaled(self, rows):
        return np.concatenate(list(self._tiles(rows)))


def bags_of(seed=0, shift=0.0, factor=1.0):
    random = np.random.default_rng(seed)
    return [factor * (random.normal(size=(size, 3)) + np.array([i, 0, 0])) + shift for i, size in enumerate((300, 40))]


def fitted(bags, **options):
    return Means(**options).fit(bags, np.eye(2))


@pytest.mark.parametrize("features", [None, 64])
def test_rows_of_the_bags_are_centred_and_have_unit_mean_square(features):
    bags = bags_of()
    found = fitted(bags, features=features)
    assert found.learned.shape == (340, features or 3)
    np.testing.assert_allclose(found.learned.mean(axis=0), 0, atol=1e-12)
    assert np.mean(found.learned**2) == pytest.approx(1)
    np.testing.assert_allclose(np.concatenate([found.scaled(bag) for bag in bags]), found.learned, atol=1e-12)


@pytest.mark.parametrize("features", [None, 64])
def test_a_common_shift_and_factor_change_no_product_of_rows(features):
    """Random features are turned by a shift, which linear classifiers do not see."""
    usual, moved = (fitted(bags_of(1, *how), features=features) for how in ((), (50.0, 3.0)))
    np.testing.assert_allclose(moved.learned @ moved.learned.T, usual.learned @ usual.learned.T, atol=1e-9)


def test_columns_keep_their_relative_scales():
    bags = [bag * [1.0, 10.0, 1.0] for bag in bags_of(2)]
    spread = fitted(bags).learned.std(axis=0)
    expected = np.concatenate(bags).std(axis=0)
    np.testing.assert_allclose(spread / spread[0], expected / expected[0])


def test_equal_fits_have_equal_keys_and_others_do_not():
    keys = [
        fitted(bags_of(seed), features=features, bandwidth=bandwidth).embedding_key()
        for seed, features, bandwidth in ((0, 8, 1.0), (0, 8, 1.0), (1, 8, 1.0), (0, None, 1.0), (0, 8, 2.0))
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


def test_what_is_stored_scales_the_same():
    found = fitted(bags_of(), features=8)
    again = Means.from_arrays(*found.to_arrays())
    np.testing.assert_array_equal(again.scaled(bags_of(5)[0]), found.scaled(bags_of(5)[0]))
    assert again.embedding_key() == found.embedding_key()


@pytest.mark.parametrize(
    ("bags", "options", "words"),
    [
        ([np.ones((3, 2)), np.ones((4, 2))], {}, "must differ, by numbers that can be squared; got spread 0"),
        ([np.full((2, 2), 1e200), np.full((2, 2), -1e200)], {}, "got spread inf"),
        (bags_of(), {"features": 1}, "features"),
        (bags_of(), {"features": 8, "bandwidth": 0.0}, "bandwidth"),
    ],
)
def test_what_cannot_be_scaled_is_refused(bags, options, words):
    with pytest.raises(InputError, match=words):
        fitted(bags, **options)


@pytest.mark.parametrize("features", [None, 8])
def test_sets_of_other_columns_and_questions_before_the_fit_are_refused(features):
    with pytest.raises(InputError, match="3 columns"):
        fitted(bags_of(), features=features).embed(np.ones((5, 2)))
    with pytest.raises(NotFittedError):
        Means(features=features).embed(np.ones((5, 3)))
    with pytest.raises(NotFittedError):
        Means(features=features).embedding_key()
