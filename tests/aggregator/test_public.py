import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.public import PublicRows
from federation.errors import InputError
from federation.features import fit


def public(rows):
    return PublicRows(fit(["unit_norm"], np.ones((1, rows.shape[1]))), rows)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), rank=st.integers(1, 5))
def test_the_whitened_rows_have_identity_second_moment(seed, rank):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(40, rank)) @ random.normal(size=(rank, 5))
    whitening = public(rows).whitening
    assert whitening.deviations.shape == (rank,)
    white = rows @ whitening.directions / whitening.deviations
    np.testing.assert_allclose(white.T @ white / 40, np.eye(rank), atol=1e-6)
    rebuilt = white * whitening.deviations @ whitening.directions.T
    np.testing.assert_allclose(rebuilt, rows, atol=1e-4 * np.abs(rows).max())


def test_zero_rows_have_nothing_to_whiten():
    with pytest.raises(InputError, match="zero"):
        _ = public(np.zeros((3, 2))).whitening


def test_norms_are_checked_with_rounding_in_mind():
    public(np.array([[1.0 + 1e-12, 0.0]])).require_unit_norms()
    with pytest.raises(InputError, match=r"norm up to 1.1"):
        public(np.array([[1.1, 0.0]])).require_unit_norms()
