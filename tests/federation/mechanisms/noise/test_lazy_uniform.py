"""Decisions of lazily known uniforms against the same uniforms written out to hundreds of bits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import every_third
from support.scripted_words import WordsThenBits

from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.lazy_uniform import below_exp, below_exp_square, collect, floor_exponential


def real_number(words: list[int], first_bits: int) -> mpmath.mpf:
    """The binary fraction with the given leading word (of first_bits bits) and further 64-bit words."""
    value, length = words[0], first_bits
    for word in words[1:]:
        value, length = value << 64 | word, length + 64
    return mpmath.mpf(value) / mpmath.mpf(2) ** length


SCALES = [1, 7, 2**16, 2**26, 2**40, Fraction(1, 7), Fraction(22, 7), Fraction(2**40, 3), Fraction(3, 2**40)]


@pytest.mark.parametrize("scale", every_third(SCALES))
def test_floor_exponential_equals_high_precision_arithmetic(scale: int | Fraction) -> None:
    words = NoiseBits(3, "test").words(3000)
    tail = [int(w) for w in NoiseBits(4, "test").words(3000)]
    source = WordsThenBits(tail)
    values = floor_exponential(words, scale, source)
    # Consumed words belong to the open elements in order; replaying them reproduces each real number.
    unused = list(tail)
    with mpmath.workprec(400):
        mean = mpmath.mpf(scale.numerator) / scale.denominator
        for word, value in zip(words, values, strict=True):
            prefix = int(word) >> 1
            low = mpmath.floor(-mean * mpmath.log(mpmath.mpf(prefix + 1) / 2**63))
            high = mpmath.floor(-mean * mpmath.log(mpmath.mpf(prefix) / 2**63))
            assert low <= value <= high
            if low != high:
                u = real_number([prefix, unused.pop(0)], 63)
                assert value == mpmath.floor(-mean * mpmath.log(u))
    assert source.taken < 200


@pytest.mark.parametrize("further", [0, 2**64 - 1])
@pytest.mark.parametrize("scale", [1, Fraction(7, 3), Fraction(1, 7), Fraction(593155, 2**16)])
def test_an_element_on_the_boundary_is_settled_by_further_bits(scale: Fraction, further: int) -> None:
    """The boundary e^(-1/scale) lies inside the prefix's cell: low further bits decide on 1, high ones on 0."""
    with mpmath.workprec(300):
        edge = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        boundary = int(mpmath.floor(edge * mpmath.mpf(2) ** 63))
    source = WordsThenBits([further])
    value = floor_exponential(np.array([boundary << 1], dtype=np.uint64), scale, source)
    assert source.taken == 1
    assert value[0] == (1 if further == 0 else 0)


@pytest.mark.parametrize(("further", "value"), [(0, 43), (2**64 - 1, 42)])
def test_a_tiny_prefix_is_settled_by_further_bits(further: int, value: int) -> None:
    """63 bits that start with 62 zeros leave U between 2^-63 and 2^-62, so -ln U between 42.98 and 43.67."""
    source = WordsThenBits([further])
    assert floor_exponential(np.array([1 << 1], dtype=np.uint64), 1, source)[0] == value
    assert source.taken == 1


@pytest.mark.parametrize("further", [0, 2**64 - 1])
def test_a_boundary_within_128_bits_is_settled_by_the_next_ones(further: int) -> None:
    """As long as the known bits are those of the boundary, nothing is decided."""
    with mpmath.workprec(400):
        edge = int(mpmath.floor(mpmath.exp(-1) * mpmath.mpf(2) ** 128))
    high, low = edge >> 64, edge & (2**64 - 1)
    source = WordsThenBits([high, low, further])
    assert bool(below_exp(np.array([1]), 1, source)[0]) == (further == 0)
    assert source.taken == 3
    high, low = edge >> 65, (edge >> 1) & (2**64 - 1)  # with 63 bits in the first word
    source = WordsThenBits([low, further])
    assert floor_exponential(np.array([high << 1], dtype=np.uint64), 1, source)[0] == (1 if further == 0 else 0)
    assert source.taken == 2


def test_a_zero_prefix_draws_until_a_bit_is_set() -> None:
    source = WordsThenBits([0, 0, 5, 2**63])
    value = floor_exponential(np.zeros(1, dtype=np.uint64), 1000, source)
    with mpmath.workprec(300):
        # 5 alone leaves values between 1000 ln(2^255/6) and 1000 ln(2^255/5); the next word settles it.
        assert value[0] == mpmath.floor(-1000 * mpmath.log(mpmath.mpf(5.5) / mpmath.mpf(2) ** 255))
    assert source.taken == 4


@pytest.mark.parametrize(("distance", "denominator"), [(3, 7), (1, 2 * 10**9), (-40, 3200), (900, 20000)])
@pytest.mark.parametrize("further", [0, 2**64 - 1])
def test_a_coin_on_the_boundary_is_settled_by_further_bits(distance: int, denominator: int, further: int) -> None:
    with mpmath.workprec(300):
        p = mpmath.exp(-mpmath.mpf(distance**2) / denominator)
        first = int(mpmath.floor(p * mpmath.mpf(2) ** 64))
        source = WordsThenBits([first, further])
        answer = below_exp_square(np.array([distance]), denominator, source)
        assert source.taken == 2
        assert bool(answer[0]) == bool(real_number([first, further], 64) < p)


@given(st.integers(0, 10**6), st.integers(1, 10**12), st.integers(0, 2**64 - 1))
@settings(derandomize=True)
def test_coins_equal_high_precision_arithmetic(distance: int, denominator: int, word: int) -> None:
    further = 2**63 + 12345
    answer = below_exp_square(np.array([distance]), denominator, WordsThenBits([word, further, further]))
    with mpmath.workprec(400):
        p = mpmath.exp(-mpmath.mpf(distance**2) / denominator)
        assert bool(answer[0]) == bool(real_number([word, further, further], 64) < p)


@given(st.integers(0, 10**6), st.integers(1, 2**40), st.integers(1, 2**40), st.integers(0, 2**64 - 1), st.booleans())
@settings(derandomize=True)
def test_coins_of_a_rational_scale_equal_high_precision_arithmetic(
    distance, numerator, denominator, word, near
) -> None:
    further = 2**63 + 12345
    with mpmath.workprec(400):
        p = mpmath.exp(-mpmath.mpf(distance) * denominator / numerator)
        if near:  # the word whose cell holds the boundary
            word = min(int(mpmath.floor(p * mpmath.mpf(2) ** 64)), 2**64 - 1)
        source = WordsThenBits([word, further, further])
        answer = below_exp(np.array([distance]), Fraction(numerator, denominator), source)
        assert bool(answer[0]) == bool(real_number([word, further, further], 64) < p)
        assert source.taken > 1 or not near


def test_collect_returns_the_first_values_of_the_sequence_which_may_be_rows() -> None:
    sequence, further = iter(range(10**6)), iter(range(10**6))

    def every_third(count: int) -> np.ndarray:
        fresh = np.array([next(sequence) for _ in range(count)])
        return fresh[fresh % 3 == 0]

    def odd_rows(count: int) -> np.ndarray:
        fresh = np.array([next(further) for _ in range(count)])
        return np.column_stack([fresh, -fresh])[fresh % 2 == 1]

    assert np.array_equal(collect(every_third, 1000, 0.5), 3 * np.arange(1000))
    assert collect(every_third, 0, 0.5).shape == (0,)
    odd = 2 * np.arange(300) + 1
    assert np.array_equal(collect(odd_rows, 300, 0.5, (2,)), np.column_stack([odd, -odd]))


@pytest.mark.parametrize("offset", [-300, -3, 3, 300])
def test_a_long_exponential_is_decided_by_all_bits_of_its_uniform(offset: int) -> None:
    """Of a scale of 2^40 the integer turns where U is nearly 1: doubles see those of a thousand prefixes as one."""
    with mpmath.workdps(60):
        turn = int(mpmath.floor(2**63 * mpmath.exp(-(mpmath.mpf(2) ** -40))))
    word = np.array([(turn + offset) << 1], dtype=np.uint64)
    assert float(turn + offset) == float(turn)
    assert floor_exponential(word, 2**40, NoiseBits(1, "further")).tolist() == [int(offset < 0)]
