"""Weights and row coefficients as coordinates: the same geometry, and adjoint maps."""

from __future__ import annotations

import numpy as np
import pytest

from federation.numerics.coordinates import FeatureCoordinates, RowCoordinates, dots


def tiles(parties=3, classes=2, n=4, d=6):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(parties, n, d))
    return rows, rng.normal(size=(parties, classes, n)), rng.normal(size=(parties, classes, n))


def test_row_coefficients_stand_for_the_weights_that_they_combine():
    rows, v, u = tiles()
    by_rows, by_features = RowCoordinates(rows @ rows.transpose(0, 2, 1)), FeatureCoordinates(rows)
    w, other = v @ rows, u @ rows
    scores = by_rows.scores(v)
    np.testing.assert_allclose(scores, by_features.scores(w))
    np.testing.assert_allclose(by_rows.inner(v, scores, u), by_features.inner(w, scores, other))
    np.testing.assert_allclose(by_features.inner(w, scores, other), np.einsum("tcd,tcd->t", w, other))
    np.testing.assert_allclose(by_rows.pull_back(u) @ rows, by_features.pull_back(u))


@pytest.mark.parametrize("by_rows", [True, False])
def test_pull_back_is_adjoint_to_the_scores(by_rows):
    rows, values, v = tiles()
    if by_rows:
        coordinates = RowCoordinates(rows @ rows.transpose(0, 2, 1))
    else:
        coordinates, v = FeatureCoordinates(rows), v @ rows
    scores = coordinates.scores(v)
    np.testing.assert_allclose(coordinates.inner(v, scores, coordinates.pull_back(values)), dots(scores, values))


@pytest.mark.parametrize("kind", [RowCoordinates, FeatureCoordinates])
def test_taking_parties_and_halving_the_precision(kind):
    rng = np.random.default_rng(1)
    coordinates = kind(rng.normal(size=(3, 5, 5)))
    v = rng.normal(size=(3, 2, 5))
    some = np.array([2, 0])
    np.testing.assert_array_equal(coordinates.take(some).scores(v[some]), coordinates.scores(v)[some])
    single = coordinates.single().scores(v.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, coordinates.scores(v), rtol=1e-4, atol=1e-5)
    out = np.empty_like(v)
    coordinates.scores(v, out=out)
    np.testing.assert_array_equal(out, coordinates.scores(v))
