import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.engines.codec import bits_per_entry, pack, packed_length, unpack


@settings(derandomize=True, deadline=None, max_examples=60)
@given(levels=st.integers(2, 700), parties=st.integers(0, 4), length=st.integers(1, 40), seed=st.integers(0, 99))
def test_unpacking_undoes_packing(levels, parties, length, seed):
    values = np.random.default_rng(seed).integers(0, levels, (parties, length)).astype(np.min_scalar_type(levels - 1))
    packed = pack(values, levels)
    assert packed.shape == (parties, packed_length(levels, length))
    np.testing.assert_array_equal(unpack(packed, levels, length), values)


@pytest.mark.parametrize(("levels", "bits"), [(2, 1), (3, 2), (4, 2), (5, 4), (16, 4), (17, 8), (256, 8), (257, 16)])
def test_bits_are_the_fewest_that_divide_a_byte(levels, bits):
    assert bits_per_entry(levels) == bits


def test_six_classes_take_half_a_byte_per_vote():
    assert pack(np.zeros((3, 1352), dtype=np.uint8), 6).nbytes == 3 * 676
