"""What is clipped among answers, and what is left alone: noise, and parties that differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.collectors.robust_sums import _median, gated

PARTIES, WIDTH = 100, 20
HARM = np.eye(1, WIDTH)[0]


def noise(key=0, parties=PARTIES, width=WIDTH):
    return np.random.default_rng(key).normal(size=(parties, width))


def test_noise_is_left_alone_whatever_it_is_added_to():
    clipped = 0
    for key in range(40):
        weights = np.random.default_rng(key).uniform(0.5, 1.5, PARTIES)
        signal = 5 * np.random.default_rng(-key % 97).normal(size=WIDTH)
        sent = weights[:, None] * signal + noise(key)
        found, changed = gated(sent, weights, 1.0)
        np.testing.assert_array_equal(found[~changed], sent[~changed])
        clipped += changed.sum()
    assert clipped <= 0.01 * 40 * PARTIES


@pytest.mark.parametrize("hostile", [1, 10])
def test_a_shift_of_the_sum_is_less_than_a_few_deviations_for_each_hostile_party(hostile):
    sent = noise()
    sent[:hostile] += 25 * HARM
    found, changed = gated(sent, np.ones(PARTIES), 1.0)
    assert changed[:hostile].all()
    before, after = (sent.sum(axis=0) - noise().sum(axis=0), found.sum(axis=0) - noise().sum(axis=0))
    assert before @ HARM == pytest.approx(25 * hostile)
    assert abs(after @ HARM) < 2.5 * hostile + 3
    assert np.linalg.norm(after - (after @ HARM) * HARM) < 2.5 * hostile + 3


def test_parties_that_differ_by_more_than_noise_keep_their_answers():
    sent = noise() + np.outer(np.linspace(-10, 10, PARTIES), HARM)
    found, changed = gated(sent, np.ones(PARTIES), 1.0)
    assert not changed.any()
    np.testing.assert_array_equal(found, sent)
    # Declared to be alike, their spread is chance, which the variance then has in it.
    assert gated(0.1 * sent, np.ones(PARTIES), 0.01 + 0.36)[1].sum() == 0


@pytest.mark.parametrize("sizes", [[1] * 98 + [1000] * 2, [5] * 19 + [5000], [1] * 100 + [1000] * 5])
@pytest.mark.parametrize("differ", [0.0, 1e-2])
def test_large_parties_beside_small_ones_keep_their_answers(sizes, differ):
    """What many small parties say is noise, of which nothing about large ones follows."""
    rows = np.array(sizes, dtype=float)
    weights = rows / rows.mean()
    for key in range(5):
        random = np.random.default_rng(key)
        signal = random.normal(size=WIDTH) + differ * random.normal(size=(len(rows), WIDTH))
        sent = rows[:, None] * signal + noise(key, len(rows))
        found, changed = gated(sent, weights, 1.0)
        assert not changed[rows > 100].any()
        np.testing.assert_allclose(found.sum(axis=0), sent.sum(axis=0), atol=5)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_the_centre_has_least_weighted_deviations(key, parties):
    random = np.random.default_rng(key)
    ratios, weights = random.normal(size=(parties, 3)), random.integers(1, 4, parties).astype(float)
    found = _median(ratios, weights)

    def deviations(centre):
        return (weights[:, None] * np.abs(ratios - centre)).sum(axis=0)

    for ratio in ratios:
        assert (deviations(found) <= deviations(ratio) + 1e-9).all()
    np.testing.assert_allclose(_median(ratios, np.ones(parties)), np.median(ratios, axis=0))


def test_a_direction_in_which_parties_differ_hides_no_other():
    sent = noise() + np.outer(np.linspace(-10, 10, PARTIES), HARM)
    other, hostile = np.eye(2, WIDTH)[1], np.random.default_rng(1).permutation(PARTIES)[:8]
    sent[hostile] += 12 * other
    found, changed = gated(sent, np.ones(PARTIES), 1.0)
    assert changed[hostile].all()
    shift = found.sum(axis=0) - sent.sum(axis=0)
    assert shift @ other < -60
    assert abs(shift @ HARM) < 15


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(8, 30), st.integers(1, 12), st.floats(0.0, 1e6))
def test_no_score_moves_further_than_it_was_and_order_and_units_do_not_matter(key, parties, width, size):
    random = np.random.default_rng(key)
    sent = random.normal(size=(parties, width))
    sent[0] += size
    found, changed = gated(sent, np.ones(parties), 1.0)
    assert np.isfinite(found).all()
    centre = np.median(sent, axis=0)
    assert (np.linalg.norm(found - centre, axis=1) <= np.linalg.norm(sent - centre, axis=1) * (1 + 1e-9) + 1e-9).all()
    order = random.permutation(parties)
    other, moved = gated(4 * sent[order], np.ones(parties), 16.0)
    np.testing.assert_array_equal(moved, changed[order])
    np.testing.assert_allclose(other / 4, found[order], rtol=1e-6, atol=1e-6 * (1 + size))
