"""Pólya shares: their exact law, their sum, and decisions in many digits that agree with those in double precision."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.randomness import NoiseBits
from federation.mechanisms.sums import shares as polya


class WordsThenBits:
    """Given words first, then random ones."""

    def __init__(self, words: list[int]) -> None:
        self._words, self._bits = words, NoiseBits(1, "later")

    def words(self, count: int) -> np.ndarray:
        given, self._words = self._words[:count], self._words[count:]
        return np.concatenate([np.array(given, dtype=np.uint64), self._bits.words(count - len(given))])


def fits(values: np.ndarray, law: np.ndarray) -> float:
    """p-value of a chi-squared test; `law` holds the probabilities of 0, 1, ..., and the rest is its last cell."""
    expected = np.append(law, 1 - law.sum()) * len(values)
    seen = np.bincount(np.minimum(values, len(law)), minlength=len(law) + 1)
    return float(stats.chisquare(seen, expected).pvalue)


@pytest.mark.parametrize(("scale", "contributors"), [(1, 1), (1, 3), (6, 2), (8, 1), (13, 7), (300, 40)])
def test_one_side_is_negative_binomial(scale: int, contributors: int) -> None:
    values = polya._one_sided(NoiseBits(1, "polya"), scale, contributors, 100_000)
    exact = stats.nbinom(1 / contributors, -np.expm1(-1 / scale))
    law = exact.pmf(np.arange(min(3 * scale, 40)))
    assert fits(values, law) > 1e-3
    assert fits(values, stats.nbinom(1.1 / contributors, -np.expm1(-1 / scale)).pmf(np.arange(len(law)))) < 1e-3


@pytest.mark.parametrize(("scale", "contributors"), [(1, 2), (7, 3), (70_000, 5)])
def test_as_many_shares_as_declared_sum_to_discrete_laplace(scale: int, contributors: int) -> None:
    shares = [polya.sample(NoiseBits(2, "share", party), scale, contributors, 50_000) for party in range(contributors)]
    total = np.sum(shares, axis=0)
    assert total.dtype == np.int64
    if scale < 100:
        q = np.exp(-1 / scale)
        law = (1 - q) / (1 + q) * q ** np.arange(2 * scale) * np.where(np.arange(2 * scale) > 0, 2, 1)
        assert fits(np.abs(total), law) > 1e-3
    else:
        assert stats.kstest(total / scale, "laplace").pvalue > 1e-3
        assert stats.kstest((total - shares[0]) / scale, "laplace").pvalue < 1e-3


@given(st.integers(1, 2**40), st.integers(1, 2**30))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_the_staircase_lies_above_the_law(scale: int, contributors: int) -> None:
    """At the left ends of the steps, where w_k q^k is largest; in many digits."""
    buckets = polya._buckets(scale, contributors)
    rest = len(buckets.starts) - 1
    assert int(buckets.starts[-1]) >= scale
    for i in {0, 1, rest // 2, rest - 1, rest}:
        start = int(buckets.starts[i])
        height = Fraction(buckets.unit) * int(buckets.weights[i]) / max(start, 1) / (2 if i == rest else 1)
        with mpmath.workdps(60):
            shape = mpmath.mpf(1) / contributors
            weight = (
                mpmath.rf(shape, start) / mpmath.factorial(start)
                if start < 1000
                else mpmath.exp(mpmath.loggamma(start + shape) - mpmath.loggamma(shape) - mpmath.loggamma(start + 1))
            )
            share = weight * mpmath.exp(-mpmath.mpf(start) / scale) * height.denominator / height.numerator
        assert share <= 1
        assert share > 0.2 or buckets.weights[i] == 1


@pytest.mark.parametrize(("scale", "contributors"), [(5, 1), (5, 3), (90_000, 12)])
def test_many_digits_decide_as_double_precision(monkeypatch: pytest.MonkeyPatch, scale: int, contributors: int) -> None:
    quick = polya.sample(NoiseBits(3, "digits"), scale, contributors, 150)
    monkeypatch.setattr(polya, "_RELATIVE_ERROR", 2.0)
    assert np.array_equal(polya.sample(NoiseBits(3, "digits"), scale, contributors, 150), quick)


def test_what_64_bits_leave_open_is_settled_by_more() -> None:
    """k = 1, t = 2, n = 2: w_1 q = e^{-1/2}/2, and the first bits of U are those of the number to compare it with."""
    buckets = polya._buckets(2, 2)
    with mpmath.workdps(60):
        share = mpmath.exp(-mpmath.mpf(1) / 2) / 2
        prefix = int(mpmath.floor(share * 2**64))
        following = int(mpmath.floor((share * 2**64 - prefix) * 2**64))
    one = Fraction(1)
    assert buckets._settled(prefix, 1, one, WordsThenBits([following - 1]))
    assert not buckets._settled(prefix, 1, one, WordsThenBits([following + 1]))
    assert buckets._settled(prefix - 1, 1, one, WordsThenBits([2**64 - 1]))


@pytest.mark.parametrize("beyond", [-1, 1])
def test_an_unlikely_value_is_settled_by_more_bits_too(beyond: int) -> None:
    """k = 60, t = 2, n = 2: about 2^-47 under a staircase of height 1 or so, which 64 bits tell to 17 bits only."""
    buckets = polya._buckets(2, 2)
    weight = int(1 / buckets.unit)
    with mpmath.workdps(60):
        half = mpmath.mpf(1) / 2
        law = mpmath.gamma(60 + half) / mpmath.gamma(half) / mpmath.factorial(60) * mpmath.exp(-30)
        share = law / (weight * mpmath.mpf(buckets.unit))
        prefix = int(mpmath.floor(share * 2**64))
        following = int(mpmath.floor((share * 2**64 - prefix) * 2**64))
    value, one, none = np.array([60]), np.array([1]), np.array([0])
    bits = WordsThenBits([prefix, following + beyond])
    kept = buckets._under(value, one, none, np.array([weight]), bits)
    assert kept.tolist() == [beyond < 0]


def test_coins_are_counted_beyond_one_word() -> None:
    assert polya._coins_until_heads(WordsThenBits([0, 1, 8, 0, 4]), 3).tolist() == [64 + 64 + 2, 0, 3]
