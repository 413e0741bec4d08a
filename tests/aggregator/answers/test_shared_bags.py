"""The noisy totals of bags that are the same at all parties: of all shares, and within what honest ones can have."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.questions import QUESTIONS

from aggregator.collectors.bags import SharedBags
from aggregator.collectors.robust_sums import REACH
from federation.contract.errors import FederationError, InputError
from federation.contract.query import Submission

COUNTS, ROWS = (replace(QUESTIONS[kind], contributors=2) for kind in ("count_totals", "embedding_totals"))
PLAN = SimpleNamespace(summation="", parties=4, quorum=0.9, colluding=0.1, largest_bag=50, servers="one")


def collected(question=COUNTS, plan=PLAN, parties=3, **changes):
    """With these numbers in the first place of a field at every party, and ones elsewhere."""
    arrays = {name: np.ones((parties, *field.shape)) for name, field in question.fields().items()}
    for name, first in changes.items():
        arrays[name].reshape(parties, -1)[:, 0] = first
    collector = SharedBags(question, plan)
    collector.add(Submission(question.kind, np.arange(parties), arrays, question.promise()))
    return collector


def test_totals_are_exact_and_their_noise_is_that_of_all_shares():
    step = COUNTS.mechanism().step
    found = collected(sizes=20, counts=[3 * step, 5 * step, -1 * step])
    assert found.total("sizes").tolist() == [60, 3]
    assert found.total("counts")[0, 0].tolist() == [7 * step, 3, 3]
    assert found.variance == pytest.approx(3 / 2 * COUNTS.mechanism().variance())


@pytest.mark.parametrize(
    ("question", "name", "within", "beyond"),
    [
        (COUNTS, "sizes", 50, 1e6),
        (COUNTS, "sizes", 0, -1e6),
        (COUNTS, "counts", 50, 1e6),
        (COUNTS, "counts", -1, -1e6),
        (ROWS, "sums", -50, -1e6),
        (ROWS, "sums", 50, 1e6),
    ],
)
def test_a_total_that_no_honest_parties_have_is_refused_and_a_smaller_lie_is_not(question, name, within, beyond):
    assert collected(question, **{name: within}).total(name).ravel()[0] == pytest.approx(3 * within, abs=1e-3)
    with pytest.raises(FederationError, match="beyond what honest ones can have"):
        collected(question, **{name: beyond}).total(name)


@pytest.mark.parametrize(
    ("question", "name"), [(COUNTS, "sizes"), (COUNTS, "counts"), (ROWS, "counts"), (ROWS, "sums")]
)
def test_noise_reaches_forty_deviations_beyond_what_rows_can(question, name):
    """All parties have 50 rows of a bag at most; sums go below zero as far as they go above, counts do not."""
    noise, rows = REACH * math.sqrt(collected(question).variance), 3 * 50.0
    least = -rows if name == "sums" else 0.0
    for edge, outwards in ((rows + noise, 1), (least - noise, -1)):
        collected(question, **{name: (edge - outwards) / 3}).total(name)
        with pytest.raises(FederationError, match="beyond what honest ones can have"):
            collected(question, **{name: (edge + outwards) / 3}).total(name)


def test_counts_that_might_wrap_around_are_refused_before_anybody_is_asked():
    many = SimpleNamespace(**{**vars(PLAN), "parties": 10**6, "largest_bag": 10**9})
    with pytest.raises(InputError, match="does not fit into 64 bits"):
        SharedBags(COUNTS, many)


def test_a_weighted_count_reaches_as_far_as_its_weight_says():
    heavy = replace(ROWS, label_weight=100.0)
    assert collected(heavy, counts=4000.0).total("counts").ravel()[0] == pytest.approx(12_000, abs=1)
    with pytest.raises(FederationError, match="beyond what honest ones can have"):
        collected(ROWS, counts=4000.0).total("counts")
