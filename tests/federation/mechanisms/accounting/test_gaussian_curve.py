"""The curve that a `gaussian_mu` claims, against the mechanisms that claim it and the total of several."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.accounting.composition import GaussianCurve, compose
from federation.mechanisms.counts import exact_laws as counts
from federation.mechanisms.noise import discrete as discrete_gaussian
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import calibrate


def released(epsilon: float, delta: float = 1e-6, dimension: int = 3) -> Guarantee:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=dimension, epsilon=epsilon, delta=delta)
    return mechanism.guarantee(Unit.PARTY, Adjacency.REPLACE)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(epsilon=st.floats(0.05, 8.0), delta=st.sampled_from([1e-9, 1e-6, 1e-2]), part=st.floats(0.0, 1.0))
def test_it_is_that_of_the_mechanism(epsilon: float, delta: float, part: float) -> None:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=3, epsilon=epsilon, delta=delta)
    curve = GaussianCurve.of([mechanism.guarantee(Unit.PARTY, Adjacency.REPLACE)])
    assert curve is not None
    assert curve.delta(part * epsilon) == mechanism.delta_at(part * epsilon)
    assert curve.delta(epsilon) <= delta
    assert curve.epsilon(delta) <= epsilon * (1 + 1e-9)


def test_of_counts_it_is_above_the_exact_curve() -> None:
    mechanism = counts.calibrate_discrete_gaussian(3, 1.0, 1e-6)
    curve = GaussianCurve.of([mechanism.guarantee()])
    assert curve is not None
    assert curve.grid == (2, math.floor(mechanism.scale))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        assert mechanism.delta_at(epsilon) < curve.delta(epsilon)


def test_several_releases_have_the_curve_of_their_total() -> None:
    several = [released(0.5), released(1.0, dimension=5)]
    curve = GaussianCurve.of(several)
    assert curve is not None
    mus = [one.gaussian_mu or 0.0 for one in several]
    assert curve.mu == pytest.approx(math.hypot(*mus))
    assert curve.grid == (8, min(int(one.parameters["grid_scale"]) for one in several))
    assert compose(several, 1e-6) == (curve.epsilon(1e-6), 1e-6)
    assert curve.delta(0.3) == discrete_gaussian.delta_bound(0.3, curve.mu, *curve.grid)


def test_without_a_grid_it_is_the_continuous_one() -> None:
    plain = replace(released(1.0), parameters={}, gaussian_mu=0.3)
    curve = GaussianCurve.of([plain])
    assert curve == GaussianCurve(0.3)
    assert (curve.delta(0.5), curve.epsilon(1e-6)) == (float(gaussian.delta(0.5, 0.3)), gaussian.epsilon(1e-6, 0.3))


def test_a_grid_of_a_few_steps_claims_no_epsilon() -> None:
    assert GaussianCurve(1.0, (10, 1)).epsilon(1e-9) == math.inf


def test_what_is_not_gaussian_has_none() -> None:
    assert GaussianCurve.of([]) is None
    assert GaussianCurve.of([released(1.0), replace(released(1.0), gaussian_mu=None)]) is None
