"""The majority vote: its options, and rows that are protected."""

import pytest

from aggregator.protocols.majority_vote import MajorityVote
from federation.contract.errors import InputError


def test_the_majority_vote_needs_a_positive_regularisation():
    with pytest.raises(InputError, match="regularisation"):
        MajorityVote(regularisation=0.0)


def test_the_majority_vote_refuses_a_sensitivity_computed_from_rows_it_protects():
    with pytest.raises(InputError, match="function of the auxiliary rows"):
        MajorityVote(sensitivity="public_features", protect="party_and_auxiliary_row")
