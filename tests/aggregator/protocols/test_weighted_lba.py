"""Sums of rows and labels with secret weights: what is asked and promised, and what is learned from it."""

from __future__ import annotations

import numpy as np
import pytest
from support.label_answers import LEAST, collected, question
from support.linear_labels import WEIGHTS

from aggregator.contract.protocol import Trust
from aggregator.protocols.bag_regression import WeightedLBA
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"size": -1}, "size"),
        ({"bags": 0}, "bags"),
        ({"solver": "adam", "epochs": 0}, "epochs must be a positive number, got 0"),
        ({"solver": "adam", "learning_rate": -0.1}, "learning_rate must be a positive number"),
        ({"solver": "adam", "batch_rows": 0}, "batch_rows must be a positive number"),
        ({"epochs": 7, "batch_rows": 8}, "epochs and batch_rows belong to solver: adam"),
        ({"solver": "adam", "shrink": False}, "shrink belongs to solver: exact"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        WeightedLBA(**options)


@pytest.mark.parametrize(("noise", "why"), [("published", "nothing holds for all data"), ("off", "noise is off")])
def test_without_noise_nothing_is_promised_and_the_cause_is_told(noise, why):
    spends = WeightedLBA(noise=noise).promise(PublicNumbers(1e-6), 1.0, Trust.NONE).spends
    assert isinstance(spends, NoGuarantee)
    assert why in spends.reason


@pytest.mark.parametrize("noise", ["published", "off"])
def test_sums_without_noise_give_the_law_of_the_labels(noise):
    options = WeightedLBA(size=4, noise=noise)
    _, arrays = options.learn(collected(options), 0, 0)
    np.testing.assert_allclose(arrays["weights"], [*WEIGHTS, 0.0], atol=0.05)


def test_too_few_rows_for_the_bags_are_refused():
    assert question(WeightedLBA(size=LEAST // 2, bags=2)).design.bags == 2
    with pytest.raises(InputError, match="3 disjoint bags of size 40 need 120 rows, but some party has 80"):
        question(WeightedLBA(size=LEAST // 2, bags=3))


def test_only_sums_leave_a_party():
    rows, labels = WeightedLBA(size=4).sends(PublicNumbers(1e-6, features=5, largest_bag=42))
    assert (rows.numbers, labels.numbers) == (10 * 5, 10)
    assert (rows.private, labels.private) == (False, True)
    assert not WeightedLBA(size=4, noise="published").sends(PublicNumbers(1e-6))[1].private


def test_the_model_takes_account_of_noise_unless_there_is_none_or_it_is_told_not_to():
    answers = collected(WeightedLBA(size=4), epsilon=1.0)
    shrunk, least = (WeightedLBA(size=4, shrink=asked).learn(answers, 0, 0)[1]["weights"] for asked in (True, False))
    assert np.linalg.norm(shrunk) < np.linalg.norm(least)
    exact = collected(WeightedLBA(size=4, noise="published"))
    one, other = (WeightedLBA(size=4, noise="published", shrink=asked).learn(exact, 0, 0) for asked in (True, False))
    np.testing.assert_array_equal(one[1]["weights"], other[1]["weights"])


def test_adam_comes_near_least_squares_with_enough_steps_of_the_same_answers():
    answers = collected(WeightedLBA(size=4, noise="published"))

    def learned(seed=0, **options):
        return WeightedLBA(size=4, noise="published", **options).learn(answers, 0, seed)[1]["weights"]

    exact, enough = learned(), {"solver": "adam", "learning_rate": 0.1, "batch_rows": 32}
    np.testing.assert_allclose(learned(**enough), exact, atol=0.01)
    few = learned(**enough, epochs=1)
    assert np.linalg.norm(few) < 0.9 * np.linalg.norm(exact)
    np.testing.assert_array_equal(few, learned(**enough, epochs=1))
    assert not np.array_equal(few, learned(1, **enough, epochs=1))  # other bags are first


def test_how_it_is_solved_makes_no_other_question():
    assert question(WeightedLBA(size=4)) == question(WeightedLBA(size=4, solver="adam", epochs=3))
