"""What a learner of error marginals may be told."""

from __future__ import annotations

import pytest

from aggregator.learners.error_marginals.estimation import ExchangeSettings
from federation.contract.errors import InputError


@pytest.mark.parametrize(("rounds", "importance", "queries"), [(1, False, 1), (2, False, 2), (2, True, 3)])
def test_noise_is_for_every_round_and_for_the_weights(rounds, importance, queries):
    assert ExchangeSettings(rounds=rounds, importance=importance).queries == queries


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rounds": 0}, "rounds must be an integer from 1"),
        ({"rounds": True}, "rounds"),
        ({"importance": 1}, "importance must be True or False"),
        ({"memory": "cumulativ"}, "did you mean 'cumulative'"),
        ({"labels": "box"}, "labels must be one of entropy, least_squares"),
        ({"rounding": None}, "rounding must be one of"),
        ({"learner": "tree"}, "network, linear"),
        ({"hidden": ()}, "learner: linear"),
        ({"hidden": (4, 0)}, "width"),
        ({"epochs": 0}, "epochs"),
        ({"bins": 0}, "bins must be an integer from 1 to 10000, got 0"),
        ({"bins": 10**22}, "bins must be an integer from 1 to 10000, got 10{22};"),
        ({"epochs": 10**9}, "epochs must be an integer from 1 to 100000"),
        ({"rounds": 10**9}, "rounds must be an integer from 1 to 10000"),
        ({"hidden": (4, 10**9)}, "hidden, the width of a layer, must be an integer from 1 to 4096"),
        ({"guard": True, "rounds": 1}, "guard needs rounds of 2"),
    ],
)
def test_what_cannot_be_used_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        ExchangeSettings(**options)
