"""Sessions of `mean_operator`: how much noise there is, what it regularises, and which rows are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from support.two_class_parties import plan_fixture
from support.worlds import run

from aggregator.protocols.mean_operator.mean_operator import MeanOperator
from aggregator.protocols.mean_operator.moment_session import MomentSession
from aggregator.world.plan import VariantPlan
from aggregator.world.views import Views
from aggregator.world.world import World
from federation.contract.reference import Reference
from federation.grids.launch import open_grid
from federation.mechanisms.moments.calibrated_moments import calibrate

HONEST = Reference("support.two_class_parties:Parties")
VARIANTS = {
    "auto": {},
    "pure": {"noise": "pure"},
    "gaussian": {"noise": "gaussian"},
    "response": {"noise": "randomised_response"},
    "row": {"protect": "row", "noise": "pure"},
    "secure": {"summation": "secure", "noise": "gaussian"},
    "off": {"noise": "off"},
}

plan = plan_fixture("mean_operator", VARIANTS)


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({}, ["rows", "mean_operator"]),
        ({"unlabelled": "auxiliary"}, ["mean_operator"]),
        ({"protect": "row"}, ["mean_operator"]),
        ({"loss": "unhinged"}, ["mean_operator"]),
        ({"noise": "randomised_response"}, ["rows", "mean_operator"]),
    ],
)
def test_rows_are_asked_for_where_they_may_be_used_and_the_sum_comes_last(plan, options, kinds):
    chosen = plan("auto")
    variant = VariantPlan("one", "mean_operator", options)
    session = MomentSession(World(chosen, Views(chosen)).of(variant), MeanOperator(**options), 1.0, 2)
    assert [asked.question.kind for asked in session.questions()] == kinds
    assert session.questions() == []


def test_the_regularisation_and_the_noise_are_public_numbers(plan):
    chosen = plan("pure", "off")
    _, first = run(open_grid("inline"), chosen, 6, HONEST)
    _, second = run(
        open_grid("inline"), chosen, 6, Reference("support.two_class_parties:Parties", {"strange": [0, 1, 2]})
    )
    assert first["diagnostics"] == second["diagnostics"]
    low, high = first["diagnostics"]["pure"]
    assert low["regularisation"] == pytest.approx(max(1e-4, low["noise_norm"] ** 2 / 2))
    assert high["noise_norm"] < low["noise_norm"]
    assert first["diagnostics"]["off"][0]["regularisation"] == 1e-4


def test_the_noise_is_that_of_all_parties_over_all_rows(plan):
    chosen = plan("pure", "response", epsilons=(1.0,))
    _, summary = run(open_grid("inline"), chosen, 6, HONEST)
    one = calibrate("pure", dimension=4, epsilon=1.0, rows=67)
    assert summary["diagnostics"]["pure"][0]["noise_norm"] == pytest.approx(one.noise_norm() * 6**0.5 / 381)
    # A label comes back as 1 / tanh(1/2) or its opposite, on average as it was; all rows have norm 1.
    variance = 1 / np.tanh(0.5) ** 2 - 1
    assert summary["diagnostics"]["response"][0]["noise_norm"] == pytest.approx((variance / 381) ** 0.5)


def test_shares_of_noise_grow_less_than_whole_noise(plan):
    many = plan("gaussian", "secure", parties=40, quorum=1.0, colluding=0.0)
    _, summary = run(open_grid("inline"), many, 40, HONEST)
    whole, shares = (summary["diagnostics"][name][0]["noise_norm"] for name in ("gaussian", "secure"))
    assert whole / shares == pytest.approx(40**0.5, rel=0.01)


def test_row_privacy_uses_no_row_of_a_party_without_noise(plan):
    chosen = plan("row", "auto")
    _, summary = run(open_grid("inline"), chosen, 6, HONEST)
    row, label = (summary["bytes_per_party"][name][0] for name in ("row", "auto"))
    assert label - row >= 67 * 4 * 8
