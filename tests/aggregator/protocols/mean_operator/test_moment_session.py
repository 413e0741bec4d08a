"""Sessions of `mean_operator`: how much noise there is, what it regularises, and which rows are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.two_class_parties import plan_fixture
from support.worlds import run

from aggregator.learners.mean_operators.accuracy import predicted_accuracy
from aggregator.protocols.mean_operator import session as moment_session
from aggregator.protocols.mean_operator.mean_operator import MeanOperator
from aggregator.releases.models import ReleasedModels
from aggregator.trial.plan import VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate

HONEST = Reference("support.two_class_parties:Parties")
VARIANTS = {
    "auto": {},
    "pure": {"noise": "pure"},
    "plain": {"noise": "pure", "denoise": False},
    "gaussian": {"noise": "gaussian"},
    "response": {"noise": "randomised_response"},
    "row": {"protect": "row", "noise": "pure"},
    "secure": {"trust": "secure", "noise": "gaussian"},
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
    session = MeanOperator(**options).begin(World(chosen, Views(chosen)).of(variant), 1.0, 2)
    assert [asked.question.kind for asked in session.questions()] == kinds
    assert session.questions() == []


def test_without_denoising_the_regularisation_and_the_noise_are_public_numbers(plan):
    chosen = plan("plain", "off")
    _, first = run(open_grid("inline"), chosen, 6, HONEST)
    _, second = run(
        open_grid("inline"), chosen, 6, Reference("support.two_class_parties:Parties", {"strange": [0, 1, 2]})
    )
    assert first["diagnostics"] == second["diagnostics"]
    low, high = first["diagnostics"]["plain"]
    assert low["regularisation"] == pytest.approx(max(1e-4, low["noise_norm"] ** 2 / 2))
    assert high["noise_norm"] < low["noise_norm"]
    assert low["predicted_accuracy"] == predicted_accuracy(low["noise_norm"])
    assert first["diagnostics"]["off"][0] == {"regularisation": 1e-4, "noise_norm": 0.0}


def test_what_is_left_of_the_noise_decides_how_much_is_regularised(plan):
    chosen = plan("pure", "plain", epsilons=(0.1,))
    _, summary = run(open_grid("inline"), chosen, 6, HONEST)
    (shrunk,), (plain,) = (summary["diagnostics"][name] for name in ("pure", "plain"))
    assert shrunk["noise_norm"] == plain["noise_norm"]
    assert 1e-4 < shrunk["regularisation"] < plain["regularisation"] / 2
    first, second = (
        ReleasedModels.load(Path(chosen.directory) / f"{name}.npz").weights[0] for name in ("pure", "plain")
    )
    assert not np.allclose(first, second)


@pytest.mark.parametrize(("most", "same"), [(3, True), (4, False)])
def test_maps_with_too_many_features_are_left_as_they_are(plan, monkeypatch, most, same):
    monkeypatch.setattr(moment_session, "_MOST_DENOISED", most)
    _, summary = run(open_grid("inline"), plan("pure", "plain", epsilons=(0.1,)), 6, HONEST)
    strengths = [summary["diagnostics"][name][0]["regularisation"] for name in ("pure", "plain")]
    assert (strengths[0] == strengths[1]) == same


@pytest.mark.parametrize(("rows", "kind"), [(60, "randomised_response"), (60_000, "auto")])
def test_shares_of_one_noise_are_taken_where_they_are_less_than_all_responses(plan, rows, kind):
    chosen = plan("secure", private_rows=rows)
    variant = VariantPlan("one", "mean_operator", {"trust": "secure"})
    session = MeanOperator(trust="secure").begin(World(chosen, Views(chosen)).of(variant), 1.0, 1)
    question = session.questions()[-1].question
    assert (question.noise.kind, question.contributors) == (kind, 2 if kind == "auto" else 0)
    texts = " ".join(one.text for one in session.guarantee.assumptions)
    assert ("at most 1 of them collude" in texts) == ("secure summation" in texts) == (kind == "auto")
    assert ("trusts nobody" in texts) == (kind != "auto")


def test_the_weight_of_responses_comes_from_the_public_rows(plan):
    chosen = plan("auto")
    for options, other in (({}, False), ({"unlabelled": "auxiliary"}, True), ({"protect": "row"}, True)):
        variant = VariantPlan("one", "mean_operator", options)
        session = MeanOperator(**options).begin(World(chosen, Views(chosen)).of(variant), 1.0, 1)
        assert (session.questions()[-1].question.weight == 1.0) == other


def test_where_nobody_is_left_to_share_a_noise_it_is_refused(plan):
    chosen = plan("secure", colluding=0.5)
    variant = VariantPlan("one", "mean_operator", {"trust": "secure"})
    with pytest.raises(InputError, match=r"a quorum of 0\.5 of 6 parties is 3, and 3 of them may collude"):
        MeanOperator(trust="secure").begin(World(chosen, Views(chosen)).of(variant), 1.0, 1)


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


def test_a_masked_sum_of_shares_gives_the_same_models_and_says_so(plan):
    found = {}
    for name in ("", "scenarios.simulated.secure_aggregation:SimulatedSummation"):
        chosen = plan("secure", epsilons=(1.0,), summation=name)
        _, summary = run(open_grid("inline"), chosen, 6, HONEST)
        weights = ReleasedModels.load(Path(chosen.directory) / "secure.npz").weights[0]
        found[name] = weights, json.dumps(summary["ledger"])
    (clear, before), (masked, after) = found.values()
    np.testing.assert_array_equal(clear, masked)
    assert ("by a masked sum" in before, "by a masked sum" in after) == (False, True)


def test_a_deployment_names_no_summation(plan):
    with pytest.raises(InputError, match="no plan may name a summation"):
        plan("off", simulation=False, noise_seed=None, draws=1, individual=0, summation="somewhere:else")
