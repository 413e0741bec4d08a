import numpy as np
import pytest

from aggregator.audits.worst_case import PARTIES, neighbours
from aggregator.majority_vote import MajorityVote
from aggregator.soft_vote import SoftVote

BOTH = "party_and_auxiliary_row"

ATTAINED = {
    "default": SoftVote(),
    "isotropic": SoftVote(shape="isotropic"),
    "discrepancy": SoftVote(decoder="discrepancy"),
    "noisy votes": SoftVote(perturb="votes", noise="gaussian"),
    "tight": SoftVote(perturb="output", regularisation=1000.0),
    "public features": SoftVote(perturb="output", sensitivity="public_features", regularisation=1000.0),
    "majority public features": MajorityVote(sensitivity="public_features", regularisation=1000.0),
    "majority diameter": MajorityVote(),
    "majority diameter, strong": MajorityVote(regularisation=5.0),
    "majority public features, diameter": MajorityVote(sensitivity="public_features"),
    "row too": SoftVote(perturb="output", protect=BOTH, regularisation=1000.0),
    "row too, majority": MajorityVote(protect=BOTH, regularisation=1000.0),
}


@pytest.mark.parametrize("name", ATTAINED)
def test_the_pair_is_as_far_apart_as_the_sensitivity_that_is_charged(name):
    chosen = ATTAINED[name]
    before, after = (chosen.prepare(side) for side in neighbours(chosen))
    distance = np.linalg.norm(before.value - after.value)
    assert before.sensitivity == after.sensitivity
    assert 0.98 * before.sensitivity < distance <= before.sensitivity


@pytest.mark.parametrize("chosen", [SoftVote(), SoftVote(perturb="output"), MajorityVote()])
def test_one_party_changes_and_tips_every_majority(chosen):
    before, after = neighbours(chosen)
    assert (np.abs(before.tally.counts - after.tally.counts) == 1).all()
    assert (before.tally.majority() != after.tally.majority()).all()
    assert before.answered == after.answered == PARTIES
    np.testing.assert_array_equal(before.public.rows, after.public.rows)


def test_with_a_protected_row_one_row_changes_and_no_more_than_all_votes_on_it():
    before, after = neighbours(SoftVote(perturb="output", protect=BOTH))
    assert (before.public.rows != after.public.rows).all(axis=1).sum() == 1
    for side in (before, after):
        side.public.require_unfitted()
