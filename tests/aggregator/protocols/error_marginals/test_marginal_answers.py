"""What is said in an exchange is taken in where an honest party could say it."""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_questions import marginals

from aggregator.collectors.marginals import MarginalAnswers
from federation.contract.guarantee import Guarantee
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, Submission
from parties.guard import answering
from parties.party_data.cohort import Cohort

QUESTIONS = {
    "row": marginals("gaussian"),
    "rows of rows": marginals("pure", asks="rows"),
    "label": marginals("pure", "label", "replace"),
    "rows of labels": marginals("pure", "label", "replace", asks="rows"),
    "published": marginals("published", "label", "replace"),
    "off": marginals("off"),
}
FIRST_BINS = [0, 5]  # of the first two features, five bins each


def collected(question, arrays):
    """Causes of refusal, and the collector, after the answer of one of the parties with at most 60 rows."""
    promised = question.promise()
    promise = promised if isinstance(promised, Guarantee) else None
    collector = MarginalAnswers(question, 1, 60, promise)
    return collector.add(Submission(question.kind, np.zeros(1, dtype=np.int64), arrays, promise)), collector


def answered(question, name="a purpose"):
    asked = replace(question, release=ReleaseId(name, question.release.queries, question.release.query))
    cohort = Cohort(Reference("support.two_class_parties:Parties").to_json(), 0, 1, 1)
    return dict(answering.answered(cohort, asked).arrays)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_honest_answers_are_taken_in(question):
    for trial in range(20):
        refused, collector = collected(question, answered(question, str(trial)))
        assert (refused, collector.answered) == ({}, 1)


@pytest.mark.parametrize("name", ["label", "rows of labels", "published", "off"])
@pytest.mark.parametrize("kind", ["negative", "too many", "of different rows", "fractional"])
def test_numbers_of_rows_without_noise_are_those_of_rows(name, kind):
    arrays = answered(QUESTIONS[name])
    rows = arrays["rows"]
    if kind == "negative":
        rows[0, FIRST_BINS] -= 61
        rows[0, [1, 6]] += 61
    elif kind == "too many":
        rows[0, [0, 5, 10]] += 1
    elif kind == "of different rows":
        rows[0, 0] -= 1
    else:
        rows[0, FIRST_BINS] += 0.5
        rows[0, [1, 6]] -= 0.5
    refused, collector = collected(QUESTIONS[name], arrays)
    assert (list(refused), collector.rows.any()) == ([0], False)


@pytest.mark.parametrize("name", ["row", "label", "off"])
@pytest.mark.parametrize("sign", [1, -1])
def test_errors_and_corrects_lie_within_the_reach_of_noise(name, sign):
    """More errors than rows are as impossible as fewer than none."""
    question = QUESTIONS[name]
    reach = 40 * (0.0 if name == "off" else question.mechanism().deviation)
    arrays = answered(question)
    arrays["errors"][0, 0] = sign * np.ceil(reach + 61)
    refused, _ = collected(question, arrays)
    assert list(refused) == [0]
