"""What answers about bags promise, by public numbers alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import SEEDED, Adjacency, Check, Guarantee, NoGuarantee, Unit
from federation.contract.question import OFF, ReleaseId
from federation.features.feature_map import FeatureMap, with_fourier
from federation.mechanisms.accounting.composition import compose
from federation.questions.bags import (
    PUBLISHED,
    Bags,
    CountsNoise,
    CountsQuestion,
    JointNoise,
    NoisyEmbeddingsQuestion,
    largest_bag,
)
from federation.questions.row_premises import UNTIMED

EXTRA = {"dirichlet_floor": {"floor": 40}, "dirichlet_shifted": {"pseudo_count": 40}}
PURE = ("pure", "published_laplace", "laplace_prior")
WITH_DELTA = ("gaussian", "laplace", "independent_laplace", "dirichlet_floor", "dirichlet_shifted")
PRIVATE = ("auto", *PURE, *WITH_DELTA, "published_gaussian")
RELEASE = ReleaseId("purpose")
WAVES = with_fourier(FeatureMap(2, ()), 1.0, 8, seed=1)


def counts(noise, epsilon=1.0, delta=1e-6, most=0, seeded=True, classes=3, draws=1):
    known = CountsNoise(noise, epsilon, delta, **EXTRA.get(noise, {}))
    return CountsQuestion(known, Bags(4, classes, most), release=RELEASE, draws=draws, seeded=seeded)


def joint(weight=1.0, epsilon=1.0, delta=1e-6, most=0, seeded=True):
    known = JointNoise("gaussian", epsilon, delta)
    return NoisyEmbeddingsQuestion(known, Bags(4, 3, most), WAVES, weight, release=RELEASE, seeded=seeded)


@pytest.mark.parametrize("noise", PRIVATE)
def test_one_label_is_promised_what_was_asked_for(noise):
    promised = counts(noise).promise()
    assert (promised.epsilon, promised.unit, promised.adjacency) == (1.0, Unit.LABEL, Adjacency.REPLACE)
    mechanism = counts(noise).mechanism()
    assert promised.mechanism == mechanism.name
    assert promised.delta == mechanism.delta
    assert mechanism.delta_at(promised.epsilon) <= promised.delta
    if noise in PURE:
        assert promised.delta == 0
    if noise in WITH_DELTA:
        assert promised.delta == 1e-6
    assert Guarantee.from_dict(json.loads(json.dumps(promised.to_dict()))) == promised


@pytest.mark.parametrize("noise", PRIVATE)
@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_person_is_promised_as_much_by_more_noise_in_each_bag(noise, most):
    question = counts(noise, epsilon=2.0, delta=1e-3, most=most)
    promised, mechanism = question.promise(), question.mechanism()
    assert promised.unit is Unit.PERSON
    assert promised.epsilon == pytest.approx(2.0)
    assert promised.delta == pytest.approx(most * mechanism.delta)
    bag = mechanism.guarantee(Unit.PERSON)
    total = compose([replace(bag, gaussian_mu=None)] * most, 0.0)
    assert total == pytest.approx((promised.epsilon, promised.delta))
    assert promised.parameters.get("bags_per_person", 1) == most
    assert (promised.gaussian_mu is None) == (bag.gaussian_mu is None or most > 1)
    if most > 1:
        once = counts(noise, epsilon=2.0, delta=1e-3).mechanism()
        assert np.trace(mechanism.covariance(100)) > np.trace(once.covariance(100))


def texts(promised, check):
    return " / ".join(assumption.text for assumption in promised.assumptions if assumption.check is check)


def test_what_nobody_can_check_is_declared():
    label, person = counts("pure").promise(), counts("pure", most=3).promise()
    assert "a row lies in one bag of one party" in texts(label, Check.ENFORCED)
    assert "no two parties hold the same row or person" in texts(label, Check.DECLARED)
    assert "every row is about another person" in texts(label, Check.DECLARED)
    assert "every row is about another person" not in texts(person, Check.DECLARED)
    assert "one counts in each of at most 3 bags" in texts(person, Check.ENFORCED)
    assert "at least 40 records" in texts(counts("dirichlet_floor").promise(), Check.DECLARED)
    row = joint().promise()
    assert "norm at most 1" in texts(row, Check.ENFORCED)
    assert "bag sizes" in texts(row, Check.DECLARED)
    assert UNTIMED in row.assumptions
    assert UNTIMED not in label.assumptions


@pytest.mark.parametrize("promise", [lambda seeded: counts("pure", seeded=seeded).promise(),
                                     lambda seeded: joint(seeded=seeded).promise()])  # fmt: skip
def test_noise_that_a_seed_repeats_is_said_to_be_none_to_publish(promise):
    seeded, system = promise(True), promise(False)
    assert SEEDED in seeded.assumptions
    assert SEEDED not in system.assumptions
    assert (seeded.parameters["entropy"], system.parameters["entropy"]) == ("seed", "system")


def test_nothing_is_promised_without_a_guarantee():
    assert counts(OFF).promise() == NoGuarantee("noise is off")
    published = counts(PUBLISHED, epsilon=0.05, delta=0.05).promise()
    assert isinstance(published, NoGuarantee)
    assert published.claimed == (0.05, 0.05)
    assert "differ by a delta of 0.135" in published.reason  # measured by quadrature, of the promised 0.05


@pytest.mark.parametrize("noise", PRIVATE)
def test_both_sides_come_to_the_same_mechanism(noise):
    first, second = (counts(noise, draws=draws).promise() for draws in (1, 50))
    assert first == second
    assert counts(noise, epsilon=0.5).promise().parameters != first.parameters


@pytest.mark.parametrize("tile", [1, 2, 100, 1024])
@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e6])
def test_the_joint_noise_covers_the_rounding_of_the_largest_bag_and_of_none_larger(tile, weight):
    """(n - 1) additions of a summand err by at most n 2^-53 / (1 - n 2^-53) of the magnitudes that are summed."""
    unit = Fraction(1, 2**53)
    rows, charged = largest_bag(tile), Fraction(joint(weight).mechanism().sensitivity) ** 2

    def moved(rows):
        additions = tile + Fraction(rows, tile) + 1
        rounding = additions * unit / (1 - additions * unit) * rows
        products = 2 * Fraction(weight) ** 2 * (1 + 2 * rows * unit) ** 2
        return products + 4 * (1 + rounding + Fraction(1, 10**14)) ** 2

    assert moved(rows) <= charged
    assert rows * (tile + rows / tile) * 2.0**-53 > 0.98e-6
    if weight < 1:
        assert moved(math.ceil(1.01 * rows)) > charged
    assert largest_bag(1024) > 2_500_000


@given(st.floats(0.05, 5), st.floats(1e-9, 0.1), st.floats(0.01, 100))
def test_the_joint_noise_covers_labels_and_rows_at_once(epsilon, delta, weight):
    question = joint(weight, epsilon, delta)
    promised, mechanism = question.promise(), question.mechanism()
    assert (promised.epsilon, promised.delta, promised.unit) == (epsilon, delta, Unit.ROW)
    assert mechanism.dimension == 3 + 8
    assert mechanism.sensitivity >= math.hypot(math.sqrt(2) * weight, 2)
    assert mechanism.sensitivity <= math.hypot(math.sqrt(2) * weight, 2) * (1 + 1e-5)
    assert promised.parameters["charged_sensitivity"] >= mechanism.sensitivity


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: counts("gaussian", delta=0.0), "delta must be above 0"),
        (lambda: counts("pure", epsilon=0.0), "epsilon must be a positive"),
        (lambda: counts("pure", classes=1), "classes must be an integer of at least 2"),
        (lambda: counts("gauss"), "did you mean 'gaussian'"),
        (lambda: replace(counts("pure"), noise=CountsNoise("dirichlet_floor", 1.0, 1e-6)), "floor must be given"),
        (lambda: counts("dirichlet_floor", epsilon=0.05), "floor must be at least 161"),
        (lambda: counts("dirichlet_shifted", epsilon=1.0, delta=1e-3, most=20), "pseudo_count must be at least"),
    ],
)  # fmt: skip
def test_numbers_that_no_mechanism_serves_are_refused(asked, words):
    with pytest.raises(InputError, match=words):
        asked().promise()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: joint(most=1), "knows no persons"),
        (lambda: joint(weight=0.0), "label_weight must be a positive"),
        (lambda: joint(delta=0.0), "delta must lie strictly between"),
    ],
)
def test_rows_that_cannot_be_protected_are_refused(asked, words):
    with pytest.raises(InputError, match=words):
        asked().promise()
