"""One bit per label: its law against Duchi et al.'s, by all words and by frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_words import Script, evenly

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.randomised_response import WORDS, OneBitLabels
from federation.mechanisms.labels.randomised_response import calibrate_one_bit as calibrate

RANGE = LabelRange(-1.0, 3.0)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_law_by_all_words(share):
    """With a redraw of 1/4 and labels on quarters, 4 words for the end, 2 for a fresh answer and 4 coins are all."""
    mechanism = OneBitLabels(RANGE, math.log(7), WORDS // 4)
    ends, fresh, coins = (a.ravel() for a in np.meshgrid(evenly(4), np.arange(2, dtype=np.uint64), evenly(4)))
    labels = np.full(len(ends), RANGE.low + share * RANGE.width)
    released = mechanism.release(labels, Script(ends, fresh, coins))
    high = 0.125 + 0.75 * share
    assert (released > RANGE.middle).mean() == high
    assert released.mean() == pytest.approx(labels[0], abs=1e-12)
    assert released.var() == pytest.approx(mechanism.variance(labels[:1])[0], rel=1e-12)


@given(epsilon=st.floats(1e-3, 20), share=st.floats(0, 1))
def test_values_and_probabilities_are_those_of_the_paper(epsilon, share):
    """± (e^epsilon + 1)/(e^epsilon - 1), up with probability 1/2 + y/2 (e^epsilon - 1)/(e^epsilon + 1)."""
    mechanism = calibrate(RANGE, epsilon)
    factor = 1 / math.tanh(epsilon / 2)
    assert mechanism.reach == pytest.approx(2 * factor, rel=1e-9)
    y = RANGE.low + share * RANGE.width
    up = 0.5 + (y - RANGE.middle) / 2 / factor / 2
    variance = (2 * mechanism.reach) ** 2 * up * (1 - up)
    assert mechanism.variance(np.array([y]))[0] == pytest.approx(variance, rel=1e-6, abs=1e-9 * mechanism.reach**2)
    assert mechanism.variance() >= mechanism.variance(np.array([y]))[0]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_epsilon_is_attained_and_delta_falls_to_zero_there(epsilon):
    mechanism = calibrate(RANGE, epsilon)
    assert mechanism.delta_at(epsilon) == pytest.approx(0.0, abs=1e-12)
    assert mechanism.delta_at(0.0) == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)
    assert mechanism.delta_at(0.99 * epsilon) > 0


def test_released_labels_are_unbiased_with_the_stated_variance():
    mechanism, labels = calibrate(RANGE, 1.0), np.repeat([-1.0, 0.3, 1.0, 3.0], 100_000)
    released = mechanism.release(labels, NoiseBits(4, "one bit"))
    assert len(np.unique(released)) == 2
    parts = released.reshape(4, -1)
    np.testing.assert_allclose(parts.mean(axis=1), labels[::100_000], atol=4.5 * mechanism.reach / 100_000**0.5)
    np.testing.assert_allclose(parts.var(axis=1), mechanism.variance(labels[::100_000]), rtol=0.02)
    assert mechanism.bias() == 0.0
    assert not mechanism.bias(labels).any()


def test_the_guarantee_is_pure_and_for_replaced_labels_only():
    promised = calibrate(RANGE, 1.0).guarantee()
    assert (promised.epsilon, promised.delta, promised.mechanism) == (1.0, 0.0, "label_one_bit")
    assert promised.parameters["flip"] == pytest.approx(1 / (1 + math.e), rel=1e-9)
    with pytest.raises(InputError, match="adjacency must be replace"):
        calibrate(RANGE, 1.0).guarantee(adjacency=Adjacency.ADD_REMOVE)
