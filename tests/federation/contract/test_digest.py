"""Digests: equal contents have equal ones, wherever they lie; any other content has another."""

from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from federation.contract.randomness import digest

MATRIX = np.arange(6.0).reshape(2, 3)
NUMBERS = arrays(np.float64, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))


def test_without_arrays_it_is_that_of_the_text():
    assert digest("é", {}) == hashlib.sha256("é".encode()).hexdigest()


@given(st.text(), NUMBERS, NUMBERS)
def test_neither_memory_order_nor_the_order_of_names_counts(text, first, second):
    known = digest(text, {"a": first, "b": second})
    assert digest(text, {"b": second.copy(), "a": np.asfortranarray(first)}) == known


def test_strided_arrays_are_what_they_show():
    assert digest("", {"a": MATRIX[:, ::2]}) == digest("", {"a": np.array([[0.0, 2.0], [3.0, 5.0]])})


def test_every_part_counts():
    contents = [
        ("", {}),
        ("t", {}),
        ("t", {"a": MATRIX}),
        ("u", {"a": MATRIX}),
        ("t", {"b": MATRIX}),
        ("t", {"a": MATRIX, "b": MATRIX}),
        ("t", {"a": MATRIX.T}),
        ("t", {"a": MATRIX.ravel()}),
        ("t", {"a": MATRIX.astype(np.float32)}),
        ("t", {"a": MATRIX.astype(">f8")}),
        ("t", {"a": MATRIX.view(np.int64)}),  # the same bytes
        ("t", {"a": -MATRIX}),
        ("t", {"a": np.empty((0, 3))}),
        ("t", {"a": np.empty((3, 0))}),
    ]
    assert len({digest(*content) for content in contents}) == len(contents)
