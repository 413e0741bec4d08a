"""Vectors of parties and their mean: cut to a ball, the same in any order, and moved no further than is said.

The mean of vectors that nobody saw, and the noise that is in it.
"""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.questions import QUESTIONS
from support.summed_plans import plan

from aggregator.collectors.collectors import Secure
from aggregator.collectors.vectors import (
    FORMS,
    ClippedMean,
    VectorAnswers,
    clipped_mean,
    parameter_average,
    radius_of_any_rows,
)
from aggregator.trial.feature_fitting import fit
from federation.contract.errors import FederationError, InputError
from federation.contract.query import Submission
from federation.features.feature_map import Ball
from federation.mechanisms.accounting.sensitivity import radius
from federation.numerics.erm import attainable_tolerance, fit_labels
from federation.queries.votes import ParametersQuestion, Training


def question(width=2, classes=3, largest=10.0):
    feature_map = fit(["unit_norm"], np.ones((1, width)))
    classifier = {"name": "logistic", "parameters": {"regularisation": 1e-2}}
    return ParametersQuestion(Training(feature_map, classes, classifier, 0), 1e-8, largest)


def submission(vectors, parties):
    return Submission("parameters", np.asarray(parties), {"parameters": np.asarray(vectors, dtype=np.float64)})


def test_missing_parties_are_zero_vectors_and_memory_grows_by_a_byte_per_party():
    answers = VectorAnswers(question(), 4, Ball(100.0))
    assert answers.add(submission(np.empty((0, 2, 2)), np.empty(0, np.int64))) == {}
    np.testing.assert_array_equal(answers.value(), np.zeros((2, 2)))
    assert answers.add(submission(np.ones((2, 2, 2)), [1, 3])) == {}
    assert answers.value() == pytest.approx(np.full((2, 2), 0.5), rel=1e-13)
    assert (answers.answered, answers.parties) == (2, 4)
    for vectors in (np.ones((1, 4)), np.ones((1, 2, 2), np.float32), np.ones((2, 2, 2))):  # of another form
        with pytest.raises(InputError):
            answers.add(Submission("parameters", np.array([0]), {"parameters": vectors}))
    assert peak_of_adding(101_000) - peak_of_adding(1000) < 2 * 100_000  # one vector alone has 8,000 bytes


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 10.1, -1e308])
def test_an_answer_that_is_no_number_in_range_costs_its_own_party_only(value):
    answers = VectorAnswers(question(), 3, Ball(1.0))
    vectors = np.ones((2, 2, 2))
    vectors[1, 0, 1] = value
    assert list(answers.add(submission(vectors, [0, 2]))) == [2]
    assert answers.answered == 1
    assert answers.value() == pytest.approx(0.5 / 3)
    assert answers.add(submission(np.ones((1, 2, 2)), [2])) == {}


def peak_of_adding(parties):
    asked, cohort = question(width=500), np.ones((50, 2, 500))
    tracemalloc.start()
    answers = VectorAnswers(asked, parties, Ball(1.0))
    for first in range(0, min(parties, 1000), 50):
        answers.add(submission(cohort, np.arange(first, first + 50)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def mean_of(vectors, parties, **options):
    mean = ClippedMean(vectors.shape[1], parties=parties, **options)
    mean.add(vectors)
    return mean


def vectors(seed, parties=20, dimension=7, spread=3.0):
    random = np.random.default_rng(seed)
    return random.normal(size=(parties, dimension)) * np.exp(random.normal(scale=spread, size=(parties, 1)))


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), norm=st.floats(1e-6, 1e6), normalised=st.booleans())
def test_it_is_the_mean_of_the_vectors_cut_to_the_ball(seed, norm, normalised):
    given_ = vectors(seed)
    lengths = np.linalg.norm(given_, axis=1, keepdims=True)
    factor = norm / lengths if normalised else np.minimum(1, norm / lengths)
    expected = (given_ * factor).sum(axis=0) / 30  # ten of thirty parties are missing and count as zero
    found = mean_of(given_, 30, norm=norm, normalised=normalised).value()
    np.testing.assert_allclose(found, expected, atol=1e-13 * norm)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), pieces=st.integers(1, 6), normalised=st.booleans())
def test_the_order_of_arrival_changes_no_bit(seed, pieces, normalised):
    given_ = vectors(seed)
    order = np.random.default_rng(seed).permutation(len(given_))
    piecewise = ClippedMean(7, 1.5, 20, normalised=normalised)
    for part in np.array_split(order, pieces):
        piecewise.add(given_[part])
    whole = mean_of(given_, 20, norm=1.5, normalised=normalised)
    assert piecewise.value().tobytes() == whole.value().tobytes()


def adversaries(random, dimension, norm):
    """Vectors that a hostile party may send, and their opposites."""
    direction = random.normal(size=dimension)
    direction /= np.linalg.norm(direction)
    tiny, huge = np.nextafter(0.0, 1.0), np.finfo(float).max
    spikes = np.zeros(dimension)
    spikes[random.integers(dimension)] = huge
    yield from (norm * direction, 1e3 * norm * direction, tiny * np.sign(direction), spikes, huge * np.sign(direction))
    yield np.full(dimension, np.nextafter(norm / np.sqrt(dimension), np.inf))
    yield np.zeros(dimension)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("parties", "dimension"), [(1, 1), (5, 3), (1000, 50), (10**6, 2), (3, 4000)])
def test_no_vector_moves_the_mean_further_than_the_sensitivity_and_opposite_ones_do(parties, dimension, normalised):
    random = np.random.default_rng(parties + dimension)
    norm, furthest = 2.5, 0.0
    others = random.normal(size=(min(parties, 50) - 1, dimension))
    candidates = [sign * v for v in adversaries(random, dimension, norm) for sign in (1, -1)]
    values = [mean_of(np.vstack([others, [v]]), parties, norm=norm, normalised=normalised).value() for v in candidates]
    sensitivity = ClippedMean(dimension, norm, parties, normalised=normalised).sensitivity
    for a in values:
        for b in values:
            furthest = max(furthest, float(np.linalg.norm(a - b)))
    assert furthest <= sensitivity
    assert furthest == pytest.approx(2 * norm / parties, rel=1e-9)
    assert sensitivity == pytest.approx(2 * norm / parties, rel=1e-8)


@pytest.mark.parametrize("norm", [1e-308, 1e-3, 1e300])
@pytest.mark.parametrize("normalised", [False, True])
def test_no_number_is_too_large_or_too_small_to_be_cut(norm, normalised):
    for size in (5e-324, 1e-200, 1.0, 1e200, np.finfo(float).max):
        value = mean_of(np.full((1, 4), size), 1, norm=norm, normalised=normalised).value()
        expected = norm / 2 if normalised else min(size, norm / 2)
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-15 * norm)


def test_a_zero_vector_stays_zero_and_rounding_that_exceeds_the_exact_sensitivity_is_charged():
    mean = mean_of(np.array([[0.0, 0.0], [1e-300, 0.0]]), 2, norm=1.0, normalised=True)
    np.testing.assert_array_equal(mean.value(), [0.5, 0.0])
    mean = ClippedMean(1, 1.0, 2**20)
    for _ in range(16):
        mean.add(np.ones((2**16, 1)))
    assert mean.value() == pytest.approx(1.0, rel=1e-12)
    # Distances in exact arithmetic of means in which one party turns its vector round.
    random = np.random.default_rng(0)
    longest = Fraction(0)
    for _ in range(400):
        dimension, parties, norm = int(random.integers(1, 6)), int(random.integers(1, 4)), float(random.uniform(0.5, 4))
        own, others = random.normal(size=dimension), random.normal(size=(parties - 1, dimension))
        means = [mean_of(np.vstack([others, sign * own]), parties, norm=norm, normalised=True) for sign in (1, -1)]
        first, second = (list(map(Fraction, mean.value().tolist())) for mean in means)
        squared = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
        assert squared <= Fraction(means[0].sensitivity) ** 2
        longest = max(longest, squared / Fraction(math.nextafter(clipped_mean(norm, parties), math.inf)) ** 2)
    assert longest > 1


TOLERANCE = 1e-10


def bound(form, lam, classes=3, parties=1):
    return parameter_average(form, regularisation=lam, parties=parties, classes=classes)


@settings(derandomize=True)
@given(lam=st.floats(1e-8, 1e3), classes=st.integers(2, 50), parties=st.integers(1, 10**6))
def test_each_form_is_at_most_the_one_before_and_falls_with_the_parties(lam, classes, parties):
    published, tight, diameter = (bound(form, lam, classes, parties) for form in FORMS)
    assert published == pytest.approx(2 * (1 if classes == 2 else math.sqrt(2)) / (parties * lam))
    assert published >= tight >= diameter * (1 - 1e-12)
    assert diameter == pytest.approx(2 * radius(lam, classes) / parties, rel=1e-14)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5), length=st.floats(1e-3, 1e3))
def test_long_rows_do_not_lengthen_a_minimiser_beyond_the_radius_of_any_rows(seed, classes, length):
    random = np.random.default_rng(seed)
    points = length * random.normal(size=(4, 3))
    tolerance = attainable_tolerance(TOLERANCE, points, 0.5)
    weights = fit_labels(points, random.integers(0, classes, 4), classes, 0.5, tolerance)
    assert np.linalg.norm(weights) <= radius_of_any_rows(0.5, classes) + tolerance / 0.5


def test_the_radius_of_any_rows_is_reached_where_short_rows_cannot():
    lam = 2.0
    norm = radius_of_any_rows(lam, 3)
    row = np.array([[(1 + lam * norm**2) * math.sqrt(2 / 3) / norm]])
    assert row > 1
    reached = np.linalg.norm(fit_labels(row, np.array([1]), 3, lam, TOLERANCE))
    assert reached == pytest.approx(norm, rel=1e-6)
    assert reached > radius(lam, 3)


def test_numbers_outside_their_ranges_and_sums_that_no_honest_parties_have_are_refused():
    with pytest.raises(InputError, match="tight"):
        bound("tigth", 1.0)
    for wrong in ({"regularisation": 0.0}, {"classes": 1}, {"parties": 0}):
        with pytest.raises(InputError):
            parameter_average("tight", **{"regularisation": 1.0, "parties": 2, "classes": 2, **wrong})
    for norm in (0.0, math.inf, math.nan):
        with pytest.raises(InputError, match="norm"):
            clipped_mean(norm, 3)
    with pytest.raises(InputError, match="regularisation"):
        radius_of_any_rows(0.0, 2)
    deviation = QUESTION.mechanism().additive.variance() ** 0.5
    lie = np.zeros((4, WIDTH))
    lie[0, 2] = 4 + 30 * (4 / 80) ** 0.5 * deviation
    assert collected(lie).total("vectors")[0, 2] == pytest.approx(lie[0, 2], rel=1e-3)
    lie[0, 2] = 4 + 50 * (4 / 80) ** 0.5 * deviation
    with pytest.raises(FederationError):
        collected(lie).total("vectors")


QUESTION = QUESTIONS["parameter_sum"]
STEP, WIDTH = QUESTION.steps["vectors"], QUESTION.numbers


def collected(vectors) -> Secure:
    found = Secure(QUESTION, plan(90, colluding=0.0, largest_bag=9))
    sent = np.rint(np.asarray(vectors, dtype=float) / STEP)[:, None, :] * STEP
    assert not found.add(Submission(QUESTION.kind, np.arange(len(sent)), {"vectors": sent}))
    return found


@pytest.mark.parametrize("answered", [80, 90])
def test_the_total_and_the_noise_are_of_the_shares_that_came(answered):
    vectors = np.zeros((answered, WIDTH))
    vectors[:4, 0] = [1.0, 0.5, -0.25, 0.75]
    found, whole = collected(vectors), QUESTION.mechanism().additive
    total = found.total("vectors")
    assert (found.answered, total.shape) == (answered, (1, WIDTH))
    assert total[0, 0] / 4 == pytest.approx(0.5)
    assert not total[0, 1:].any()
    assert found.wholes == answered / 80
    assert found.variance == pytest.approx(found.wholes * whole.variance(), rel=1e-6)
