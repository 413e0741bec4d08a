"""Exact randomised response: its law by running every case of its random words, its delta by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_words import Script, evenly

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import randomised_response as response


@pytest.mark.parametrize("answers", [2, 4, 8])
def test_the_law_by_all_words(answers):
    """A redraw of 3/16 and k answers a power of two: 16 k evenly spread words per call are all cases there are."""
    redraw = 3 * response.WORDS // 16
    coins, fresh = (a.ravel() for a in np.meshgrid(evenly(16), np.arange(answers, dtype=np.uint64)))
    for truth in range(answers):
        given_ = np.full(16 * answers, truth)
        counts = np.bincount(response.respond(given_, answers, redraw, Script(fresh, coins)), minlength=answers)
        true, other = response.probabilities(answers, redraw)
        expected = [true if answer == truth else other for answer in range(answers)]
        np.testing.assert_allclose(counts / counts.sum(), expected, rtol=1e-15)


def test_words_of_an_incomplete_round_are_drawn_again():
    """2^64 is 1 modulo 3 and 5: the largest word belongs to no whole round."""
    last = np.full(1, response.WORDS - 1, dtype=np.uint64)
    for answers in (3, 5):
        again = np.full(40, 2, dtype=np.uint64)
        bits = Script(np.full(40, last[0], dtype=np.uint64), again, np.zeros(1, dtype=np.uint64))
        assert response.respond(np.array([0]), answers, response.WORDS - 1, bits).tolist() == [2]


@given(answers=st.integers(2, 600), epsilon=st.floats(1e-5, 30))
def test_epsilon_is_attained_by_the_likelihood_ratio_and_not_exceeded(answers, epsilon):
    redraw = response.calibrate_redraw(answers, epsilon)
    other = Fraction(redraw, response.WORDS * answers)
    ratio = (1 - (answers - 1) * other) / other
    surplus = math.log1p(float(ratio - 1)) - epsilon
    assert surplus <= 1e-13
    assert surplus >= -1e-9 - 2 * math.exp(epsilon) / response.WORDS  # the next smaller integer is too small


@given(answers=st.integers(2, 6), epsilon=st.floats(0.1, 5), at=st.floats(-6, 6))
def test_delta_equals_enumeration(answers, epsilon, at):
    redraw = response.calibrate_redraw(answers, epsilon)
    true, other = response.probabilities(answers, redraw)
    first = np.full(answers, other)
    second = first.copy()
    first[0] = second[1] = true
    expected = np.maximum(first - math.exp(at) * second, 0).sum()
    assert response.delta(at, answers, redraw) == pytest.approx(expected, abs=1e-12)
    assert response.delta(at, 1, redraw) == pytest.approx(max(0.0, 1 - math.exp(at)))  # the only answer is the same


def test_frequencies_of_a_number_of_answers_that_is_no_power_of_two():
    truth, answers = np.repeat(np.arange(3), 100_000), 3
    redraw = response.calibrate_redraw(answers, 1.0)
    got = response.respond(truth, answers, redraw, NoiseBits(2, "frequencies"))
    true, other = response.probabilities(answers, redraw)
    for a, b in itertools.product(range(3), repeat=2):
        share = (got[truth == a] == b).mean()
        expected = true if a == b else other
        assert share == pytest.approx(expected, abs=4.5 * math.sqrt(expected / 100_000))


@pytest.mark.parametrize("epsilon", [0.0, 1e-7, -1.0, math.nan])
def test_too_small_an_epsilon_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon must be at least"):
        response.calibrate_redraw(2, epsilon)


def test_a_large_epsilon_keeps_answers():
    redraw = response.calibrate_redraw(4, 1000.0)
    assert redraw == 1
    truth = np.arange(4)
    np.testing.assert_array_equal(response.respond(truth, 4, redraw, NoiseBits(1, "keep")), truth)


def test_at_the_least_epsilon_answers_hardly_depend_on_labels():
    true, other = response.probabilities(2, response.calibrate_redraw(2, 1e-6))
    assert math.log(true / other) == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(InputError, match="epsilon must be at least 1e-06 for randomised response"):
        response.calibrate_redraw(2, math.nextafter(1e-6, 0))


@pytest.mark.parametrize("answers", [3, 5])
def test_the_last_word_of_the_last_whole_round_counts(answers):
    last = np.full(40, response.WORDS - 2, dtype=np.uint64)  # one before the incomplete round of a single word
    bits = Script(last, np.zeros(1, dtype=np.uint64))
    assert response.respond(np.array([0]), answers, response.WORDS - 1, bits).tolist() == [answers - 1]
