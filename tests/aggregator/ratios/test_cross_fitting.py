"""Folds of bags, that no row is seen by the classifier tried on it, and the choice of the regularisation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.bag_likelihood import (
    Transition,
    cross_fit,
    dealt,
    fitted_weights,
    posteriors,
    surprise,
)


@pytest.fixture(scope="module")
def world():
    """Scaled rows of three bags, their bags, the transition, and four parts."""
    shares, sizes = skewed(3, 0.1), np.array([90, 60, 70])
    mixtures, rng = Mixtures(3), np.random.default_rng(0)
    rows = np.concatenate([mixtures.rows(p, n, rng) for p, n in zip(shares, sizes, strict=True)])
    parts = dealt(sizes, 4, rng)
    return rows / rows.std(), np.repeat(np.arange(3), sizes), Transition.of(shares, sizes), parts


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(2, 6), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_folds_are_equal_in_every_bag_and_over_all(sizes, folds, seed):
    found = dealt(np.array(sizes), folds, np.random.default_rng(seed))
    for part in (found, *np.split(found, np.cumsum(sizes)[:-1])):
        counts = np.bincount(part, minlength=folds)
        assert counts.sum() == len(part)
        assert counts.max() - counts.min() <= 1


def test_folds_are_random():
    first, second = (dealt(np.array([40, 40]), 4, np.random.default_rng(seed)) for seed in (0, 1))
    assert (first != second).mean() > 0.5


@pytest.mark.parametrize("regularisation", [None, 0.01])
def test_a_row_changes_only_the_classifiers_that_may_see_it(world, regularisation):
    rows, bags, transition, parts = world
    changed = rows.copy()
    changed[parts == 2] += np.random.default_rng(1).normal(size=(int((parts == 2).sum()), rows.shape[1]))
    first = cross_fit(rows, bags, transition, regularisation, parts)
    second = cross_fit(changed, bags, transition, first.regularisation, parts)
    again = cross_fit(rows, bags, transition, first.regularisation, parts)
    assert np.array_equal(second.weights[2], again.weights[2])
    assert not np.allclose(second.weights[1], again.weights[1])


def test_held_out_posteriors_are_those_of_the_classifier_without_the_row(world):
    rows, bags, transition, parts = world
    found = cross_fit(rows, bags, transition, 0.01, parts)
    likelihoods, start = transition.matrix[bags], np.zeros((3, rows.shape[1] + 1))
    for part in range(4):
        out = parts == part
        alone = fitted_weights(rows[~out], likelihoods[~out], transition.priors, 0.01, start)
        assert found.held_out[out] == pytest.approx(posteriors(alone, rows[out], transition.priors))


def test_the_chosen_regularisation_surprises_less_than_stronger_and_weaker_ones(world):
    rows, bags, transition, parts = world
    chosen = cross_fit(rows, bags, transition, None, parts)
    likelihoods = transition.matrix[bags]
    least = surprise(chosen.held_out, likelihoods)[0]
    for other in (1.0, 1e-6):
        assert least < surprise(cross_fit(rows, bags, transition, other, parts).held_out, likelihoods)[0]
    assert least < surprise(np.tile(transition.priors, (len(rows), 1)), likelihoods)[0]
