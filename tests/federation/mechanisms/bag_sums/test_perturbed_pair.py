"""The pair of normal laws that a changed label leaves: its exact delta against two other integrals and Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from federation.contract.errors import InputError
from federation.mechanisms.bag_sums import weighted_sums as perturbed_pair
from federation.mechanisms.bag_sums.design import mean_delta_chi
from federation.mechanisms.bag_sums.weighted_sums import pair_delta


def one(epsilon: float, change: float, leverage: float, residual: float, rss: float, *, coarse: bool = False) -> float:
    arrays = (np.array([value]) for value in (change, leverage, residual))
    return float(pair_delta(epsilon, *arrays, rss, coarse=coarse)[0])


def scales(change: float, leverage: float, residual: float, rss: float) -> tuple[float, float]:
    """The a and b of the pair."""
    square = 1 + (2 * change * residual + change**2 * (1 - leverage)) / rss
    return abs(change) * math.sqrt(leverage / rss), math.sqrt(square)


def exceeding(level: np.ndarray, a: float, b: float) -> np.ndarray:
    """P[ln p/q > level] for P: u, v ~ N(0, 1) and Q: v | u ~ N(a u, b²), by panels of u."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(0, 12, 241)
    half = (edges[1] - edges[0]) / 2
    u = (edges[:-1, None] + half * (nodes + 1)).ravel()
    density = np.tile(half * weights, 240) * np.exp(-u * u / 2) * 2 / math.sqrt(2 * math.pi)
    result = np.empty(len(level))
    for i, t in enumerate(level):
        # ln p/q = ln b - v²/2 + (v - a u)²/2b² exceeds t where the parabola is positive.
        top, middle = 0.5 / b**2 - 0.5, -a * u / b**2
        under = middle**2 - 4 * top * ((a * u) ** 2 / (2 * b**2) + math.log(b) - t)
        root = np.sqrt(np.maximum(under, 0))
        low, high = np.sort([(-middle - root) / (2 * top), (-middle + root) / (2 * top)], axis=0)
        inside = np.where(under > 0, ndtr(high) - ndtr(low), 0.0)
        result[i] = density @ (1 - inside if top > 0 else inside)
    return result


def in_order(epsilon: float, a: float, b: float) -> float:
    """integral over t > epsilon of e^{epsilon - t} P[ln p/q > t]."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    kink = max(abs(math.log(b)) - epsilon, 0.0)  # where the event changes its form
    away = np.geomspace(1e-6, 40, 40)
    edges = np.unique(np.clip(np.concatenate([[0.0, kink], away, kink + away, kink - away]), 0, 40))
    half = np.diff(edges)[:, None] / 2
    t = (edges[:-1, None] + half * (nodes + 1)).ravel()
    w = (half * weights).ravel() * np.exp(-t)
    return float(w @ exceeding(epsilon + t, a, b))


def alternative(epsilon: float, a: float, b: float) -> float:
    """The worse of both orders."""
    return max(in_order(epsilon, a, b), in_order(epsilon, a / b, 1 / b))


@pytest.mark.parametrize(("a", "b"), [(0.3, 1.2), (0.05, 1.05), (0.6, 1.01), (1.0, 2.0), (0.3, 0.8), (0.6, 0.99)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
def test_either_order_is_integrated_from_where_it_begins(epsilon: float, a: float, b: float) -> None:
    """The worse of both hides an error in the other."""
    x = np.arange(-24.0, 4.0, 0.05)
    [found] = perturbed_pair._hockey_stick(epsilon, np.array([a]), np.array([b]), x)
    assert found == pytest.approx(in_order(epsilon, a, b), rel=3e-5, abs=1e-15)


@given(st.floats(0, 3), st.floats(-3, 3), st.floats(0, 1), st.floats(-0.99, 0.99), st.floats(0.5, 20))
@example(1.0, 1.0, 0.1, 0.3, 2.0)
@example(0.1, 1.0, 0.01, 0.5, 60.0)
@settings(derandomize=True, deadline=None, max_examples=40)
def test_monte_carlo(epsilon: float, change: float, leverage: float, share: float, rss: float) -> None:
    residual = share * math.sqrt(rss * (1 - leverage))  # r² <= rss (1 - h) for every row
    a, b = scales(change, leverage, residual, rss)
    rng, runs = np.random.default_rng(0), 100_000
    u, v = rng.normal(size=(2, runs))
    expected = []
    for first, second in ((a, b), (a / b, 1 / b)):
        loss = math.log(second) - v**2 / 2 + (v - first * u) ** 2 / (2 * second**2)
        seen = np.maximum(0, -np.expm1(np.minimum(epsilon - loss, 0)))
        expected.append((seen.mean(), seen.std() / math.sqrt(runs)))
    worst, error = max(expected)
    found = one(epsilon, change, leverage, residual, rss)
    assert found == pytest.approx(worst, abs=5 * error + 2e-4)
    assert one(epsilon, change, leverage, residual, rss, coarse=True) == pytest.approx(found, rel=0.05, abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "change", "leverage", "residual", "rss"),
    [
        (1.0, 1.0, 0.1, 0.3, 2.0),
        (1.0, 1.0, 0.5, -0.9, 2.0),
        (0.1, 1.0, 0.01, 0.5, 60.0),
        (2.0, 1.0, 0.3, -1.0, 1.6),
        (0.5, -2.0, 0.2, 0.5, 9.0),
        (0.0, 1.0, 0.1, 0.3, 2.0),
    ],
)
def test_the_tail_integral(epsilon: float, change: float, leverage: float, residual: float, rss: float) -> None:
    expected = alternative(epsilon, *scales(change, leverage, residual, rss))
    assert one(epsilon, change, leverage, residual, rss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.0, 1.0), (0.5, 0.3), (1.0, 0.1), (1.0, 2.0), (3.0, 0.08)])
def test_full_leverage_is_a_weighted_gaussian_mechanism(epsilon: float, ratio: float) -> None:
    """h = 1, r = 0: only the mean moves, by a times the weight, which the sums of rows reveal; down to 1e-17."""
    expected = mean_delta_chi(epsilon, ratio)
    assert one(epsilon, ratio, 1.0, 0.0, 1.0) == pytest.approx(expected, rel=1e-8)
    nearly = one(epsilon, ratio, 1 - 1e-9, 0.0, 1.0)
    assert nearly == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("b", [0.2, 0.9, 1.1, 3.0])
def test_no_leverage_is_a_change_of_variance(b: float) -> None:
    """h = 0: N(0, 1) against N(0, b²), whose likelihood ratio depends on |v|."""
    epsilon = 0.05

    def stick(spread: float) -> float:
        square = 2 * (epsilon - math.log(spread)) / (spread**-2 - 1)
        if square <= 0:
            return 0.0
        edge = math.sqrt(square)
        # By complements where that is the outside.
        here, there = 2 * ndtr(-edge), 2 * ndtr(-edge / spread)
        if spread > 1:
            here, there = 1 - here, 1 - there
        return here - math.exp(epsilon) * there

    rss = 4.0
    change = math.sqrt((b * b - 1) * rss) if b > 1 else 1.0
    residual = 0.0 if b > 1 else ((b * b - 1) * rss - 1) / 2
    assert one(epsilon, change, 0.0, residual, rss) == pytest.approx(max(stick(b), stick(1 / b)), rel=1e-8)


def test_tiny_deltas_keep_their_digits() -> None:
    """Equal variances and a shift a u: the integral in closed form has the tail of a Gaussian mechanism."""
    values = [one(1.0, ratio, 1.0, 0.0, 1.0) for ratio in (0.06, 0.04, 0.025, 0.015)]
    expected = [mean_delta_chi(1.0, ratio) for ratio in (0.06, 0.04, 0.025, 0.015)]
    np.testing.assert_allclose(values, expected, rtol=1e-7)
    assert 1e-40 < values[-1] < values[0] < 1e-8


def test_labels_that_fit_perfectly_reveal_themselves() -> None:
    assert one(5.0, 1.0, 0.5, -0.5, 0.5) == 1  # dy = -r/(1 - h) takes all the residual away
    assert one(5.0, 0.0, 0.5, -0.5, 0.5) == 0


@pytest.mark.parametrize("leverage", [0.0, 0.3, 1.0])
def test_a_label_that_stays_tells_nothing(leverage: float) -> None:
    assert one(0.0, 0.0, leverage, 0.2, 1.0) == 0


@given(st.floats(0, 2), st.floats(-2, 2), st.floats(0, 0.999), st.floats(-0.9, 0.9), st.floats(0.1, 10))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_delta_is_a_probability_that_falls_with_epsilon(epsilon, change, leverage, share, rss) -> None:
    residual = share * math.sqrt(rss * (1 - leverage))
    here, later = (one(e, change, leverage, residual, rss) for e in (epsilon, epsilon + 0.2))
    assert 0 <= later <= here * (1 + 1e-9) <= 1 + 1e-9


@pytest.mark.parametrize("epsilon", [-0.1, 701.0, math.nan])
def test_an_impossible_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon must lie between 0 and 700"):
        one(epsilon, 1.0, 0.5, 0.1, 1.0)
