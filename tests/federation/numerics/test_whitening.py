"""Whitening against the pseudo-inverse, and its rank in every unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.numerics.rows import whitening


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 5))
def test_the_second_moment_becomes_the_identity_on_the_span(seed, width, rank):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(20, min(rank, width))) @ rng.normal(size=(min(rank, width), width))
    whiten, unwhiten = whitening(rows.T @ rows)
    assert whiten.shape == unwhiten.shape == (width, min(rank, width))
    np.testing.assert_allclose(whiten.T @ rows.T @ rows @ whiten, np.eye(whiten.shape[1]), atol=1e-6)
    np.testing.assert_allclose(rows @ whiten @ unwhiten.T, rows, atol=1e-6 * np.abs(rows).max())


def test_the_pseudo_inverse_is_that_of_columns_of_norm_one(rng):
    rows = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 4))
    rows /= np.linalg.norm(rows, axis=0)
    whiten, _ = whitening(rows.T @ rows)
    np.testing.assert_allclose(whiten @ whiten.T, np.linalg.pinv(rows.T @ rows, rcond=1e-12), atol=1e-8)


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
def test_units_decide_nothing(rng, scale):
    rows = rng.normal(size=(30, 3))
    plain, _ = whitening(rows.T @ rows)
    units = np.array([1.0, scale, 1.0])
    whiten, _ = whitening(rows.T @ rows * np.outer(units, units))
    np.testing.assert_allclose(np.abs(whiten * units[:, None]), np.abs(plain), rtol=1e-9)


def test_columns_of_zeros_have_no_part():
    whiten, unwhiten = whitening(np.zeros((2, 2)))
    assert whiten.shape == unwhiten.shape == (2, 0)
    whiten, unwhiten = whitening(np.diag([4.0, 0.0]))
    np.testing.assert_array_equal(np.abs(whiten), [[0.5], [0.0]])
    np.testing.assert_array_equal(np.abs(unwhiten), [[2.0], [0.0]])
