"""Bags, weights and noisy rows: their laws, their exactness, and that equal keys give equal draws."""

import math
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.scripted_words import WordsThenBits

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.numerics import bag_weights
from federation.numerics.bag_weights import (
    disjoint_bags,
    gaussian_weights,
    noisy_count,
    noisy_rows,
    permutation,
    sign_weights,
    stratified_noise,
)


def bits(seed=0, purpose="bags"):
    return NoiseBits(seed, purpose)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 100), st.integers(0, 2**32))
def test_bags_are_disjoint_row_numbers(count, size, spare, seed):
    bags = disjoint_bags(count * size + spare, count, size, bits(seed))
    assert bags.shape == (count, size)
    assert bags.dtype == np.int64
    assert len(np.unique(bags)) == bags.size
    assert bags.min() >= 0
    assert bags.max() < count * size + spare
    np.testing.assert_array_equal(np.sort(permutation(count * size, bits(seed))), np.arange(count * size))


def test_large_permutations_go_block_by_block(monkeypatch):
    whole = permutation(5000, bits())
    monkeypatch.setattr(bag_weights, "_BLOCK", 64)
    np.testing.assert_array_equal(permutation(5000, bits()), whole)


def frequencies_fit(draw, outcomes, runs=6000):
    counts = Counter(draw(seed) for seed in range(runs))
    assert len(counts) == outcomes
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


@pytest.mark.parametrize(
    ("draw", "outcomes"),
    [
        (lambda stream: permutation(4, stream), math.factorial(4)),
        (lambda stream: disjoint_bags(5, 2, 2, stream).ravel(), 120),
        (lambda stream: np.flatnonzero(noisy_rows(5, 2, stream)), 10),
    ],
    ids=["permutations", "bags", "noisy rows"],
)
def test_draws_are_uniform_and_in_random_order(draw, outcomes):
    stream = bits()
    frequencies_fit(lambda _: tuple(draw(stream).tolist()), outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [1, 2, 3])
def test_rows_with_equal_random_bits_are_put_in_uniform_order(kept):
    """Words that agree in all but a few of their leading bits the first time, and honest ones afterwards."""

    def drawn(seed):
        coarse = (word >> (64 - kept) << (64 - kept) for word in NoiseBits(seed, "coarse").words(4).tolist())
        return tuple(permutation(4, WordsThenBits(coarse, bits(seed))).tolist())

    frequencies_fit(drawn, math.factorial(4))


def test_gaussian_weights_are_standard_normal_and_finite_of_the_extreme_words(monkeypatch):
    weights = gaussian_weights(400, 500, bits()).ravel()
    assert stats.kstest(weights, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(weights[:-1], weights[1:])[0, 1]) < 0.01
    assert np.isfinite(weights).all()
    stream = bits()
    for word in (0, 2**64 - 1):
        monkeypatch.setattr(stream, "words", lambda count, word=word: np.full(count, word, np.uint64))
        assert 8 < abs(gaussian_weights(1, 1, stream)[0, 0]) < 9


def test_sign_weights_are_fair_signs():
    weights = sign_weights(300, 333, bits())
    assert weights.shape == (300, 333)
    assert set(np.unique(weights)) == {-1.0, 1.0}
    assert abs(weights.sum()) < 4 * math.sqrt(weights.size)
    assert abs((weights[:, 1:] * weights[:, :-1]).sum()) < 4 * math.sqrt(weights.size)


@pytest.mark.parametrize("draw", [gaussian_weights, sign_weights])
def test_weights_have_mean_0_and_identity_covariance(draw):
    """What makes the bag loss unbiased, and nothing more of the law is used."""
    weights = draw(40_000, 3, bits())
    np.testing.assert_allclose(weights.mean(axis=0), 0, atol=0.025)
    np.testing.assert_allclose(weights.T @ weights / len(weights), np.eye(3), atol=0.035)


@pytest.mark.parametrize("draw", [gaussian_weights, sign_weights, lambda m, k, b: disjoint_bags(2 * m * k, m, k, b)])
def test_equal_keys_give_equal_draws_and_others_do_not(draw):
    first, again, other = draw(20, 30, bits(1)), draw(20, 30, bits(1)), draw(20, 30, bits(2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (draw(20, 30, bits(1, "noise")) != first).any()


@pytest.mark.parametrize(("share", "rows", "count"), [
    (0.1, 30, 3), (0.15, 10, 2), (0.25, 10, 2), (0.35, 10, 4), (0.145, 100, 14), (0.575, 100, 58), (1.0, 7, 7),
    (1, 7, 7), (0.2, 64, 13), (0.1, 256, 26), (np.float64(0.1), 30, 3), (1e-7, 50_582_693, 5),
])  # fmt: skip
def test_the_number_of_noisy_rows_rounds_half_to_even_in_decimal(share, rows, count):
    assert noisy_count(share, rows) == count


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_the_number_of_noisy_rows_is_decimal_arithmetic(parts, rows):
    expected = int((Decimal(parts) / 10_000 * rows).quantize(Decimal(1), rounding=ROUND_HALF_EVEN))
    if expected:
        assert noisy_count(parts / 10_000, rows) == expected
        assert abs(expected - Fraction(parts, 10_000) * rows) <= Fraction(1, 2)
    else:
        with pytest.raises(InputError, match="no row at all"):
            noisy_count(parts / 10_000, rows)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_every_stratified_bag_has_as_many_noisy_rows(count, size, data):
    noisy = data.draw(st.integers(1, size))
    chosen = stratified_noise(count, size, noisy)
    assert chosen.shape == (count, size)
    assert (chosen.sum(axis=1) == noisy).all()
    assert noisy_rows(count * size, noisy, bits()).sum() == noisy


def test_stratified_noise_falls_on_every_row_alike():
    """The first places of a bag are any of its rows."""
    stream, hits = bits(), np.zeros(6)
    for _ in range(6000):
        bags = disjoint_bags(6, 2, 3, stream)
        hits[bags[stratified_noise(2, 3, 1)]] += 1
    assert stats.chisquare(hits).pvalue > 1e-4


@pytest.mark.parametrize(("call", "complaint"), [
    (lambda: disjoint_bags(99, 10, 10, bits()), r"100.*99"),
    (lambda: disjoint_bags(10, 0, 1, bits()), None),
    (lambda: disjoint_bags(10, 1, 0, bits()), None),
    (lambda: disjoint_bags(10, -2, -2, bits()), None),
    (lambda: gaussian_weights(0, 3, bits()), None),
    (lambda: sign_weights(3, 0, bits()), None),
    (lambda: stratified_noise(3, 4, 0), r"1.*4"),
    (lambda: stratified_noise(3, 4, 5), "5"),
    (lambda: noisy_count(0.0, 10), r"rho.*0.*1.*0"),
    (lambda: noisy_count(1.01, 10), r"1\.01"),
    (lambda: noisy_count(math.nan, 10), None),
    (lambda: noisy_count(0.01, 10), "rho"),
    (lambda: noisy_rows(10, 0, bits()), r"1.*10"),
    (lambda: noisy_rows(10, 11, bits()), "11"),
    (lambda: permutation(0, bits()), "1"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused(call, complaint):
    with pytest.raises(InputError, match=complaint):
        call()
