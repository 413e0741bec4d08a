"""Options of `error_marginals`: which go together, and what the learner and the parties are told."""

import pytest

from aggregator.protocols.error_marginals.options import ExchangeOptions
from federation.contract.errors import InputError


@pytest.mark.parametrize(("options", "text"), [
    ({"rounds": 0}, "rounds"), ({"noise": "published"}, "protect: label"),
    ({"protect": "label", "adjacency": "replace"}, "protect: row"),
    ({"learner": "linear", "hidden": (3,)}, "learner: network"),
    ({"learner": "linear", "epochs": 3}, "learner: network"),
    ({"adjacency": "replace", "expected_rows": 100}, "add_remove"), ({"expected_rows": 0}, "expected_rows"),
    ({"expected_rows": 10**22}, r"expected_rows.*1.*1000000000.*1"), ({"guard": True, "rounds": 1}, "guard"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        ExchangeOptions(**options)


@pytest.mark.parametrize(("options", "neighbours", "noisy"), [
    ({}, "add_remove", True), ({"adjacency": "replace"}, "replace", None), ({"protect": "label"}, "replace", False),
    ({"noise": "off"}, None, False),
])  # fmt: skip
def test_a_label_is_always_replaced_and_numbers_of_rows_are_noisy_where_a_row_is_hidden(options, neighbours, noisy):
    found = ExchangeOptions(hidden=[8, 4], **options)
    assert found == ExchangeOptions(hidden=(8, 4), **options)
    assert neighbours is None or found.neighbours == neighbours
    assert noisy is None or found.settings(False).noisy_totals == noisy


@pytest.mark.parametrize(
    ("importance", "shifted", "asked"),
    [
        ("auto", True, True), ("auto", False, False), ("always", False, True), ("always", True, True),
        ("never", True, False), ("never", False, False),
    ],
)  # fmt: skip
def test_weights_are_asked_for_where_the_source_is_drawn_otherwise(importance, shifted, asked):
    settings = ExchangeOptions(importance=importance).settings(shifted)
    assert settings.importance == asked
    assert settings.queries == 2 + asked


@pytest.mark.parametrize(("noise", "delta"), [("auto", 1e-6), ("gaussian", 1e-6), ("pure", 0.0), ("off", 0.0)])
def test_only_noise_that_may_be_gaussian_is_given_delta(noise, delta):
    assert ExchangeOptions(noise=noise).noise_of(1.0, 1e-6).delta == delta
