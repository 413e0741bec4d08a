"""The soft vote: options that mean nothing are refused, and what parties send by default."""

import pytest

from aggregator.protocols.soft_vote.soft_vote import SoftVote
from federation.contract.errors import InputError

BOTH = {"protect": "party_and_auxiliary_row"}


@pytest.mark.parametrize(("options", "words"), [
    ({"regularisation": 0.0, "perturb": "output"}, "positive"),
    ({"regularisation": -1.0, "perturb": "output"}, "positive"), ({"regularisation": 1e-2}, None),
    ({"perturb": "output", "decoder": "erm"}, r"perturb.*statistic"),
    ({"perturb": "votes", "noise": "gaussian", "shape": "isotropic"}, r"perturb.*statistic"),
    ({"perturb": "output", "shape": "isotropic", "decoder": "erm"}, None),
    ({"submit": "votes", "regularisation": 0.1}, "regularisation"), (BOTH, r"perturb.*output"),
    ({"perturb": "votes", "noise": "gaussian", "sensitivity": "diameter"}, None),
    ({"perturb": "votes"}, r"noise.*gaussian"), ({"perturb": "output", "sensitivity": "public_features", **BOTH}, None),
    ({"sensitivity": "published"}, None), ({"decoder": "erm"}, r"share.*raw"),
    ({"ballot": "probabilities"}, r"share.*raw"), ({"submit": "votes", "share": "scores"}, r"submit.*statistic"),
    ({"perturb": "output", "share": "probabilities"}, r"submit.*statistic"),
    ({"share": "raw", "student": False}, r"share.*both"),
])  # fmt: skip
def test_options_that_mean_nothing_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        SoftVote(**options)


@pytest.mark.parametrize(("options", "shares", "unit"), [
    ({}, True, True), ({"share": "scores"}, True, True), ({"share": "raw"}, True, False),
    # Votes are raw shares by another name.
    ({"submit": "votes"}, False, False), ({"submit": "votes", "share": "raw"}, False, False),
    ({"perturb": "output"}, False, False),
])  # fmt: skip
def test_parties_send_shares_of_norm_one_by_default(options, shares, unit):
    assert (SoftVote(**options).by_shares, SoftVote(**options).unit_shares) == (shares, unit)
