"""The soft vote: found by its name, and options that mean nothing refused."""

import pytest

from aggregator.contract.registry import protocol, protocol_names
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from federation.contract.errors import InputError


def test_the_vote_protocols_are_found_by_name():
    assert {"soft_vote", "majority_vote"} <= set(protocol_names())
    assert protocol("soft_vote") is SoftVote


def test_an_unknown_protocol_names_the_nearest():
    with pytest.raises(InputError, match="soft_vote"):
        protocol("soft_vots")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"regularisation": 0.0, "perturb": "output"}, "positive"),
        ({"regularisation": -1.0, "perturb": "output"}, "positive"),
        ({"regularisation": 1e-2}, None),
        ({"perturb": "output", "decoder": "erm"}, r"perturb.*statistic"),
        ({"perturb": "votes", "noise": "gaussian", "shape": "isotropic"}, r"perturb.*statistic"),
        ({"perturb": "output", "shape": "isotropic", "decoder": "erm"}, None),
        ({"submit": "votes", "regularisation": 0.1}, "regularisation"),
        ({"protect": "party_and_auxiliary_row"}, r"perturb.*output"),
        ({"perturb": "votes", "noise": "gaussian", "sensitivity": "diameter"}, None),
        ({"perturb": "votes"}, r"noise.*gaussian"),
        (
            {"perturb": "output", "sensitivity": "public_features", "protect": "party_and_auxiliary_row"},
            None,
        ),
        ({"sensitivity": "published"}, None),
        ({"decoder": "erm"}, r"share.*raw"),
        ({"ballot": "probabilities"}, r"share.*raw"),
        ({"submit": "votes", "share": "scores"}, r"submit.*statistic"),
        ({"perturb": "output", "share": "probabilities"}, r"submit.*statistic"),
        ({"share": "raw", "student": False}, r"share.*both"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        SoftVote(**options)


@pytest.mark.parametrize("options", [{"submit": "votes"}, {"submit": "votes", "share": "raw"}, {"perturb": "output"}])
def test_votes_are_raw_shares_by_another_name(options):
    chosen = SoftVote(**options)
    assert not chosen.by_shares
    assert not chosen.unit_shares


@pytest.mark.parametrize(("options", "unit"), [({}, True), ({"share": "scores"}, True), ({"share": "raw"}, False)])
def test_parties_send_shares_of_norm_one_by_default(options, unit):
    assert SoftVote(**options).by_shares
    assert SoftVote(**options).unit_shares is unit
