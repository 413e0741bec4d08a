"""The worst pair of neighbours of X'X and X'y: as far apart as the sensitivity says, and both moments are asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_questions import moment
from support.worst_pairs import pair_of, without_noise

from aggregator.regressions.worst_case import worst_rows
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.mechanisms.sums.row_sums import SENSITIVITY

PUBLIC = PublicNumbers(0.01, label_range=(-3.0, 7.0))


@pytest.mark.parametrize("units", [1, 2])
def test_one_row_that_turns_moves_the_sums_by_their_sensitivity(units):
    pair = pair_of("label_sums", {"protect": "row"}, PUBLIC, units)
    assert pair.question.second
    here, there = (without_noise(pair, 1, side)["sums"][0] for side in (False, True))
    reached = np.linalg.norm(here - there)
    assert reached == pytest.approx(units * SENSITIVITY, rel=1e-5)
    assert reached <= units * SENSITIVITY * (1 + 1e-7)  # without noise sums are rounded


def test_neighbours_differ_in_one_row():
    pair = pair_of("label_sums", {"protect": "row"}, PUBLIC)
    [here], [there] = pair.held(False), pair.held(True)
    assert ((here.rows != there.rows).any(axis=1) | (here.labels != there.labels)).sum() == 1


def test_of_shares_what_is_seen_is_the_sum_of_as_many_as_hide_a_row():
    whole, half = (pair_of("label_sums", {"protect": "row", "trust": "secure"}, PUBLIC, units) for units in (1, 2))
    assert [len(pair.held(False)) for pair in (whole, half)] == [3, 1]
    assert whole.question.contributors == 3  # of a quorum of 4, one of whom may collude
    assert whole.seen(False, "shares", 3)["sums"].shape == (3, 6)


def test_what_parties_answer_may_be_known():
    pair = pair_of("label_sums", {"protect": "row"}, PUBLIC)
    known = pair.worst.knowing(lambda there: {"sums": np.full((1, 6), float(there))})
    ratio = known.statistic(pair.question)
    assert ratio({"sums": np.array([[1.0] * 6, [0.0] * 6])}).tolist() == [-6.0, 6.0]


def test_it_is_for_no_other_question():
    with pytest.raises(InputError, match="got 'mean_operator'"):
        replace(worst_rows(1, PUBLIC, shared=False)).statistic(moment())
