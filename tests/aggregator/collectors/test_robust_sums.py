"""Answers kept until all have come: what is added to their sum, in any order, and where nothing is kept.

What honest answers reach: held against draws of the noise itself, and kept by whatever is sent. What is clipped among
answers, and what is left alone: noise, and parties that differ.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.two_class_questions import moment, row_moments

from aggregator.collectors import robust_sums
from aggregator.collectors.robust_sums import Changes, GatedSum, _median, gated
from federation.contract.honest import BEYOND, Range
from federation.contract.randomness import NoiseBits
from federation.queries import row_sums as honest_range
from federation.queries.row_sums import HonestSums

PARTIES, DRAWS, WIDTH = 40, 2, 6


def answers(shift=0.0):
    sent = np.random.default_rng(3).normal(size=(PARTIES, DRAWS, WIDTH))
    sent[7, 1, 2] += shift
    return sent


def kept(sent, parts, **fields):
    gate = GatedSum(**{"parties": PARTIES, "draws": DRAWS, "width": WIDTH, **fields})
    for part in parts:
        gate.keep(part, sent[part], np.full(len(part), 10.0))
    return gate


def test_only_the_draw_and_the_party_that_stand_out_are_corrected_and_alike_ones_differ_by_chance():
    sent, order = answers(50.0), np.random.default_rng(1).permutation(PARTIES)
    moved, clipped = kept(sent, [np.arange(PARTIES)]).correction(1.0, 1.0, alike=False)
    assert 7 in clipped
    assert len(clipped) < PARTIES / 2
    assert not moved[0].any()
    assert -50 < moved[1, 2] < -45
    parts = kept(sent, np.split(order, [3, 20])).correction(1.0, 1.0, alike=False)
    for one, other in zip((moved, clipped), parts, strict=True):
        np.testing.assert_array_equal(one, other)
    few = kept(sent, [np.arange(4, 11)])  # too few of many that answer are summed as they come
    assert few.kept
    assert not few.correction(1.0, 1.0, alike=False)[0].any()
    # Noise of .1 and sums over 10 rows: a spread of sqrt 3 is chance, and a tenth of the parties far beyond is not.
    sent = 1.7 * answers()
    gate = kept(sent, [np.arange(PARTIES)])
    assert not len(gate.correction(0.01, 1.0, alike=False)[1])  # so different that nothing can be told
    assert not len(gate.correction(0.01, 1.0, alike=True)[1])
    sent[:4, :, 0] += 15
    gate = kept(sent, [np.arange(PARTIES)])
    assert not len(gate.correction(0.01, 1.0, alike=False)[1])
    assert {0, 1, 2, 3} <= {*gate.correction(0.01, 1.0, alike=True)[1].tolist()}


@pytest.mark.parametrize(
    ("fields", "limits"),
    [({"parties": 7}, {}), ({}, {"MOST_NUMBERS": 479}), ({}, {"MOST_DIRECTIONS": 5})],
    ids=["few parties", "many numbers", "many directions"],
)
def test_nothing_is_kept_beyond_public_limits(fields, limits, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(robust_sums, name, value)
    gate = kept(answers(50.0), [np.arange(fields.get("parties", PARTIES))], **fields)
    assert not gate.kept
    moved, clipped = gate.correction(1.0, 1.0, alike=False)
    assert not moved.any()
    assert not len(clipped)


def test_changes_add_up_over_questions_and_what_is_scaled_keeps_its_direction():
    assert Changes.of([]) == ()
    [told] = Changes.of([Changes(9, 1, 2), None, Changes(8, 3, 4)])
    assert told.startswith("of 17 answers 4 scaled")
    assert "6 clipped" in told
    honest = Range(np.array([100.0]), np.array([10.0]))
    kept, changed = honest.bounded(np.array([[[30.0, -40.0]]]), 0.25)
    np.testing.assert_array_equal(kept, [[[6.0, -8.0]]])
    assert changed.all()
    kept, _ = honest.bounded(np.array([[[1e3, 1.0]]]), 0.25)
    np.testing.assert_array_equal(kept, [[[9.75, 0.0]]])  # cut to 100 first, then scaled, then towards zero


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
    honest = HonestSums(question)
    kept, changed = honest.range_of(np.array([float(rows)])).bounded(sums[None], honest.step)
    np.testing.assert_array_equal(kept[0], sums)
    assert not changed.any()


@pytest.mark.parametrize("noise", ["gaussian", "pure", "laplace"])
def test_as_many_honest_answers_are_changed_as_may_be_and_no_more(noise, monkeypatch):
    """With a probability that can be seen: without rows a tenth at most, and not far from that."""
    monkeypatch.setattr(honest_range, "BEYOND", 0.1)
    question = moment(noise=noise)
    sums = question.mechanism().release(np.zeros(question.numbers), NoiseBits(1, "range"), 4000)
    honest = HonestSums(question)
    changed = honest.range_of(np.zeros(4000)).bounded(sums[:, None], honest.step)[1]
    assert 0.04 < changed.mean() <= 0.11  # a fifth less where the two rules see the same


def test_randomised_response_and_noise_on_the_sum_have_a_range_each_and_longer_vectors_reach_further():
    question = moment(noise="auto")
    below = float(question.response_below)
    few, many = below - 1, below
    found = HonestSums(question).range_of(np.array([few, many]))
    assert found.norms[0] == pytest.approx(question.response().reaches(np.array([few]), 4, BEYOND)[1][0], rel=1e-5)
    deviation = question.mechanism().variance() ** 0.5
    assert many + 2 * deviation < found.norms[1] < many + 16 * deviation  # pure noise reaches far
    question = row_moments()
    found = HonestSums(question).range_of(np.array([10.0, 20.0]))
    np.testing.assert_allclose(np.diff(found.norms), 10 * question.longest, rtol=1e-5)


MANY, WIDE = 100, 20
HARM = np.eye(1, WIDE)[0]


def noise(key=0, parties=MANY, width=WIDE):
    return np.random.default_rng(key).normal(size=(parties, width))


def test_noise_is_left_alone_and_parties_that_differ_by_more_keep_their_answers():
    clipped = 0
    for key in range(40):
        weights = np.random.default_rng(key).uniform(0.5, 1.5, MANY)
        signal = 5 * np.random.default_rng(-key % 97).normal(size=WIDE)
        sent = weights[:, None] * signal + noise(key)
        found, changed = gated(sent, weights, 1.0)
        np.testing.assert_array_equal(found[~changed], sent[~changed])
        clipped += changed.sum()
    assert clipped <= 0.01 * 40 * MANY
    sent = noise() + np.outer(np.linspace(-10, 10, MANY), HARM)
    found, changed = gated(sent, np.ones(MANY), 1.0)
    assert not changed.any()
    np.testing.assert_array_equal(found, sent)
    # Declared to be alike, their spread is chance, which the variance then has in it.
    assert gated(0.1 * sent, np.ones(MANY), 0.01 + 0.36)[1].sum() == 0
    sent = noise() + np.outer(np.linspace(-10, 10, MANY), HARM)
    other, hostile = np.eye(2, WIDE)[1], np.random.default_rng(1).permutation(MANY)[:8]
    sent[hostile] += 12 * other
    found, changed = gated(sent, np.ones(MANY), 1.0)
    assert changed[hostile].all()
    shift = found.sum(axis=0) - sent.sum(axis=0)
    assert shift @ other < -60
    assert abs(shift @ HARM) < 15


@pytest.mark.parametrize("hostile", [1, 10])
def test_a_shift_of_the_sum_is_less_than_a_few_deviations_for_each_hostile_party(hostile):
    sent = noise()
    sent[:hostile] += 25 * HARM
    found, changed = gated(sent, np.ones(MANY), 1.0)
    assert changed[:hostile].all()
    before, after = (sent.sum(axis=0) - noise().sum(axis=0), found.sum(axis=0) - noise().sum(axis=0))
    assert before @ HARM == pytest.approx(25 * hostile)
    assert abs(after @ HARM) < 2.5 * hostile + 3
    assert np.linalg.norm(after - (after @ HARM) * HARM) < 2.5 * hostile + 3


@pytest.mark.parametrize("sizes", [[1] * 98 + [1000] * 2, [5] * 19 + [5000], [1] * 100 + [1000] * 5])
@pytest.mark.parametrize("differ", [0.0, 1e-2])
def test_large_parties_beside_small_ones_keep_their_answers(sizes, differ):
    """What many small parties say is noise, of which nothing about large ones follows."""
    rows = np.array(sizes, dtype=float)
    weights = rows / rows.mean()
    for key in range(5):
        random = np.random.default_rng(key)
        signal = random.normal(size=WIDE) + differ * random.normal(size=(len(rows), WIDE))
        sent = rows[:, None] * signal + noise(key, len(rows))
        found, changed = gated(sent, weights, 1.0)
        assert not changed[rows > 100].any()
        np.testing.assert_allclose(found.sum(axis=0), sent.sum(axis=0), atol=5)


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
