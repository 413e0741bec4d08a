"""Class contrasts are an orthonormal basis of the vectors that sum to zero."""

from __future__ import annotations

import numpy as np
import pytest

from federation.errors import InputError
from federation.numerics.contrasts import contrasts


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
