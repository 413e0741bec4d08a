"""Digests: equal contents have equal ones, wherever they lie; any other content has another."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import stats

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits, digest, generator


def test_equal_keys_give_equal_streams_however_they_are_read():
    whole = NoiseBits(1, "p", 2, 3).words(100)
    parts = NoiseBits(1, "p", 2, 3)
    np.testing.assert_array_equal(whole, np.concatenate([parts.words(37), parts.words(63)]))


@pytest.mark.parametrize("other", [(2, "p", 2, 3), (1, "q", 2, 3), (1, "p", 3, 3), (1, "p", 2, 4)])
def test_every_part_of_the_key_matters(other):
    assert not (NoiseBits(1, "p", 2, 3).words(50) == NoiseBits(*other).words(50)).any()
    assert generator(1, "p", 2, 3).integers(2**62) != generator(*other).integers(2**62)


def test_keys_do_not_run_into_each_other_and_without_a_seed_every_stream_is_new():
    assert NoiseBits(1, "p|1", 2).words(1) != NoiseBits(1, "p", 1, 2).words(1)
    assert not (NoiseBits(None, "p").words(50) == NoiseBits(None, "p").words(50)).any()


def test_words_are_uniform():
    words = NoiseBits(5, "uniformity").words(200_000)
    assert stats.kstest(words / 2.0**64, "uniform").pvalue > 1e-3
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 5 * 0.5 / np.sqrt(200_000)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "1"])
def test_seeds_out_of_range_are_refused(seed):
    with pytest.raises(InputError, match="seed"):
        generator(seed, "p")


MATRIX = np.arange(6.0).reshape(2, 3)
NUMBERS = arrays(np.float64, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))


def test_without_arrays_it_is_that_of_the_text_and_strided_arrays_are_what_they_show():
    assert digest("é", {}) == hashlib.sha256("é".encode()).hexdigest()
    assert digest("", {"a": MATRIX[:, ::2]}) == digest("", {"a": np.array([[0.0, 2.0], [3.0, 5.0]])})


@given(st.text(), NUMBERS, NUMBERS)
def test_neither_memory_order_nor_the_order_of_names_counts(text, first, second):
    known = digest(text, {"a": first, "b": second})
    assert digest(text, {"b": second.copy(), "a": np.asfortranarray(first)}) == known


def test_every_part_counts():
    others = (MATRIX, MATRIX.T, MATRIX.ravel(), MATRIX.astype(np.float32), MATRIX.astype(">f8"), -MATRIX)
    others += (MATRIX.view(np.int64), np.empty((0, 3)), np.empty((3, 0)))  # the first has the same bytes
    contents = [("", {}), ("t", {}), ("u", {"a": MATRIX}), ("t", {"b": MATRIX}), ("t", {"a": MATRIX, "b": MATRIX})]
    contents += [("t", {"a": other}) for other in others]
    assert len({digest(*content) for content in contents}) == len(contents)
