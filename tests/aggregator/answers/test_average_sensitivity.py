import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.collectors.vectors import FORMS, clipped_mean, parameter_average, radius_of_any_rows
from federation.contract.errors import InputError
from federation.mechanisms.accounting.sensitivity import radius
from federation.numerics.erm import attainable_tolerance, fit_labels

TOLERANCE = 1e-10


def bound(form, lam, classes=3, parties=1):
    return parameter_average(form, regularisation=lam, parties=parties, classes=classes)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(lam=st.floats(1e-8, 1e3), classes=st.integers(2, 50), parties=st.integers(1, 10**6))
def test_each_form_is_at_most_the_one_before_and_falls_with_the_parties(lam, classes, parties):
    published, tight, diameter = (bound(form, lam, classes, parties) for form in FORMS)
    assert published >= tight >= diameter * (1 - 1e-12)
    assert diameter == pytest.approx(bound("diameter", lam, classes) / parties)


def test_the_published_constants():
    assert bound("published", 1e-4, 2, 1000) == pytest.approx(2 / (1000 * 1e-4))
    assert bound("published", 1e-4, 6, 1000) == pytest.approx(2 * math.sqrt(2) / (1000 * 1e-4))


@pytest.mark.parametrize("classes", [3, 6])
@pytest.mark.parametrize("lam", [1e-4, 1e-2])
def test_turning_every_row_moves_a_softmax_minimiser_by_the_whole_diameter(classes, lam):
    # All scores but the label's tie at the optimum of one row whose length makes a summand of the proof peak.
    peak = lam * radius_of_any_rows(lam, classes) ** 2
    norm = radius(lam, classes)
    row = np.array([[(1 + peak) * math.sqrt(1 - 1 / classes) / norm]])
    label = np.array([0])
    before, after = (fit_labels(x, label, classes, lam, TOLERANCE) for x in (row, -row))
    assert np.abs(row) <= 1
    assert np.linalg.norm(before - after) == pytest.approx(bound("diameter", lam, classes), rel=1e-6)


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 0.1])
def test_turning_every_label_moves_a_binary_minimiser_by_the_whole_diameter(lam):
    norm = radius(lam, 2)
    row = np.array([[min(1.0, (1 + lam * norm**2) / norm)]])
    before, after = (fit_labels(row, np.array([label]), 2, lam, TOLERANCE) for label in (0, 1))
    assert np.linalg.norm(before - after) == pytest.approx(bound("diameter", lam, 2), rel=1e-6)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6), classes=st.integers(2, 5), rows=st.integers(1, 6), lam=st.sampled_from([1e-4, 0.1, 10])
)
def test_no_data_moves_a_minimiser_further_than_the_diameter(seed, classes, rows, lam):
    random = np.random.default_rng(seed)
    ends = []
    for _ in range(2):
        points = random.normal(size=(rows, 3))
        points *= random.uniform(size=(rows, 1)) ** 0.2 / np.linalg.norm(points, axis=1, keepdims=True)
        ends.append(fit_labels(points, random.integers(0, classes, rows), classes, lam, TOLERANCE))
    reach = bound("diameter", lam, classes) + 2 * TOLERANCE / lam
    assert np.linalg.norm(ends[0] - ends[1]) <= reach
    assert max(np.linalg.norm(end) for end in ends) <= radius(lam, classes) + TOLERANCE / lam


@settings(derandomize=True, deadline=None, max_examples=60)
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


def test_numbers_outside_their_ranges_are_refused():
    with pytest.raises(InputError, match="did you mean 'tight'"):
        bound("tigth", 1.0)
    for wrong in ({"regularisation": 0.0}, {"classes": 1}, {"parties": 0}):
        with pytest.raises(InputError):
            parameter_average("tight", **{"regularisation": 1.0, "parties": 2, "classes": 2, **wrong})
    for norm in (0.0, math.inf, math.nan):
        with pytest.raises(InputError, match="norm"):
            clipped_mean(norm, 3)
    with pytest.raises(InputError, match="regularisation"):
        radius_of_any_rows(0.0, 2)
