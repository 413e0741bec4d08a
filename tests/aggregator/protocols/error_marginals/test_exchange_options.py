"""Options of `error_marginals`: which go together, and what the learner and the parties are told."""

from __future__ import annotations

import pytest

from aggregator.protocols.error_marginals.exchange_options import ExchangeOptions
from federation.contract.errors import InputError


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rounds": 0}, "rounds"),
        ({"noise": "published"}, "protect: label"),
        ({"protect": "label", "adjacency": "replace"}, "protect: row"),
        ({"learner": "linear", "hidden": (3,)}, "learner: network"),
        ({"hidden": ()}, "hidden"),
        ({"epochs": 0}, "epochs"),
        ({"learner": "linear", "epochs": 3}, "learner: network"),
        ({"bins": 0}, "bins"),
        ({"adjacency": "replace", "expected_rows": 100}, "add_remove"),
        ({"expected_rows": 0}, "expected_rows"),
        ({"expected_rows": 10**22}, "expected_rows must be a whole number from 1 to 1000000000, got 10{22}"),
        ({"guard": True, "rounds": 1}, "guard"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        ExchangeOptions(**options)
