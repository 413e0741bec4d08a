"""What honest answers reach: held against draws of the noise itself, and kept by whatever is sent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.two_class_questions import moment, row_moments

from aggregator.collectors import robust_sums as honest_range
from aggregator.collectors.robust_sums import BEYOND, Range, SumRange
from federation.contract.randomness import NoiseBits


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.1, 1e3), st.floats(0.1, 1e3), st.floats(1e-2, 1e6))
def test_whatever_comes_is_within_the_range_and_what_was_there_is_as_it_was(key, entry, norm, size):
    sent = size * np.random.default_rng(key).normal(size=(5, 2, 3))
    honest = Range(np.full(5, entry), np.full(5, norm))
    kept, changed = honest.bounded(sent, 2.0**-20)
    assert (np.abs(kept) <= entry).all()
    assert (np.linalg.norm(kept, axis=2) <= norm * (1 + 1e-12)).all()
    fine = (np.abs(sent) <= entry).all(axis=2) & (np.linalg.norm(sent, axis=2) <= norm)
    np.testing.assert_array_equal(kept[fine], sent[fine])
    np.testing.assert_array_equal(changed, ~fine.all(axis=1))
    again, more = honest.bounded(kept, 2.0**-20)
    np.testing.assert_array_equal(again, kept)
    assert not more.any()


def test_what_is_scaled_keeps_its_direction_and_the_grid():
    honest = Range(np.array([100.0]), np.array([10.0]))
    kept, changed = honest.bounded(np.array([[[30.0, -40.0]]]), 0.25)
    np.testing.assert_array_equal(kept, [[[6.0, -8.0]]])
    assert changed.all()
    kept, _ = honest.bounded(np.array([[[1e3, 1.0]]]), 0.25)
    np.testing.assert_array_equal(kept, [[[9.75, 0.0]]])  # cut to 100 first, then scaled, then towards zero


@pytest.mark.parametrize("noise", ["gaussian", "pure", "laplace", "randomised_response"])
def test_no_honest_answer_is_changed(noise):
    """The largest sums there are, with 20,000 draws of noise."""
    question = moment(noise=noise)
    rows, width = 30, question.numbers
    sent = np.tile(np.eye(1, width), (rows, 1))
    if noise == "randomised_response":
        sums = question.response().release(sent, np.ones(rows), NoiseBits(1, "range"), 20_000)
    else:
        sums = question.mechanism().release(sent.sum(axis=0), NoiseBits(1, "range"), 20_000)
    honest = SumRange(question)
    kept, changed = honest.of(np.array([float(rows)])).bounded(sums[None], honest.step)
    np.testing.assert_array_equal(kept[0], sums)
    assert not changed.any()


@pytest.mark.parametrize("noise", ["gaussian", "pure", "laplace"])
def test_as_many_honest_answers_are_changed_as_may_be_and_no_more(noise, monkeypatch):
    """With a probability that can be seen: without rows a tenth at most, and not far from that."""
    monkeypatch.setattr(honest_range, "BEYOND", 0.1)
    question = moment(noise=noise)
    sums = question.mechanism().release(np.zeros(question.numbers), NoiseBits(1, "range"), 4000)
    honest = SumRange(question)
    changed = honest.of(np.zeros(4000)).bounded(sums[:, None], honest.step)[1]
    assert 0.04 < changed.mean() <= 0.11  # a fifth less where the two rules see the same


def test_randomised_response_and_noise_on_the_sum_have_a_range_each():
    question = moment(noise="auto")
    below = float(question.response_below)
    few, many = below - 1, below
    found = SumRange(question).of(np.array([few, many]))
    assert found.norms[0] == pytest.approx(question.response().reaches(np.array([few]), 4, BEYOND)[1][0], rel=1e-5)
    deviation = question.mechanism().variance() ** 0.5
    assert many + 2 * deviation < found.norms[1] < many + 16 * deviation  # pure noise reaches far


def test_rows_that_add_longer_vectors_reach_further():
    question = row_moments()
    found = SumRange(question).of(np.array([10.0, 20.0]))
    np.testing.assert_allclose(np.diff(found.norms), 10 * question.longest, rtol=1e-5)
