"""Arrays from outside: numbers of whatever type become float64, and anything else is named.

Class contrasts are an orthonormal basis of the vectors that sum to zero.

Equal rows, beside numpy's sorting of whole rows.

Rows cut to norm 1: none is longer afterwards, none that was short is moved, and directions stay.

Whitening against the pseudo-inverse, and its rank in every unit.
"""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.refusals import refused

from federation.contract.errors import InputError
from federation.numerics import rows as module
from federation.numerics.rows import (
    all_finite,
    contrast_rounding,
    contrasts,
    equal_rows,
    numbers,
    require_finite,
    whitening,
    within_norm,
)


@pytest.mark.parametrize("values", [[1, 2], (1.0, 2.0), np.array([1, 2], dtype=np.uint8), ["1", "2"], [True, 2]])
def test_what_can_be_read_as_numbers_becomes_float64(values):
    found = numbers(values, "rows")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1.0, 2.0])
    # Any shape is kept, and doubles are not copied.
    rows = np.ones((2, 0, 3))
    assert numbers(rows, "rows") is rows
    assert numbers(7, "a number").shape == ()


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        *(
            (lambda values=values: numbers(values, "the labels"), None)
            for values in (["a"], [[1], [1, 2]], {}, [{}], [1j])
        ),
        *((lambda classes=classes: contrasts(classes), "classes") for classes in (1, 0, -3)),
    ],
)
def test_what_are_no_numbers_or_classes_is_refused(refused, told):
    with pytest.raises(InputError, match=told):
        refused()


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (300, 41)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_not_overlooked(shape, value, rng):
    rows = rng.normal(size=shape)
    assert all_finite(rows)
    for place in range(0, rows.size, 11):
        spoilt = rows.copy()
        spoilt.flat[place] = value
        assert not all_finite(spoilt)


@pytest.mark.parametrize("rows", [np.zeros((0, 3)), *(np.full((2, 2), value) for value in (1e308, 5e-324, 1e200))])
def test_finite_rows_pass_however_large_small_or_few(rows):
    assert all_finite(rows) == (rows.max(initial=0.0) < 1e200)  # squares that overflow are looked at one by one
    require_finite(rows, "rows")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_value_that_is_not_finite_is_told_with_its_place(value):
    rows = np.zeros((4, 3))
    rows[2, 1] = rows[3, 0] = value
    refused(rf"rows.*2.*1.*0.*{value}", require_finite, rows, "rows")
    refused(r"514.*1", require_finite, rows, "rows", first=512)


@pytest.mark.parametrize("classes", [2, 3, 6, 40])
def test_orthonormal_basis_of_the_sum_zero_space(classes):
    basis = contrasts(classes)
    assert basis.shape == (classes, classes - 1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(classes - 1), atol=1e-14)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(basis @ basis.T, np.eye(classes) - 1 / classes, atol=1e-14)
    np.testing.assert_allclose(contrasts(2)[:, 0], np.array([-1, 1]) / np.sqrt(2))  # the second against the first


@pytest.mark.parametrize("classes", [2, 3, 17, pytest.param(200, marks=pytest.mark.slow)])
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
            wanted = [mpmath.fdot(row, map(mpmath.mpf, v)) for row in exact]
            errors = [float(one - value) for one, value in zip(wanted, contrasts(classes).T @ v, strict=True)]
            assert np.linalg.norm(errors) <= contrast_rounding(classes) * np.linalg.norm(v)


TYPES = [np.float64, np.float32, np.uint8, np.int16]


@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 5), st.sampled_from(TYPES), st.integers(1, 4))
def test_they_are_those_that_sorting_finds(seed, count, width, dtype, values):
    rows = np.random.default_rng(seed).integers(0, values, (count, width)).astype(dtype)
    first, twins = equal_rows(rows)
    np.testing.assert_array_equal(rows[first][twins], rows)
    known = sorted({row: place for place, row in reversed(list(enumerate(map(tuple, rows))))}.values())
    assert first.tolist() == known


def test_numbers_that_differ_in_one_bit_are_different():
    ones = np.ones((64, 3))
    ones.view(np.uint64)[np.arange(64), 1] ^= np.uint64(1) << np.arange(64, dtype=np.uint64)
    assert len(equal_rows(np.concatenate([ones, ones]))[0]) == 64
    assert len(equal_rows(np.array([[0.0], [-0.0]]))[0]) == 2


@pytest.mark.parametrize("dtype", TYPES)
def test_whole_numbers_hardly_share_keys(dtype):
    """The lowest bits of floats are all 0, which a product alone would make the only ones that count."""
    rows = np.stack(np.meshgrid(*[np.arange(14)] * 4), axis=-1).reshape(-1, 4).astype(dtype)
    assert len(np.unique(module._keys(module._words(rows)))) == len(rows)


@pytest.mark.parametrize("dtype", TYPES)
def test_it_looks_at_all_blocks_and_rows_that_share_a_key_are_not_taken_for_equal(dtype, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_BYTES", 64)
    rows = np.arange(100).astype(dtype)[:, None] % 50
    first, twins = equal_rows(rows)
    assert first.tolist() == list(range(50))
    assert twins.tolist() == list(range(50)) * 2
    monkeypatch.setattr(module, "_keys", lambda words: np.zeros(len(words), dtype=np.uint64))
    first, twins = equal_rows(np.array([[1.0], [1.0], [2.0]]))
    assert first.tolist() == twins.tolist() == [0, 1, 2]
    assert equal_rows(np.ones((3, 1)))[0].tolist() == [0]


FAULTS = """
import resource
import numpy as np
from federation.numerics.rows import keep_freed_memory
if {keep}:
    keep_freed_memory()
def touch():
    first, second = np.empty(3 << 20, np.uint8), np.empty(3 << 20, np.uint8)
    first[:] = second[:] = 1
for _ in range(3):
    touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep):
    run = subprocess.run([sys.executable, "-c", FAULTS.format(keep=keep)], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tunes the allocator of Linux")
def test_memory_that_was_freed_is_not_fetched_again():
    assert faults(keep=True) < 100 < faults(keep=False)


ROWS = arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6))


@given(ROWS, st.one_of(st.none(), st.floats(0.1, 3)))
def test_no_row_is_longer_than_allowed(rows, l1_bound):
    found = within_norm(rows, l1_bound)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-14
    if l1_bound is not None:
        assert np.abs(found).sum(axis=1).max() <= l1_bound * (1 + 1e-14)
    scale = np.linalg.norm(found, axis=1) / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    np.testing.assert_allclose(found, rows * scale[:, None], rtol=1e-12)
    once = within_norm(rows)
    np.testing.assert_allclose(within_norm(once), once, rtol=1e-15)


def test_short_rows_keep_every_bit():
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 4))
    np.testing.assert_array_equal(within_norm(rows), rows)
    np.testing.assert_array_equal(within_norm(rows, 2.0), rows)
    assert not np.shares_memory(within_norm(rows), rows)


@pytest.mark.parametrize(
    ("rows", "l1_bound", "expected"),
    [
        ([[2.0, 2.0], [0.5, 0.0]], 0.5, [[0.25, 0.25], [0.5, 0.0]]),  # the smaller bound decides
        ([[1e200, 1.0], [3.0, 4.0]], None, [[0, 0], [0.6, 0.8]]),  # rows whose squares overflow become zeros
    ],
)
def test_known_rows_are_cut(rows, l1_bound, expected):
    np.testing.assert_allclose(within_norm(np.array(rows), l1_bound), expected)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 5))
def test_the_second_moment_becomes_the_identity_on_the_span(seed, width, rank):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(20, min(rank, width))) @ rng.normal(size=(min(rank, width), width))
    whiten, unwhiten = whitening(rows.T @ rows)
    assert whiten.shape == unwhiten.shape == (width, min(rank, width))
    np.testing.assert_allclose(whiten.T @ rows.T @ rows @ whiten, np.eye(whiten.shape[1]), atol=1e-6)
    np.testing.assert_allclose(rows @ whiten @ unwhiten.T, rows, atol=1e-6 * np.abs(rows).max())


def test_the_pseudo_inverse_is_that_of_columns_of_norm_one_and_columns_of_zeros_have_no_part(rng):
    rows = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 4))
    rows /= np.linalg.norm(rows, axis=0)
    whiten, _ = whitening(rows.T @ rows)
    np.testing.assert_allclose(whiten @ whiten.T, np.linalg.pinv(rows.T @ rows, rcond=1e-12), atol=1e-8)
    assert [part.shape for part in whitening(np.zeros((2, 2)))] == [(2, 0), (2, 0)]
    for part, value in zip(whitening(np.diag([4.0, 0.0])), (0.5, 2.0), strict=True):
        np.testing.assert_array_equal(np.abs(part), [[value], [0.0]])


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
def test_units_decide_nothing(rng, scale):
    rows = rng.normal(size=(30, 3))
    plain, _ = whitening(rows.T @ rows)
    units = np.array([1.0, scale, 1.0])
    whiten, _ = whitening(rows.T @ rows * np.outer(units, units))
    np.testing.assert_allclose(np.abs(whiten * units[:, None]), np.abs(plain), rtol=1e-9)
