"""Totals of several releases against privacy loss distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.accounting.composition import compose, concentrated_epsilon
from federation.mechanisms.counts.exact_laws import discrete_gaussian_delta as exact_delta
from federation.mechanisms.noise import discrete as discrete_gaussian
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import calibrate

INTERVAL = 1e-4


def pure(epsilon: float, **change: object) -> Guarantee:
    fields = {"epsilon": epsilon, "delta": 0.0, "unit": Unit.PARTY, "adjacency": Adjacency.REPLACE}
    return Guarantee(**(fields | {"mechanism": "l2_gamma"} | change))


def normal(epsilon: float, delta: float, dimension: int = 20) -> Guarantee:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=dimension, epsilon=epsilon, delta=delta)
    return mechanism.guarantee(Unit.PARTY, Adjacency.REPLACE)


def on_integers(moves: int, scale: int, delta: float = 1e-6) -> Guarantee:
    """A discrete Gaussian of this scale on one integer that moves by so much; the claim of its own is never used."""
    parameters = {"dimension": 1, "grid_scale": scale}
    return pure(100.0, delta=delta, gaussian_mu=moves / scale, mechanism="counted", parameters=parameters)


def exact_delta_of_two(epsilon: float, releases: list[tuple[int, int]]) -> float:
    """The sum of (P - e^epsilon Q)+ over all pairs of integers, for two discrete Gaussians (moves, scale)."""
    losses, masses = [], []
    for moves, scale in releases:
        k = np.arange(-20 * scale - moves, 20 * scale + moves + 1)
        mass = np.exp(-0.5 * np.square(k / scale))
        losses.append((2 * moves * k + moves**2) / (2 * scale**2))  # ln P[K = k] - ln P[K = k + moves]
        masses.append(mass / mass.sum())
    loss, mass = np.add.outer(*losses), np.multiply.outer(*masses)
    return float((mass * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


def test_nothing_costs_nothing() -> None:
    assert compose([], 1e-6) == (0.0, 0.0)


def test_pure_epsilons_add_and_the_pld_does_not_exceed_them() -> None:
    epsilons = [0.3, 0.5, 1.1]
    assert compose([pure(e) for e in epsilons], 1e-6) == (pytest.approx(sum(epsilons)), 0.0)
    oracle = pld.from_laplace_mechanism(1 / epsilons[0], value_discretization_interval=INTERVAL)
    for epsilon in epsilons[1:]:
        oracle = oracle.compose(pld.from_laplace_mechanism(1 / epsilon, value_discretization_interval=INTERVAL))
    total = oracle.get_epsilon_for_delta(1e-10)  # it moves a tail mass of about 1e-15 to infinity
    assert total == pytest.approx(sum(epsilons), abs=len(epsilons) * INTERVAL)


@pytest.mark.parametrize("claims", [[(1.0, 1e-6)], [(0.5, 1e-6)] * 8, [(0.3, 1e-7), (2.0, 1e-5)]])
def test_gaussian_releases_compose_as_the_pld_says(claims: list[tuple[float, float]]) -> None:
    guarantees = [normal(*claim) for claim in claims]
    epsilon, delta = compose(guarantees, 1e-6)
    assert delta == 1e-6
    oracle = None
    for guarantee in guarantees:
        single = pld.from_gaussian_mechanism(1 / guarantee.gaussian_mu, value_discretization_interval=INTERVAL)
        oracle = single if oracle is None else oracle.compose(single)
    theirs = oracle.get_epsilon_for_delta(1e-6)
    assert -1e-6 <= theirs - epsilon <= INTERVAL * len(claims)


def test_one_gaussian_release_costs_what_it_claims() -> None:
    epsilon, delta = compose([normal(1.0, 1e-6)], 1e-6)
    assert (1 - 1e-4) < epsilon <= 1.0
    assert delta == 1e-6
    tighter, _ = compose([normal(1.0, 1e-6)], 1e-8)
    assert tighter > 1.0


def test_continuous_gaussians_pay_no_discretisation() -> None:
    plain = pure(1.0, delta=1e-5, gaussian_mu=0.3, mechanism="gaussian")
    assert compose([plain] * 4, 1e-5)[0] == pytest.approx(gaussian.epsilon(1e-5, 0.6), rel=1e-12)


@pytest.mark.parametrize("delta", [1e-1, 1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("fine", [(4, 64), (16, 64)])
def test_of_a_coarse_and_a_fine_grid_the_total_covers_the_exact_delta(delta: float, fine: tuple[int, int]) -> None:
    releases = [(1, 1), fine]  # how far an integer moves, and the scale of its noise
    group = [on_integers(*release) for release in releases]
    epsilon, spent = compose(group, delta)
    assert (epsilon, spent) == compose(group[::-1], delta)
    assert spent == delta
    assert 0.05 * delta < exact_delta_of_two(epsilon, releases) <= delta
    mu = math.hypot(*(moves / scale for moves, scale in releases))
    for too_little in (discrete_gaussian.epsilon_bound(delta, mu, 2, 64), gaussian.epsilon(delta, mu)):
        assert exact_delta_of_two(too_little, releases) > delta  # as if both grids were fine, or there were none


def test_where_grids_are_coarse_the_total_is_that_of_zero_concentrated_privacy() -> None:
    for releases in ([(1, 1)], [(1, 1)] * 2, [(3, 2), (1, 1), (5, 64)]):
        rho = sum((moves / scale) ** 2 for moves, scale in releases) / 2
        epsilon, delta = compose([on_integers(*release) for release in releases], 1e-6)
        assert (epsilon, delta) == (pytest.approx(concentrated_epsilon(1e-6, rho), rel=1e-12), 1e-6)


def test_what_releases_claim_in_sum_counts_where_it_is_less_at_no_more_delta() -> None:
    composed = gaussian.epsilon(1e-6, 0.3)
    assert composed > 1.0
    for claimed, epsilon, delta in ((1e-9, 1.0, 1e-9), (1e-6, 1.0, 1e-6), (1.1e-6, composed, 1e-6)):
        release = pure(1.0, delta=claimed, gaussian_mu=0.3, mechanism="gaussian")
        assert compose([release], 1e-6) == (pytest.approx(epsilon), delta)


def test_no_total_has_a_delta_above_one() -> None:
    assert compose([pure(0.1, delta=0.6)] * 2, 1e-6) == (pytest.approx(0.2), 1.0)


def test_mixtures_are_sums_of_the_two_totals() -> None:
    group = [normal(0.5, 1e-6)] * 3
    alone, _ = compose(group, 1e-6)
    assert compose([*group, pure(0.4), pure(0.2)], 1e-6) == (pytest.approx(alone + 0.6), pytest.approx(1e-6))
    # Another mechanism's delta is taken out of the target before the Gaussian group gets the rest.
    other = pure(0.1, delta=4e-7, mechanism="other")
    alone, _ = compose(group, 6e-7)
    assert compose([*group, other], 1e-6) == (pytest.approx(alone + 0.1), pytest.approx(1e-6))


def test_without_delta_left_the_claims_add() -> None:
    group = [normal(0.5, 1e-6)] * 3
    assert compose(group, 0.0) == (pytest.approx(1.5), pytest.approx(3e-6))
    other = pure(0.1, delta=1e-5, mechanism="other")
    assert compose([*group, other], 1e-6) == (pytest.approx(1.6), pytest.approx(1.3e-5))


def test_the_pld_of_a_mixture_is_below_the_total() -> None:
    single = normal(0.5, 1e-6)
    oracle = pld.from_gaussian_mechanism(1 / single.gaussian_mu, value_discretization_interval=INTERVAL)
    oracle = oracle.compose(pld.from_laplace_mechanism(2.0, value_discretization_interval=INTERVAL))
    epsilon, delta = compose([single, pure(0.5)], 1e-6)
    assert oracle.get_epsilon_for_delta(delta) <= epsilon + 2 * INTERVAL


@given(st.lists(st.floats(0.05, 3), min_size=1, max_size=6), st.floats(0.05, 3))
@settings(derandomize=True, deadline=None, max_examples=25)
def test_more_releases_never_cost_less(epsilons: list[float], extra: float) -> None:
    for kind in (pure, lambda e: normal(e, 1e-6)):
        group = [kind(e) for e in epsilons]
        before, _ = compose(group, 1e-6)
        after, _ = compose([*group, kind(extra)], 1e-6)
        assert max(epsilons) * (1 - 1e-3) <= before < after
        assert after <= (sum(epsilons) + extra) * (1 + 1e-9) or len(epsilons) > 1


def test_units_and_adjacencies_must_agree() -> None:
    for change in ({"unit": Unit.ROW}, {"adjacency": Adjacency.ADD_REMOVE}):
        with pytest.raises(InputError, match="share one unit"):
            compose([pure(1.0), pure(1.0, **change)], 1e-6)


@pytest.mark.parametrize("delta", [-1e-9, 1.0])
def test_impossible_delta_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match="delta must lie"):
        compose([pure(1.0)], delta)


@settings(deadline=None)
@given(st.floats(1e-3, 20), st.floats(1e-12, 0.2))
def test_it_is_the_best_of_a_dense_grid_of_orders_and_never_better(rho, delta):
    alpha = 1 + np.exp(np.linspace(-12, 16, 20_001))
    grid = alpha * rho + (-np.log(delta * (alpha - 1)) + alpha * np.log1p(-1 / alpha)) / (alpha - 1)
    found = concentrated_epsilon(delta, rho)
    assert found == pytest.approx(max(grid.min(), 0.0), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("rho", [5e-324, 1e-30, 1.0, 1e30, 1e300])
def test_the_smallest_delta_and_extreme_rho_lie_below_the_classic_conversion(delta, rho):
    found = concentrated_epsilon(delta, rho)
    assert 0 <= found <= (rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))) * (1 + 1e-12)
    assert found >= rho * (1 - 1e-12) or delta > 0.1 or rho < 1e-9


@settings(deadline=None)
@given(st.floats(0.05, 5), st.floats(1e-9, 0.1))
def test_it_is_between_the_exact_gaussian_and_the_classic_conversion(mu, delta):
    found = concentrated_epsilon(delta, mu**2 / 2)
    assert gaussian.epsilon(delta, mu) <= found * (1 + 1e-9) + 1e-12
    assert found <= mu**2 / 2 + 2 * math.sqrt(mu**2 / 2 * math.log(1 / delta)) + 1e-12


@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.5, 8.0])
def test_coarse_discrete_gaussians_keep_it(sigma):
    for delta in (1e-2, 1e-6):
        epsilon = concentrated_epsilon(delta, 1 / sigma**2)  # two coordinates move by 1
        assert exact_delta(epsilon, sigma) <= delta


def test_the_bound_of_fine_grids_says_so_when_the_grid_is_too_coarse():
    assert discrete_gaussian.epsilon_bound(1e-9, 0.3, 8, 1) == math.inf
    assert discrete_gaussian.epsilon_bound(1e-6, 2.0, 2, 2**12) < concentrated_epsilon(1e-6, 2.0)


@pytest.mark.parametrize(("delta", "rho"), [(0.0, 1.0), (1.0, 1.0), (0.1, 0.0), (0.1, math.inf), (0.1, math.nan)])
def test_numbers_out_of_range_are_refused(delta, rho):
    with pytest.raises(InputError):
        concentrated_epsilon(delta, rho)
