"""What honest counts of an exchange with noise reach: against draws, and what is left of others."""

from __future__ import annotations

import numpy as np
import pytest
from support.two_class_questions import marginals

from aggregator.collectors import marginals as marginal_range
from aggregator.collectors.marginals import MarginalAnswers, MarginalRange
from aggregator.collectors.robust_sums import Robustness
from federation.contract.query import Submission
from federation.contract.randomness import NoiseBits

MOST, PARTIES, BINS = 60, 30, 15
QUESTIONS = {
    "row": marginals("gaussian"),
    "pure": marginals("pure"),
    "quiet": marginals("gaussian", epsilon=200.0),
    "rows of rows": marginals("pure", asks="rows"),
    "label": marginals("pure", "label", "replace"),
    "gaussian label": marginals("gaussian", "label", "replace"),
    "rows of labels": marginals("pure", "label", "replace", asks="rows"),
}


def extreme(question, draws, wrong=True, noisy=True):
    """Answers of a party all of whose rows are in the first bins, and in error or not."""
    rows = np.zeros((draws, BINS), dtype=np.int64)
    rows[:, ::5] = MOST
    errors, bits = rows if wrong else np.zeros_like(rows), NoiseBits(1, "marginals")
    noise = question.mechanism()
    hidden = (lambda counts: noise.release(counts, bits)) if noisy else (lambda counts: counts)
    if question.protect == "label":
        return {"rows": 1.0 * rows, **({"errors": 1.0 * hidden(errors)} if question.asks == "errors" else {})}
    if question.asks == "rows":
        return {"rows": 1.0 * hidden(rows)}
    said = hidden(errors)
    return {"errors": 1.0 * said, "rows": 1.0 * (said + hidden(rows - errors))}


@pytest.mark.parametrize("wrong", [True, False])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_honest_answer_is_changed(name, wrong):
    question = QUESTIONS[name]
    sent = extreme(question, 4000, wrong)
    honest = MarginalRange(question, MOST)
    parts, changed, _ = honest.bounded(sent)
    assert not changed.any()
    for field, array in honest.arrays(parts).items():
        np.testing.assert_array_equal(array, sent[field])


@pytest.mark.parametrize("name", ["row", "pure", "label"])
def test_honest_answers_are_changed_as_often_as_may_be_at_most(name, monkeypatch):
    monkeypatch.setattr(marginal_range, "BEYOND", 0.2)
    nothing = {field: np.zeros_like(array) for field, array in extreme(QUESTIONS[name], 1, noisy=False).items()}
    noise = QUESTIONS[name].mechanism()
    drawn = noise.release(np.zeros((2, 3000, BINS), dtype=np.int64), NoiseBits(2, "marginals"))
    sent = {
        "errors": nothing["errors"] + drawn[0],
        "rows": nothing["rows"] + (drawn.sum(axis=0) if name != "label" else 0),
    }
    changed = MarginalRange(QUESTIONS[name], 0).bounded(sent)[1]
    assert 0.05 < changed.mean() <= 0.22


@pytest.mark.parametrize("name", ["row", "pure", "gaussian label"])
def test_a_long_answer_is_scaled_around_half_the_rows(name):
    question = QUESTIONS[name]
    honest, sent = MarginalRange(question, MOST), extreme(question, 1, noisy=False)
    far = {**sent, "errors": sent["rows"] / 2 + 35 * question.mechanism().deviation * np.sign(np.arange(BINS) - 7.5)}
    parts, changed, _ = honest.bounded(far)
    assert changed.all()
    found = {**far, **honest.arrays(parts)}
    before, after = (one["errors"] - one["rows"] / 2 for one in (far, found))
    assert np.linalg.norm(after) < 0.4 * np.linalg.norm(before)
    np.testing.assert_allclose(after / np.linalg.norm(after), before / np.linalg.norm(before), atol=0.05)
    assert (4 * found["errors"] == np.floor(4 * found["errors"])).all()  # quarters, which add up exactly
    assert not honest.bounded(found)[1].any()


@pytest.mark.parametrize("name", ["row", "gaussian label"])
def test_one_of_many_moves_no_sum_far_and_as_they_come_it_does(name):
    question = QUESTIONS[name]
    honest = extreme(question, PARTIES)
    hostile = {field: array.copy() for field, array in honest.items()}
    hostile["errors"][3] = np.rint(hostile["rows"][3] / 2 - 35 * question.mechanism().deviation)
    totals = {}
    for bounded in (True, False):
        for kind, sent in (("honest", honest), ("hostile", hostile)):
            answers = MarginalAnswers(question, PARTIES, MOST, question.promise(), Robustness(bounded))
            assert answers.add(Submission(question.kind, np.arange(PARTIES), sent, question.promise())) == {}
            totals[bounded, kind] = answers.errors - answers.rows / 2
            told = answers.changes
            assert (told is None) == (not bounded)
    assert told is None
    moved = {
        bounded: np.linalg.norm(totals[bounded, "hostile"] - totals[bounded, "honest"]) for bounded in (True, False)
    }
    assert moved[True] < 0.35 * moved[False]
    np.testing.assert_array_equal(totals[True, "honest"], totals[False, "honest"])


def test_sums_do_not_depend_on_cohorts_and_rates_and_exact_answers_are_not_touched():
    question = QUESTIONS["row"]
    sent = extreme(question, PARTIES)
    sent["errors"][5] -= 3000.0 * np.sign(np.arange(BINS) - 7.5)
    sent["errors"][5] = np.clip(sent["errors"][5], -35 * question.mechanism().deviation, None).round()
    whole, parts = (MarginalAnswers(question, PARTIES, MOST, question.promise()) for _ in range(2))
    promise = question.promise()
    whole.add(Submission(question.kind, np.arange(PARTIES), sent, promise))
    for some in (np.arange(20, 30), np.arange(20)):
        parts.add(Submission(question.kind, some, {name: array[some] for name, array in sent.items()}, promise))
    np.testing.assert_array_equal(whole.errors, parts.errors)
    np.testing.assert_array_equal(whole.rows, parts.rows)
    for kind in ("off", "published"):
        other = marginals(kind, "label", "replace")
        assert MarginalAnswers(other, PARTIES, MOST, None).changes is None
