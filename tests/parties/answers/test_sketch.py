"""Weighted sums of bags: against sums in exact arithmetic, term by term in the order of the rows, and from files."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights
from parties.responses import labels as module
from parties.responses.labels import label_sums, sketch, sketches


def problem(rows, columns, count, size, seed=0):
    bits, rng = NoiseBits(seed, "bags"), np.random.default_rng(seed)
    bags = disjoint_bags(rows, count, size, bits)
    return rng.normal(size=(rows, columns)), rng.normal(size=rows), bags, gaussian_weights(count, size, bits)


def one_by_one(rows, labels, bags, weights):
    """The documented order, in a loop."""
    sums = np.zeros((len(bags), rows.shape[1] + 1))
    for total, bag, own in zip(sums, bags, weights, strict=True):
        for row, weight in sorted(zip(bag.tolist(), own.tolist(), strict=True)):
            total += weight * np.append(rows[row], labels[row])
    return sums


def joined(found):
    return np.column_stack([found.rows, found.labels])


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 4), st.integers(0, 40), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_sums_have_the_bits_of_a_loop(count, size, columns, spare, seed):
    data = problem(count * size + spare, columns, count, size, seed)
    np.testing.assert_array_equal(joined(sketch(*data)), one_by_one(*data))


def test_sums_agree_with_exact_arithmetic():
    rows, labels, bags, weights = problem(40, 2, 3, 10)
    found = sketch(rows, labels, bags, weights)
    for j, (bag, own) in enumerate(zip(bags, weights, strict=True)):
        exact = sum(Fraction(w) * Fraction(labels[i]) for i, w in zip(bag.tolist(), own.tolist(), strict=True))
        assert found.labels[j] == pytest.approx(float(exact), abs=1e-14)
        np.testing.assert_allclose(found.rows[j], own @ rows[bag], atol=1e-13)


@pytest.mark.parametrize(("count", "size"), [(900, 1), (300, 3), (3, 300), (1, 900), (1, 1), (20, 7)])
def test_bits_do_not_depend_on_tiles(count, size, monkeypatch):
    data = problem(1000, 5, count, size)
    monkeypatch.setattr(module, "_LEAST_TILE", 1)
    found = []
    for entries in (6, 60, 1 << 18):
        monkeypatch.setattr(module, "_TILE_ENTRIES", entries)
        found.append(joined(sketch(*data)))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_bits_do_not_depend_on_the_order_within_bags():
    rows, labels, bags, weights = problem(200, 3, 10, 15)
    order = np.random.default_rng(1).permuted(np.tile(np.arange(15), (10, 1)), axis=1)
    shuffled = np.take_along_axis(bags, order, 1), np.take_along_axis(weights, order, 1)
    np.testing.assert_array_equal(joined(sketch(rows, labels, *shuffled)), joined(sketch(rows, labels, bags, weights)))


@given(st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_bags_stand_for_themselves(seed):
    """Reordering bags reorders their sums; a bag's sum is that of the bag alone."""
    rows, labels, bags, weights = problem(200, 3, 10, 15, seed)
    whole = joined(sketch(rows, labels, bags, weights))
    order = np.random.default_rng(seed).permutation(10)
    np.testing.assert_array_equal(joined(sketch(rows, labels, bags[order], weights[order])), whole[order])
    np.testing.assert_array_equal(joined(sketch(rows, labels, bags[3:4], weights[3:4])), whole[3:4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_a_memory_map_gives_the_bits_of_an_array(tmp_path, dtype, monkeypatch):
    rows, labels, bags, weights = problem(3000, 4, 40, 50)
    rows = (100 * rows).astype(dtype)
    rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", dtype, "r", shape=rows.shape)
    monkeypatch.setattr(module, "_TILE_ENTRIES", 5 * 512)
    np.testing.assert_array_equal(
        joined(sketch(mapped, labels, bags, weights)), joined(sketch(rows, labels, bags, weights))
    )


@pytest.mark.parametrize("transform", [np.asfortranarray, lambda rows: np.repeat(rows, 2, axis=0)[::2]])
def test_bits_do_not_depend_on_the_layout_of_rows(transform):
    rows, labels, bags, weights = problem(700, 4, 40, 10)
    np.testing.assert_array_equal(
        joined(sketch(transform(rows), labels, bags, weights)), joined(sketch(rows, labels, bags, weights))
    )


def test_sums_of_labels_alone_have_the_same_bits():
    rows, labels, bags, weights = problem(900, 6, 30, 20)
    np.testing.assert_array_equal(label_sums(labels, bags, weights), sketch(rows, labels, bags, weights).labels)


def test_single_precision_rows_are_summed_in_double():
    rows = np.full((10_000, 1), np.float32(0.1))
    found = sketch(rows, np.zeros(10_000), np.arange(10_000)[None], np.ones((1, 10_000)))
    assert found.rows[0, 0] == pytest.approx(10_000 * float(np.float32(0.1)), rel=1e-12)


def test_rows_outside_bags_are_not_looked_at():
    rows, labels, bags, weights = problem(50, 2, 4, 5)
    expected = joined(sketch(rows, labels, bags, weights))
    outside = np.setdiff1d(np.arange(50), bags)
    rows[outside], labels[outside] = np.nan, np.inf
    np.testing.assert_array_equal(joined(sketch(rows, labels, bags, weights)), expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("place", ["row", "label"])
def test_values_that_are_not_finite_are_refused_by_row(value, weight, place):
    rows, labels, bags, weights = problem(50, 2, 4, 5)
    row = bags[2, 3]
    weights[2, 3] = weight
    if place == "row":
        rows[row, 1] = value
    else:
        labels[row] = value
    with pytest.raises(InputError, match=f"finite: row {row} is not"):
        sketch(rows, labels, bags, weights)


def test_sums_beyond_double_precision_are_refused():
    rows, labels, bags, weights = problem(50, 2, 4, 5)
    with pytest.raises(InputError, match="leave the range"):
        sketch(rows * 1e307, labels * 1e307, bags, 100 * np.abs(weights))


@pytest.mark.parametrize(("change", "complaint"), [
    (lambda r, y, b, w: (r[:, 0], y, b, w), "two axes"),
    (lambda r, y, b, w: (r.astype(str), y, b, w), "numbers on two axes"),
    (lambda r, y, b, w: (r, y[:-1], b, w), "each of 50 rows"),
    (lambda r, y, b, w: (r, y, b.ravel(), w), "shape"),
    (lambda r, y, b, w: (r, y, b.astype(float), w), "float64"),
    (lambda r, y, b, w: (r, y, b[:, :0], w[:, :0]), "shape"),
    (lambda r, y, b, w: (r, y, b[:0], w[:0]), "shape"),
    (lambda r, y, b, w: (r, y, b + 50, w), "from 0 to 49"),
    (lambda r, y, b, w: (r, y, b - b.max() + 50, w), "from 0 to 49"),
    (lambda r, y, b, w: (r, y, b - 50, w), "from 0 to 49"),
    (lambda r, y, b, w: (r, y, b, w[:, :-1]), "bags' shape"),
    (lambda r, y, b, w: (r, y, b, np.where(w > 0, np.nan, w)), "weights must be finite"),
    (lambda r, y, b, w: (r, y, np.vstack([b[:3], b[:1]]), w), "disjoint"),
    (lambda r, y, b, w: (r, y, np.column_stack([b[:, :4], b[:, :1]]), w), "disjoint"),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(change, complaint):
    with pytest.raises(InputError, match=complaint):
        sketch(*change(*problem(50, 2, 4, 5)))


@pytest.mark.parametrize("entries", [1, 200, 1 << 18])  # a draw at a time, two, and all together
def test_several_draws_have_the_bits_of_each_alone(entries, monkeypatch):
    rows, labels, _, _ = problem(25, 3, 2, 5)
    drawn = [problem(25, 3, 2, 5, seed)[2:] for seed in range(5)]
    bags, weights = (np.stack(one) for one in zip(*drawn, strict=True))
    monkeypatch.setattr(module, "_TILE_ENTRIES", entries)
    found = sketches(rows, labels, bags, weights)
    alone = [sketch(rows, labels, *one) for one in drawn]
    np.testing.assert_array_equal(found.rows, [one.rows for one in alone])
    np.testing.assert_array_equal(found.labels, [one.labels for one in alone])
