"""Answers about labels of rows and of bags: honest ones are taken, and what no honest party can say is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.label_answers import PARTIES, question
from support.linear_labels import RANGE

from aggregator.collectors.labels import LabelAnswers
from aggregator.protocols.bag_regression import NoisyWeightedLLP, WeightedLBA
from aggregator.protocols.private_labels import PrivateLabels
from federation.contract.guarantee import Guarantee
from federation.contract.plugins import Reference
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort

REFUSED = "answer refused: values outside the declared range"
LABELS, BAGS = PrivateLabels(noise="laplace"), NoisyWeightedLLP(size=8)
WEIGHTED, EXACT = WeightedLBA(size=8), PrivateLabels(noise="off")


def sent(options):
    """The question and what all parties answer."""
    asked = question(options, epsilon=3.0, draws=2)
    return asked, answered(Cohort(Reference("support.linear_labels:Parties").to_json(), 0, PARTIES, 1), asked)


def causes(options, change=lambda arrays: None):
    """Why answers are refused, by party, after the third party has changed its own."""
    asked, submission = sent(options)
    arrays = {name: array.copy() for name, array in submission.arrays.items()}
    change({name: array[2] for name, array in arrays.items() if array.ndim > 1} | {"all": arrays})
    promised = asked.promise()
    answers = LabelAnswers(asked, PARTIES, promised if isinstance(promised, Guarantee) else None)
    found = answers.add(replace(submission, arrays=arrays))
    assert answers.answered == PARTIES - len(found)
    for name, array in arrays.items():
        np.testing.assert_array_equal(answers.array(name)[answers.present], array[answers.present])
    return found


@pytest.mark.parametrize("options", [LABELS, EXACT, BAGS, WEIGHTED], ids=lambda one: type(one).__name__)
def test_honest_answers_are_kept_as_they_came(options):
    assert causes(options) == {}


def a_label_far_out(arrays):
    arrays["labels"][0, 5] = 40 * 2**0.5 * (RANGE[1] - RANGE[0]) + RANGE[1] + 1


def a_label_without_a_row(arrays):
    arrays["labels"][1, -1] = 1.0


def a_row_beyond_its_number(arrays):
    arrays["rows"][-1, 0] = 1.0


def half_a_row(arrays):
    arrays["all"]["size"][2] -= 0.5


def a_sum_far_out(arrays):
    arrays["sums"][0, 0] = 1e9


def a_weight_that_is_no_sign(arrays):
    arrays["weights"][0, 0, 0] = 0.5


def a_weighted_sum_far_out(arrays):
    arrays["label_sums"][0, 0] = 1e9


def half_a_bag(arrays):
    arrays["all"]["formed"][2] -= 0.5


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (LABELS, a_label_far_out),
        (LABELS, a_label_without_a_row),
        (LABELS, a_row_beyond_its_number),
        (LABELS, half_a_row),
        (EXACT, a_label_far_out),
        (BAGS, a_sum_far_out),
        (BAGS, a_weight_that_is_no_sign),
        (BAGS, half_a_bag),
        (WEIGHTED, half_a_bag),
        (WEIGHTED, a_weighted_sum_far_out),
    ],
    ids=lambda one: getattr(one, "__name__", type(one).__name__),
)
def test_what_no_honest_party_can_say_is_refused_and_costs_nobody_else(options, change):
    assert causes(options, change) == {2: REFUSED}


def test_a_label_as_far_out_as_noise_can_take_it_is_taken():
    def within(arrays):
        arrays["labels"][0, 5] = RANGE[1] + 39 * 2**0.5 * (RANGE[1] - RANGE[0]) / 3.0

    assert causes(LABELS, within) == {}
