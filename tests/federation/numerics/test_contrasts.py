"""Class contrasts are an orthonormal basis of the vectors that sum to zero."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.numerics.rows import contrast_rounding, contrasts


@pytest.mark.parametrize("classes", [2, 3, 6, 40])
def test_orthonormal_basis_of_the_sum_zero_space(classes):
    basis = contrasts(classes)
    assert basis.shape == (classes, classes - 1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(classes - 1), atol=1e-14)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(basis @ basis.T, np.eye(classes) - 1 / classes, atol=1e-14)


def test_two_classes_compare_the_second_with_the_first():
    np.testing.assert_allclose(contrasts(2)[:, 0], np.array([-1, 1]) / np.sqrt(2))


@pytest.mark.parametrize("classes", [1, 0, -3])
def test_refuses_fewer_than_two_classes(classes):
    with pytest.raises(InputError, match="classes"):
        contrasts(classes)


@pytest.mark.parametrize("classes", [2, 3, 17, 200])
def test_coordinates_err_by_no_more_than_their_bound(classes):
    """Against 40 digits, on vectors of mixed size."""
    rng = np.random.default_rng(classes)
    with mpmath.workdps(40):
        exact = [
            [(-1 if i < j else j if i == j else 0) / mpmath.sqrt(j * (j + 1)) for i in range(classes)]
            for j in range(1, classes)
        ]
        for _ in range(3):
            v = rng.normal(size=classes) * np.exp(4 * rng.normal(size=classes))
            computed = contrasts(classes).T @ v
            errors = [
                float(mpmath.fdot(row, map(mpmath.mpf, v)) - value) for row, value in zip(exact, computed, strict=True)
            ]
            assert np.linalg.norm(errors) <= contrast_rounding(classes) * np.linalg.norm(v)
