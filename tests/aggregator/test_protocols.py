import pytest

from aggregator.majority_vote import MajorityVote
from aggregator.soft_vote import SoftVote
from federation.errors import InputError
from federation.registry import protocol, protocol_names


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
        ({"perturb": "output", "decoder": "erm"}, "belong to"),
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
