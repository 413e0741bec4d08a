"""Estimates of the mean of y x from noisy sums and from randomised response, against what parties hold."""

from __future__ import annotations

import numpy as np
import pytest
from support.two_class_parties import draw
from support.two_class_questions import ROWS

from aggregator.collectors.row_sums import MomentAnswers
from aggregator.protocols.mean_operator.session import denoised, of_sums
from aggregator.trial.feature_fitting import fit
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId
from federation.features.feature_map import completed
from federation.queries.row_sums import MomentNoise, MomentQuestion
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort

MAP = completed(fit(["standardise"], ROWS))
RUNS = 500


def collected(noise, epsilon):
    """What three parties of 60, 67 and 60 rows answer, the third of them broken, and what the others hold."""
    asked = MomentNoise(noise, epsilon, 1e-5)
    question = MomentQuestion(asked, MAP, 60, 70, "label", 0, release=ReleaseId("a"), draws=RUNS, seeded=True)
    answers = MomentAnswers(question, 3, question.promise())
    holdings = Reference("support.two_class_parties:Parties", {"broken": [2]}).to_json()
    assert answers.add(answered(Cohort(holdings, 0, 3, 1), question)) == {}
    assert answers.present.tolist() == [0, 1]
    rows, labels = (np.concatenate(parts) for parts in zip(draw(0, 60), draw(1, 67), strict=True))
    return answers, MAP.transform(rows), 2 * labels - 1


@pytest.mark.parametrize(
    ("noise", "epsilon", "below"),
    [
        ("randomised_response", 0.5, 2**62),
        ("auto", 1.0, 22),  # all parties have more: noise on their sums
        ("auto", 4.0, 66),  # the first has fewer, the second has more
        ("auto", 5.0, 118),  # all have fewer
    ],
)
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


def test_shorter_rows_have_smaller_errors_where_labels_have_noise():
    answers, _, _ = collected("auto", 5.0)
    whole, half = of_sums(answers), of_sums(answers, 0.5)
    np.testing.assert_array_equal(whole.estimates, half.estimates)
    np.testing.assert_allclose(half.errors, whole.errors / 2)


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


def test_hardly_any_noise_leaves_the_mean_as_it_is():
    answers, rows, signs = collected("auto", 300.0)
    found = denoised(answers, rows)
    np.testing.assert_allclose(found.estimates, np.tile(signs @ rows / len(rows), (RUNS, 1)), atol=1e-3)
    assert 0 <= found.errors.max() < 1e-5
