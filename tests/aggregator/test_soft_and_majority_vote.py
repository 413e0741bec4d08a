import numpy as np
import pytest

from aggregator.contract.registry import protocol, protocol_names
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.world.fitting import fit
from aggregator.world.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.questions.votes import Training


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


def test_the_majority_vote_needs_a_positive_regularisation():
    with pytest.raises(InputError, match="regularisation"):
        MajorityVote(regularisation=0.0)


def test_the_majority_vote_refuses_a_sensitivity_computed_from_rows_it_protects():
    with pytest.raises(InputError, match="function of the auxiliary rows"):
        MajorityVote(sensitivity="public_features", protect="party_and_auxiliary_row")


@pytest.mark.parametrize("kind", [SoftVote, MajorityVote])
def test_nobody_is_asked_when_a_protected_row_was_fitted_on(kind):
    chosen = kind(perturb="output", protect="party_and_auxiliary_row")
    rows = np.eye(3)
    feature_map = fit([{"whiten": 2}, "unit_norm"], rows)
    public = PublicRows(feature_map, feature_map.transform(rows), [{"whiten": 2}, "unit_norm"])
    with pytest.raises(InputError, match="whiten would be fitted on the auxiliary rows"):
        chosen.question(public, Training(feature_map, 2, {}, 0))
