"""Vectors are brought into a ball, each by itself, and never leave it by more than what is charged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from federation.contract.errors import InputError
from federation.features.feature_map import Ball

ANY = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 9)),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=64),
)


@settings(max_examples=150, deadline=None)
@given(ANY, st.sampled_from([1e-3, 1.0, 52.8]), st.booleans())
def test_no_vector_is_longer_than_its_norm_and_what_is_charged(vectors, norm, scaled):
    ball = Ball(norm, scaled)
    found = ball.of(vectors)
    lengths = np.sqrt(np.square(found.astype(np.longdouble) / norm).sum(axis=1))
    assert lengths.max() <= 1 + ball.excess(vectors.shape[1])
    if scaled:
        assert (np.abs(lengths - 1) < 1e-12)[np.abs(vectors).max(axis=1) > 0].all()
    alone = np.concatenate([ball.of(row[None]) for row in vectors])
    assert found.tobytes() == alone.tobytes()


def test_vectors_inside_stay_as_they_are_and_directions_are_kept():
    vectors = np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0], [1e300, 1e300]])
    np.testing.assert_allclose(Ball(1.0).of(vectors), [[0.3, 0.4], [0.6, 0.8], [0, 0], [0.5**0.5] * 2])
    np.testing.assert_allclose(Ball(2.0, scaled=True).of(vectors), [[1.2, 1.6], [1.2, 1.6], [0, 0], [2**0.5] * 2])


@pytest.mark.parametrize("norm", [0.0, -1.0, np.nan, np.inf])
def test_a_norm_is_a_positive_number(norm):
    with pytest.raises(InputError, match="norm must be a positive finite number"):
        Ball(norm)


def test_it_says_what_it_does():
    assert Ball(1.0, scaled=True).told == "scaled to norm 1"
    assert Ball(0.5).told == "shortened to norm 0.5 at most"
