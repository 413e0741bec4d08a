"""Estimates of the mean of y x: from noisy sums, and from rows with private labels, against what parties hold."""

from __future__ import annotations

import numpy as np
import pytest
from support.two_class_parties import draw
from support.two_class_questions import ROWS, moment

from aggregator.answers.label_answers import LabelAnswers
from aggregator.protocols.mean_operator.moment_answers import MomentAnswers
from aggregator.protocols.mean_operator.moment_estimates import of_private_labels, of_sums
from aggregator.world.fitting import fit
from federation.contract.question import ReleaseId
from federation.contract.reference import Reference
from federation.contract.submission import Submission
from federation.features.feature_map import completed
from federation.questions.labels import LabelledRows, LabelsNoise, PrivateLabelsQuestion
from parties.guard.answering import answered
from parties.holdings.cohort import Cohort

MAP = completed(fit(["standardise"], ROWS))


def asked(noise, draws=1, epsilon=2.0):
    return PrivateLabelsQuestion(
        LabelsNoise(noise, epsilon), LabelledRows(MAP, 0.0, 1.0, 70), release=ReleaseId("a"), draws=draws, seeded=True
    )


def collected(question):
    """What three parties of whom the second is broken answer, and what the others hold."""
    answers = LabelAnswers(question, 3, question.promise())
    holdings = Reference("support.two_class_parties:Parties", {"broken": [1]}).to_json()
    assert answers.add(answered(Cohort(holdings, 0, 3, 1), question)) == {}
    assert answers.present.tolist() == [0, 2]
    rows, labels = (np.concatenate(parts) for parts in zip(*(draw(party, 60) for party in (0, 2)), strict=True))
    return answers, MAP.transform(rows), 2 * labels - 1


def test_rows_of_those_who_answered_and_no_filling_count():
    answers, rows, signs = collected(asked("laplace", epsilon=1e3))
    found = of_private_labels(answers)
    np.testing.assert_allclose(found.estimates, [signs @ rows / len(rows)], atol=1e-3)
    assert 0 < found.noise_variance < 1e-6


@pytest.mark.parametrize("noise", ["one_bit", "laplace"])
def test_private_labels_are_right_on_average_and_as_far_off_as_is_said(noise):
    answers, rows, signs = collected(asked(noise, draws=400))
    found, exact = of_private_labels(answers), signs @ rows / len(rows)
    off = found.estimates - exact
    assert found.estimates.shape == (400, 4)
    assert np.abs(off.mean(axis=0)).max() < 5 * np.sqrt(found.noise_variance / 4 / 400)
    squared = np.square(off).sum(axis=1).mean()
    if noise == "laplace":  # whose variance is the same for all labels
        assert squared == pytest.approx(found.noise_variance, rel=0.2)
    else:
        assert squared < 1.2 * found.noise_variance


def test_noise_of_sums_is_that_of_all_entries():
    question = moment()
    answers = MomentAnswers(question, 2, question.promise())
    arrays = {"size": np.array([10.0, 30.0]), "sums": np.ones((2, 1, 4))}
    answers.add(Submission("mean_operator", np.array([0, 1]), arrays, question.promise()))
    found = of_sums(answers)
    np.testing.assert_array_equal(found.estimates, np.full((1, 4), 2 / 40))
    assert found.noise_variance == pytest.approx(4 * answers.noise_variance)
