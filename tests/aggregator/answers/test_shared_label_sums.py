"""The noisy X'y over parties that share its noise, and what each says openly of its rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.two_class_cohorts import cohort
from support.two_class_questions import row_moments

from aggregator.collectors.row_sums import SharedLabelSums
from parties.guard.answering import answered

PLAN = SimpleNamespace(summation="", parties=6, quorum=0.9, colluding=0.1, servers="one")
QUESTION = row_moments(contributors=4, second=False, protect="label")


def collected(change=None):
    collector, sent = SharedLabelSums(QUESTION, PLAN), answered(cohort(count=3), QUESTION)
    if change is not None:
        change(sent.arrays)
    return collector, collector.add(sent), sent


def test_open_sums_and_shares_are_added():
    collector, refused, sent = collected()
    assert refused == {}
    for name in ("gram", "row_sum", "weight", "size", "sums"):
        np.testing.assert_array_equal(collector.total(name), sent.arrays[name].sum(axis=0))
    assert 0 < collector.weight <= collector.rows
    assert collector.answered == 2  # one of three has texts for labels
    assert collector.summed_variance == pytest.approx(2 / 4 * QUESTION.mechanism().variance())


def lopsided(arrays):
    arrays["gram"][1, 0, 1] += 1.0


def indefinite(arrays):
    arrays["gram"][1] = -arrays["gram"][1]


def heavy(arrays):
    arrays["weight"][1] = arrays["size"][1] + 1


def long(arrays):
    arrays["row_sum"][1] = arrays["size"][1]


@pytest.mark.parametrize("change", [lopsided, indefinite, heavy, long])
def test_what_no_rows_can_say_is_refused(change):
    _, refused, sent = collected(change)
    assert list(refused) == [sent.parties[1]]
