"""The worst pairs of vectors in a sum: one party's ends of the ball, as its own code computes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS
from support.worst_pairs import pair_of, without_noise

from aggregator.contract.worst_case import SummedWorstCase
from aggregator.ensembles.worst_case import worst_parameters, worst_shares
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError

PUBLIC = PublicNumbers(1e-6)
ATTAINED = {
    "default": ("soft_vote", {}),
    "isotropic": ("soft_vote", {"shape": "isotropic"}),
    "probabilities": ("soft_vote", {"share": "probabilities"}),
    "scores": ("soft_vote", {"share": "scores"}),
    "raw": ("soft_vote", {"share": "raw"}),
    "ballots": ("soft_vote", {"share": "raw", "ballot": "probabilities", "decoder": "discrepancy"}),
    "unit": ("parameter_average", {}),
    "clipped": ("parameter_average", {"average": "clipped"}),
    "clip": ("parameter_average", {"average": "clipped", "clip": 3.0}),
    "plain": ("parameter_average", {"average": "plain"}),
}


@pytest.mark.parametrize("name", ATTAINED)
def test_the_sides_are_as_far_apart_as_is_charged(name):
    kind, options = ATTAINED[name]
    pair = pair_of(kind, {**options, "trust": "secure"}, PUBLIC)
    assert isinstance(pair.worst, SummedWorstCase)
    assert pair.question.contributors == len(pair.held(False)) == 3
    here, there = (without_noise(pair, 1, side)["sums"] for side in (False, True))
    assert np.linalg.norm(here - there) == pytest.approx(2 * pair.question.ball.norm, rel=1e-5)
    assert not pair.worst.loose


def test_half_of_the_shares_are_missing_in_the_twin():
    question = replace(QUESTIONS["statistic_sum"], contributors=5)
    assert [worst_shares(units).parties(question, 10) for units in (1, 2)] == [5, 2]


def test_only_one_party_changes_and_the_others_are_of_both_classes():
    worst = worst_parameters(1, clip=None)
    here, there = (worst.side(side, replace(QUESTIONS["parameter_sum"], contributors=4), 1) for side in (False, True))
    assert [one.labels[0] for one in here] == [0, 1, 0, 1]
    assert [one.labels[0] for one in there] == [1, 1, 0, 1]


def test_a_norm_that_no_minimiser_has_is_said_to_be_loose():
    assert "with two classes no data move" in worst_parameters(1, clip=1000.0).loose
    assert not worst_parameters(1, clip=50.0).loose


def test_other_questions_are_none_of_its_kind():
    worst = worst_shares(1)
    with pytest.raises(InputError, match="for sums of them"):
        worst.parties(QUESTIONS["counts"], 1)
    with pytest.raises(InputError, match="say what that is"):
        worst.statistic(QUESTIONS["statistic_sum"])
