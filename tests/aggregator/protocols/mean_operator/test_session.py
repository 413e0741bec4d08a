"""Sessions of `mean_operator`: how much noise there is, what it regularises, and which rows are asked for.

Estimates of the mean of y x from noisy sums and from randomised response, against what parties hold. The worst pair of
sums of y x: as long a row as there is turns round, and sums are those that parties answer.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from support.two_class_parties import draw, plan_fixture
from support.two_class_questions import ROWS
from support.worlds import run
from support.worst_pairs import pair_of, without_noise

from aggregator.collectors.collectors import Summed
from aggregator.learners.mean_operators.accuracy import predicted_accuracy
from aggregator.protocols.mean_operator import session as moment_session
from aggregator.protocols.mean_operator.mean_operator import MeanOperator
from aggregator.protocols.mean_operator.session import RowTotals, WorstSums, denoised, of_sums, worst_row
from aggregator.releases.models import ReleasedModels
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import PublicNumbers, VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId
from federation.engines.inline import open_grid
from federation.features.feature_map import completed
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
from federation.numerics.rows import within_norm
from federation.queries.row_sums import MomentNoise, MomentQuestion
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort

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

SECURE = {"trust": "secure"}

plan = plan_fixture("mean_operator", VARIANTS)


def begun(plan, options, draws=1):
    variant = VariantPlan("one", "mean_operator", options)
    return MeanOperator(**options).begin(World(plan, Views(plan)).of(variant), 1.0, draws)


@pytest.mark.parametrize(("options", "kinds", "weighted"), [
    ({}, ["rows", "mean_operator"], True), ({"noise": "randomised_response"}, ["rows", "mean_operator"], None),
    ({"unlabelled": "auxiliary"}, ["mean_operator"], False), ({"protect": "row"}, ["mean_operator"], False),
    ({"loss": "unhinged"}, ["mean_operator"], None),
])  # fmt: skip
def test_rows_are_asked_for_where_they_may_be_used_and_the_sum_comes_last(plan, options, kinds, weighted):
    session = begun(plan("auto"), options, 2)
    asked = session.questions()
    assert [one.question.kind for one in asked] == kinds
    assert session.questions() == []
    if weighted is not None:  # the weight of responses comes from the public rows
        assert (asked[-1].question.weight != 1.0) == weighted


def test_without_denoising_the_regularisation_and_the_noise_are_public_numbers(plan):
    chosen = plan("plain", "off")
    _, first = run(open_grid("inline"), chosen, 6, HONEST)
    strange = Reference("support.two_class_parties:Parties", {"strange": [0, 1, 2]})
    _, second = run(open_grid("inline"), chosen, 6, strange)
    assert first["diagnostics"] == second["diagnostics"]
    low, high = first["diagnostics"]["plain"]
    assert low["regularisation"] == pytest.approx(max(1e-4, low["noise_norm"] ** 2 / 2))
    assert high["noise_norm"] < low["noise_norm"]
    assert low["predicted_accuracy"] == predicted_accuracy(low["noise_norm"])
    assert first["diagnostics"]["off"][0] == {"regularisation": 1e-4, "noise_norm": 0.0}


@pytest.mark.parametrize(("most", "same"), [(3, True), (4, False)])
def test_what_is_left_of_the_noise_decides_how_much_is_regularised_unless_features_are_too_many(
    plan, monkeypatch, most, same
):
    monkeypatch.setattr(moment_session, "_MOST_DENOISED", most)
    chosen = plan("pure", "plain", epsilons=(0.1,))
    _, summary = run(open_grid("inline"), chosen, 6, HONEST)
    (shrunk,), (plain,) = (summary["diagnostics"][name] for name in ("pure", "plain"))
    assert shrunk["noise_norm"] == plain["noise_norm"]
    assert (shrunk["regularisation"] == plain["regularisation"]) == same
    if not same:
        assert 1e-4 < shrunk["regularisation"] < plain["regularisation"] / 2
        files = [Path(chosen.run.directory) / f"{name}.npz" for name in ("pure", "plain")]
        first, second = (ReleasedModels.load(file).weights[0] for file in files)
        assert not np.allclose(first, second)


@pytest.mark.parametrize(("rows", "kind"), [(60, "randomised_response"), (60_000, "auto")])
def test_shares_of_one_noise_are_taken_where_they_are_less_than_all_responses(plan, rows, kind):
    session = begun(plan("secure", private_rows=rows), SECURE)
    question = session.questions()[-1].question
    assert (question.noise.kind, question.contributors) == (kind, 2 if kind == "auto" else 0)
    texts = " ".join(one.text for one in session.guarantee.assumptions)
    assert ("at most 1 of them collude" in texts) == ("secure summation" in texts) == (kind == "auto")
    assert ("trusts nobody" in texts) == (kind != "auto")
    with pytest.raises(InputError, match=r"quorum.*0\.5.*6.*3.*3"):  # nobody is left to share a noise
        begun(plan("secure", colluding=0.5), SECURE)
    with pytest.raises(InputError):  # a deployment names no summation
        plan("off", simulation=False, noise_seed=None, draws=1, individual=0, summation="somewhere:else")


def test_the_noise_is_that_of_all_parties_over_all_rows_and_row_privacy_uses_no_row_without_noise(plan):
    chosen = plan("pure", "response", epsilons=(1.0,))
    _, summary = run(open_grid("inline"), chosen, 6, HONEST)
    one = calibrate("pure", dimension=4, epsilon=1.0, rows=67)
    assert summary["diagnostics"]["pure"][0]["noise_norm"] == pytest.approx(one.noise_norm() * 6**0.5 / 381)
    # A label comes back as 1 / tanh(1/2) or its opposite, on average as it was; all rows have norm 1.
    variance = 1 / np.tanh(0.5) ** 2 - 1
    assert summary["diagnostics"]["response"][0]["noise_norm"] == pytest.approx((variance / 381) ** 0.5)
    many = plan("gaussian", "secure", parties=40, quorum=1.0, colluding=0.0)
    _, summary = run(open_grid("inline"), many, 40, HONEST)
    whole, shares = (summary["diagnostics"][name][0]["noise_norm"] for name in ("gaussian", "secure"))
    assert whole / shares == pytest.approx(40**0.5, rel=0.01)
    chosen = plan("row", "auto")
    _, summary = run(open_grid("inline"), chosen, 6, HONEST)
    row, label = (summary["bytes_per_party"][name][0] for name in ("row", "auto"))
    assert label - row >= 67 * 4 * 8


def test_a_masked_sum_of_shares_gives_the_same_models_and_says_so(plan):
    found = {}
    for name in ("", "scenarios.simulated.secure_aggregation:SimulatedSummation"):
        chosen = plan("secure", epsilons=(1.0,), summation=name)
        _, summary = run(open_grid("inline"), chosen, 6, HONEST)
        weights = ReleasedModels.load(Path(chosen.run.directory) / "secure.npz").weights[0]
        found[name] = weights, json.dumps(summary["ledger"])
    (clear, before), (masked, after) = found.values()
    np.testing.assert_array_equal(clear, masked)
    assert ("by a masked sum" in before, "by a masked sum" in after) == (False, True)


MAP = completed(fit(["standardise"], ROWS))
RUNS = 500


def collected(noise, epsilon):
    """What three parties of 60, 67 and 60 rows answer, the third of them broken, and what the others hold."""
    asked = MomentNoise(noise, epsilon, 1e-5)
    question = MomentQuestion(asked, MAP, 60, 70, "label", 0, release=ReleaseId("a"), draws=RUNS, seeded=True)
    answers = Summed(question, 3, question.promise())
    holdings = Reference("support.two_class_parties:Parties", {"broken": [2]}).to_json()
    assert answers.add(answered(Cohort(holdings, 0, 3, 1), question)) == {}
    assert answers.present.tolist() == [0, 1]
    rows, labels = (np.concatenate(parts) for parts in zip(draw(0, 60), draw(1, 67), strict=True))
    return RowTotals(question, answers), MAP.transform(rows), 2 * labels - 1


@pytest.mark.parametrize(("noise", "epsilon", "below"), [
    ("randomised_response", 0.5, 2**62),
    ("auto", 1.0, 22),  # all parties have more: noise on their sums
    ("auto", 4.0, 66),  # the first has fewer, the second has more
    ("auto", 5.0, 118),  # all have fewer
])  # fmt: skip
def test_estimates_are_right_on_average_and_as_far_off_as_is_said(noise, epsilon, below):
    answers, rows, signs = collected(noise, epsilon)
    assert answers.question.response_below == below
    found, exact = of_sums(answers), signs @ rows / len(rows)
    off = found.estimates - exact
    assert np.abs(off.mean(axis=0)).max() < 5 * np.sqrt(found.errors[0] / RUNS)
    assert (found.errors == found.errors[0]).all()
    assert np.square(off).sum(axis=1).mean() == pytest.approx(found.errors[0], rel=0.2)
    labels = answers.response_variance > 0
    assert (labels, answers.noise_variance > 0) == (below > 60, below <= 67)


def test_shorter_rows_have_smaller_errors_and_questions_about_anything_else_are_refused():
    answers, _, _ = collected("auto", 5.0)
    whole, half = of_sums(answers), of_sums(answers, 0.5)
    np.testing.assert_array_equal(whole.estimates, half.estimates)
    np.testing.assert_allclose(half.errors, whole.errors / 2)
    answers, rows, signs = collected("auto", 300.0)
    found = denoised(answers, rows)
    np.testing.assert_allclose(found.estimates, np.tile(signs @ rows / len(rows), (RUNS, 1)), atol=1e-3)
    assert 0 <= found.errors.max() < 1e-5
    labels = pair_of("private_labels", {}, PublicNumbers(1e-3, label_range=(0.0, 1.0))).question
    with pytest.raises(InputError, match="private_labels"):
        WorstSums("", np.eye(2), 1).side(False, labels, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "epsilon"), [("auto", 0.3), ("auto", 4.0), ("randomised_response", 0.2)])
def test_shrinking_leaves_less_of_large_noise_and_says_how_much(noise, epsilon):
    answers, rows, signs = collected(noise, epsilon)
    exact = signs @ rows / len(rows)
    before, after = (
        np.square(found.estimates - exact).sum(axis=1) for found in (of_sums(answers), denoised(answers, rows))
    )
    assert after.mean() < (0.7 if epsilon < 1 else 1.0) * before.mean()
    errors = denoised(answers, rows).errors
    assert errors.shape == (RUNS,)
    assert errors.mean() == pytest.approx(after.mean(), rel=0.5)  # on average over labels that the prior expects


def sums(units=1, **options):
    return pair_of("mean_operator", options, PublicNumbers(1e-6), units)


@pytest.mark.parametrize(("options", "longest"), [
    ({"noise": "laplace"}, 3**0.5), ({"noise": "published_laplace"}, 3**0.5),
    ({"noise": "laplace", "l1_bound": 1.2}, 1.2), ({"noise": "laplace", "expansion": "fourier"}, 2**0.5),
    ({"noise": "laplace", "expansion": "polynomial"}, 1 + 2**0.5),  # of 6 features: sqrt(6) bounds it
    ({"noise": "pure"}, 1.0), ({"noise": "gaussian", "expansion": "polynomial", "degree": 3}, 1.0),
    ({"noise": "auto", "l1_bound": 1.1}, 1.1),  # Laplace noise
    ({"noise": "auto", "l1_bound": 1.7}, 1.0),  # L2-Gamma noise
    ({"noise": "pure", "protect": "row", "expansion": "fourier"}, 1.0),
])  # fmt: skip
def test_the_worst_row_is_as_long_as_rows_get(options, longest):
    question = sums(**options).question
    order = 1 if question.mechanism().name.endswith("laplace") else 2
    cut = within_norm(question.feature_map.transform(worst_row(question)[None]), options.get("l1_bound"))
    assert np.linalg.norm(cut[0], ord=order) == pytest.approx(longest, rel=1e-6)


def exact_sum(question, held):
    """The sum of y x of one party without noise."""
    rows = within_norm(question.feature_map.transform(held.rows), question.noise.l1_bound)
    return (2.0 * held.labels - 1.0) @ rows


@pytest.mark.parametrize("changed", [1, 2])
def test_neighbours_of_a_sum_differ_in_the_rows_that_change(changed):
    pair = sums(units=changed)
    before, after = pair.held(False), pair.held(True)
    below = pair.question.response_below
    assert 4 < below < 100
    assert [len(held.labels) for held in before] == [changed, below]  # of either side of the threshold
    assert pair.question.responding(np.array([changed, below])).tolist() == [True, False]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
        assert (one.labels != other.labels).sum() == changed
        assert set(one.labels) | set(other.labels) == {0, 1}


@pytest.mark.parametrize("units", [1, 2])
def test_of_randomised_response_nothing_but_what_changes_is_seen(units):
    pair = sums(units=units, noise="randomised_response")
    [held] = pair.held(True)
    assert held.labels.tolist() == [1] * units
    told = pair.statistic(pair.seen(True, "told", 1000))
    np.testing.assert_allclose(np.unique(told.round(6)), {1: [-1, 1], 2: [-2, 0, 2]}[units])  # of epsilon 1


@pytest.mark.parametrize("turns", [1, 2])
def test_every_run_is_of_one_party_by_turns(turns):
    pair = sums(noise="auto" if turns == 2 else "pure")
    seen = pair.seen(False, "turns", 6)
    sizes = [len(held.labels) for held in pair.held(False)]
    assert seen["size"].tolist() == sizes * (6 // turns)
    exact = [exact_sum(pair.question, held) for held in pair.held(False)]
    for turn in range(turns):
        noisy, question = turn or turns == 1, pair.question
        spread = 12 * question.mechanism().variance() ** 0.5 if noisy else 2 * question.response().reach
        assert np.abs(seen["sums"][turn::turns] - exact[turn]).max() < spread


@pytest.mark.parametrize("units", [1, 2])
def test_neighbours_of_a_sum_of_shares_differ_at_the_first_party_only(units):
    pair = sums(units=units, **SECURE)
    before, after = pair.held(False), pair.held(True)
    assert len(before) == len(after) == pair.worst.parties(pair.question, 1)
    assert pair.question.contributors == 3
    assert len(before) == (3 if units == 1 else 1)  # of the twin half of the shares are missing, and one row changes
    for party, (one, other) in enumerate(zip(before, after, strict=True)):
        np.testing.assert_array_equal(one.rows, other.rows)
        assert (one.labels != other.labels).sum() == (party == 0)


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("options", [
    {"noise": "laplace"}, {"noise": "laplace", "l1_bound": 1.2}, {"noise": "gaussian", "expansion": "polynomial"},
    {"noise": "laplace", "expansion": "fourier"}, {"noise": "pure", "protect": "row"}, {"noise": "pure", **SECURE},
], ids=str)  # fmt: skip
def test_its_sums_are_those_that_parties_answer_without_noise(options, units, there):
    pair = sums(units=units, **options)
    exact = sum(exact_sum(pair.question, held) for held in pair.held(there))
    seen = without_noise(pair, 2, there)["sums"]
    np.testing.assert_allclose(seen, np.tile(exact, (2, 1)), atol=len(pair.held(there)) * 2.0**-26)  # of the grid
    assert np.linalg.norm(exact - sum(exact_sum(pair.question, held) for held in pair.held(not there))) > 1
