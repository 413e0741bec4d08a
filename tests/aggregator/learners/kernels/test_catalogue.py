"""Kernels and supports survive being written as arrays and JSON."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from aggregator.learners.kernels.features import KINDS, from_arrays, kernel
from federation.contract.errors import InputError

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
    np.testing.assert_array_equal(restored.cross(ROWS[:7]), support.cross(ROWS[:7]))


def test_covariance_is_stored_where_there_is_one():
    support = kernel("fourier", ROWS, 0.3, 16, 2).support(BAGS, covariance=True)
    np.testing.assert_array_equal(from_arrays(*support.to_arrays()).covariance(), support.covariance())


@pytest.mark.parametrize(
    "description", [{}, {"kind": "cubic"}, {"kind": "fourier"}, {"kind": "exact", "gamma": "x"}, []]
)
def test_refuses_other_descriptions(description):
    with pytest.raises(InputError, match="description of a kernel cannot be read"):
        from_arrays(description, {})
