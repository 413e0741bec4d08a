"""The soft vote: found by its name, and options that mean nothing refused."""

import pytest

from aggregator.contract.registry import protocol, protocol_names
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from federation.contract.errors import InputError


def test_the_vote_protocols_are_found_by_name():
    assert {"soft_vote", "majority_vote"} <= set(protocol_names())
    assert protocol("soft_vote") is SoftVote


def test_an_unknown_protocol_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'soft_vote'"):
        protocol("soft_vots")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"regularisation": 0.0, "perturb": "output"}, "positive"),
        ({"regularisation": -1.0, "perturb": "output"}, "positive"),
        ({"regularisation": 1e-2}, "belongs to"),
        ({"perturb": "output", "decoder": "erm"}, "decoder belongs to perturb: statistic"),
        ({"perturb": "votes", "noise": "gaussian", "shape": "isotropic"}, "shape belongs to perturb: statistic"),
        ({"perturb": "output", "shape": "isotropic", "decoder": "erm"}, "shape and decoder belong to perturb: stat"),
        ({"decoder": "erm", "shrinkage": 0.2}, "shrinkage belongs to decoder: least_squares"),
        ({"perturb": "output", "shrinkage": 0.2}, "shrinkage belongs to decoder: least_squares"),
        ({"decoder": "erm", "safety_factor": 2.0}, "safety_factor belongs to decoder: discrepancy"),
        ({"decoder": "discrepancy", "safety_factor": 0.0}, "safety_factor must be a positive"),
        ({"decoder": "discrepancy", "regularisation": 0.1}, "regularisation belongs to"),
        ({"protect": "party_and_auxiliary_row"}, "protect belongs to perturb: output"),
        ({"perturb": "votes", "noise": "gaussian", "sensitivity": "diameter"}, "sensitivity belongs to"),
        ({"perturb": "votes"}, "needs noise: gaussian"),
        (
            {"perturb": "output", "sensitivity": "public_features", "protect": "party_and_auxiliary_row"},
            "function of the auxiliary rows",
        ),
        ({"sensitivity": "published"}, "belongs to"),
        ({"shrinkage": -0.1}, "shrinkage"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        SoftVote(**options)
