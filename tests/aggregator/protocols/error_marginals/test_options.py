"""Options of `error_marginals`: which go together, and what the learner and the parties are told."""

from __future__ import annotations

import pytest

from aggregator.protocols.error_marginals.options import ExchangeOptions
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
        ({"expected_rows": 10**22}, r"expected_rows.*1.*1000000000.*1"),
        ({"guard": True, "rounds": 1}, "guard"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        ExchangeOptions(**options)


def test_a_list_of_widths_is_a_tuple_of_them():
    assert ExchangeOptions(hidden=[8, 4]) == ExchangeOptions(hidden=(8, 4))


@pytest.mark.parametrize(
    ("options", "neighbours"),
    [({}, "add_remove"), ({"adjacency": "replace"}, "replace"), ({"protect": "label"}, "replace")],
)
def test_a_label_is_always_replaced(options, neighbours):
    assert ExchangeOptions(**options).neighbours == neighbours


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


@pytest.mark.parametrize(
    ("options", "noisy"),
    [({}, True), ({"protect": "label"}, False), ({"noise": "off"}, False)],
)
def test_numbers_of_rows_are_noisy_where_a_row_is_hidden(options, noisy):
    assert ExchangeOptions(**options).settings(False).noisy_totals == noisy


def test_published_noise_comes_with_the_published_bins_unless_others_are_named():
    published = {"noise": "published", "protect": "label"}
    assert ExchangeOptions(**published).settings(False).bins == "four_deviations"
    assert ExchangeOptions(**published, bins=7).settings(False).bins == 7
    assert ExchangeOptions().settings(False).bins is None


@pytest.mark.parametrize(("noise", "delta"), [("auto", 1e-6), ("gaussian", 1e-6), ("pure", 0.0), ("off", 0.0)])
def test_only_noise_that_may_be_gaussian_is_given_delta(noise, delta):
    assert ExchangeOptions(noise=noise).noise_of(1.0, 1e-6).delta == delta
