from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.numerics.rows import contrasts


def public(rows):
    return PublicRows(fit(["unit_norm"], np.ones((1, rows.shape[1]))), rows)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), rank=st.integers(1, 5))
def test_both_coordinates_hold_the_rows_and_whitened_ones_have_identity_second_moment(seed, rank):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(40, rank)) @ random.normal(size=(rank, 5))
    whitened, isotropic = (public(rows).coordinates(shape) for shape in ("whitened", "isotropic"))
    for found in (whitened, isotropic):
        assert found.rows.shape == (40, rank)
        rebuilt = found.rows * found.scale @ found.directions.T
        np.testing.assert_allclose(rebuilt, rows, atol=1e-4 * np.abs(rows).max())
    np.testing.assert_allclose(whitened.rows.T @ whitened.rows / 40, np.eye(rank), atol=1e-6)
    moment = isotropic.rows.T @ isotropic.rows / 40
    np.testing.assert_allclose(moment, np.diag(isotropic.variances), atol=1e-9 * isotropic.variances[-1])
    assert whitened.reach <= 1 + 1e-6
    assert isotropic.reach == pytest.approx(public(rows).reach, rel=1e-6)  # turning rows changes no norm


def test_rounding_of_the_statistic_is_bounded():
    """Against exact rational arithmetic, on rows of very different sizes."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(50, 3)) * np.exp(3 * random.normal(size=(50, 1)))
    found, basis = public(rows).whitening, contrasts(4)
    shares = random.multinomial(7, [0.25] * 4, size=50) / 7
    computed = basis.T @ (shares.T @ found.rows) / 50
    exact = [
        [
            sum(
                Fraction(b) * sum(Fraction(a) * Fraction(y) for a, y in zip(column, row, strict=True))
                for b, column in zip(contrast, shares.T, strict=True)
            )
            / 50
            for row in found.rows.T
        ]
        for contrast in basis.T
    ]
    error = np.linalg.norm(computed - np.array(exact, dtype=float))
    assert error <= found.rounding(4)


def test_norms_are_checked_with_rounding_in_mind_and_zero_rows_have_nothing_to_whiten():
    public(np.array([[1.0 + 1e-12, 0.0]])).require_unit_norms()
    with pytest.raises(InputError, match=r"1\.1"):
        public(np.array([[1.1, 0.0]])).require_unit_norms()
    with pytest.raises(InputError, match=r"1\.00000002.*1"):
        public(np.array([[1.0 + 2e-8, 0.0]])).require_unit_norms()
    with pytest.raises(InputError):
        _ = public(np.zeros((3, 2))).whitening
