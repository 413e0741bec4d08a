"""Answers kept until all have come: what is added to their sum, in any order, and where nothing is kept."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.collectors import robust_sums
from aggregator.collectors.robust_sums import Changes, GatedSum

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


def test_only_the_draw_and_the_party_that_stand_out_are_corrected():
    sent = answers(50.0)
    moved, clipped = kept(sent, [np.arange(PARTIES)]).correction(1.0, 1.0, alike=False)
    assert 7 in clipped
    assert len(clipped) < PARTIES / 2
    assert not moved[0].any()
    assert -50 < moved[1, 2] < -45


def test_the_order_and_cohorts_of_answers_do_not_matter():
    sent, order = answers(50.0), np.random.default_rng(1).permutation(PARTIES)
    whole = kept(sent, [np.arange(PARTIES)]).correction(1.0, 1.0, alike=False)
    parts = kept(sent, np.split(order, [3, 20])).correction(1.0, 1.0, alike=False)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_alike_parties_differ_by_the_chance_of_their_rows_too():
    """Noise of .1 and sums over 10 rows: a spread of sqrt 3 is chance, and a tenth of the parties far beyond is not."""
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


def test_too_few_of_many_that_answer_are_summed_as_they_come():
    gate = kept(answers(50.0), [np.arange(4, 11)])
    assert gate.kept
    assert not gate.correction(1.0, 1.0, alike=False)[0].any()


def test_changes_add_up_over_questions():
    assert Changes.of([]) == ()
    [told] = Changes.of([Changes(9, 1, 2), None, Changes(8, 3, 4)])
    assert told.startswith("of 17 answers 4 scaled")
    assert "6 clipped" in told
