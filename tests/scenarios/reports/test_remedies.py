"""What would help, on curves whose answer is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.mechanisms.noise import gaussian
from scenarios.reports.assessment import Point, in_words, remedies

CURVE = {1.0: Point(False, 0.1), 3.0: Point(True, 0.3), 10.0: Point(True, 0.7)}


def of(curve, epsilon, parties=100, delta=0.0, of_mean=True):
    return {one.goal: one for one in remedies(curve, epsilon, parties=parties, delta=delta, of_mean=of_mean)}


def test_both_goals_are_looked_for_where_both_are_missed():
    found = of(CURVE, 1.0)
    assert (found["useful"].epsilon, found["useful"].between) == (3.0, (1.0, 3.0))
    assert found["half"].between == (3.0, 10.0)
    assert found["half"].epsilon == pytest.approx(math.sqrt(30))  # .5 is in the middle of .3 and .7, in log epsilon
    assert (found["useful"].parties, found["half"].parties) == (300, math.ceil(100 * math.sqrt(30)))
    assert list(of(CURVE, 3.0)) == ["half"]
    assert of(CURVE, 10.0) == {}


def test_what_the_run_never_reaches_is_not_said():
    assert of({1.0: Point(False, 0.1), 3.0: Point(False, 0.3)}, 1.0) == {}
    assert of({1.0: Point(False, None), 3.0: Point(True, None)}, 1.0).keys() == {"useful"}


def test_an_epsilon_from_which_it_does_not_stay_so_is_none():
    curve = {1.0: Point(False, 0.1), 2.0: Point(True, 0.6), 4.0: Point(False, 0.2), 8.0: Point(True, 0.8)}
    assert of(curve, 1.0)["useful"].between == (4.0, 8.0)
    assert of(curve, 1.0)["half"].epsilon == pytest.approx(4 * math.sqrt(2))


def test_parties_are_told_of_noise_on_a_mean_only():
    assert of(CURVE, 1.0, of_mean=False)["useful"].times is None
    unknown = of(CURVE, 1.0, parties=None)["useful"]
    assert (unknown.times, unknown.parties) == (3.0, None)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-1, 1)), min_size=1, max_size=6),
    st.sampled_from([0.0, 1e-6]),
    st.integers(1, 10**6),
)
def test_more_is_asked_for_never_less_and_noise_is_as_faint_as_promised(points, delta, parties):
    curve = {2.0**i: Point(useful, kept) for i, (useful, kept) in enumerate(points)}
    for epsilon, point in curve.items():
        for one in remedies(curve, epsilon, parties=parties, delta=delta, of_mean=True):
            assert not point.reaches(one.goal)
            assert epsilon <= one.between[0] < one.epsilon * (1 + 1e-9)
            assert one.epsilon <= one.between[1] * (1 + 1e-9)
            assert not curve[one.between[0]].reaches(one.goal)
            assert all(curve[other].reaches(one.goal) for other in curve if other >= one.between[1])
            strength = (lambda e: e) if delta == 0 else (lambda e: gaussian.mu(e, delta))
            assert one.parties * strength(epsilon) >= parties * strength(one.epsilon) * (1 - 1e-9)
            assert (one.parties - 1) * strength(epsilon) < parties * strength(one.epsilon)


def test_parties_are_told_in_two_digits_and_as_a_bound_where_usefulness_is_the_goal():
    several = [
        (epsilon, of({0.5: Point(False, 0.0), **CURVE}, epsilon, parties=1234)["useful"]) for epsilon in (0.5, 1)
    ]
    assert in_words(several, "useful") == (
        "useful from ε = 3 on, not yet at 1; or at ε = 0.5 and 1 with at most about 7500 and 3800 parties like those "
        "of this run"
    )
    [half] = of(CURVE, 3.0, parties=None).values()
    assert in_words([(3.0, half)], "half") == (
        "half of the pooled gain from about ε = 5.5 on, between 3 and 10; or at ε = 3 with about 1.8 times as many "
        "parties like those of this run"
    )
